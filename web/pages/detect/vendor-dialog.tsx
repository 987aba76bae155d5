/** One vendor: its operator, found by name without a request, and the data of its newest events. */
import crawlers from './operators.json'
import { useQuery } from '../../query/use-query.ts'
import { countsQuery, pageParams } from '../../range/counts-query.ts'
import { api, type Named, type VendorDetail } from '../../api/api.ts'
import { now } from '../../app/clock.ts'
import { Dialog } from '../../components/dialog.tsx'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text, visibleText } from '../../components/text.tsx'
import { ago, count, counted, fullTime, utcTime } from '../../text/format.ts'
import { query } from '../../app/router.ts'
import { filterHref, logsHref } from '../../range/filters.tsx'
import { choiceOf, rangeParams } from '../../range/range.ts'
import type { ComponentChildren } from 'preact'

export function VendorDialog({ vendor, onClose }: { vendor: string; onClose: () => void }) {
  const params = pageParams()
  params.set('vendor', vendor)
  const { data: vendorDetail, error: problem } = useQuery(countsQuery('detect/vendor', params))
  const vendorInfo = knownAgent(vendor)
  return (
    <Dialog title={visibleText(vendor).slice(0, 120)} class="vendor-dialog" onClose={onClose}>
      {vendorInfo ? <Known known={vendorInfo} /> : <p class="muted">No information about this vendor.</p>}
      {problem && <Problem error={problem} />}
      {vendorDetail && <Doings detail={vendorDetail} />}
      <footer>
        <a class="button" href={filterHref({ name: 'vendor', value: vendor }, 'vendor')}>
          Filter this page
        </a>
        <a class="button" href={logsHref({ vendor, siteIds: choiceOf(query.value).siteIds })}>
          Open in Logs
        </a>
        <button type="button" class="button" onClick={onClose} data-first-focus>
          Close
        </button>
      </footer>
    </Dialog>
  )
}

/** The link comes from the list of known agents and contains nothing from the event. */
function Known({ known: vendorInfo }: { known: KnownAgent }) {
  return (
    <section class="known-agent">
      <p>
        Operated by <b>{vendorInfo.operator}</b>.{' '}
        {vendorInfo.agents.length === 0 &&
          vendorInfo.purposes.map((purpose) => `${purpose}: ${purposeWords[purpose]}.`).join(' ')}
      </p>
      {vendorInfo.agents.length > 0 && (
        <ul>
          {vendorInfo.agents.map(({ name, purpose }) => (
            <li key={name}>
              <b>{name}</b> {purpose}, {purposeWords[purpose]}
            </li>
          ))}
        </ul>
      )}
      <p>
        <a href={vendorInfo.source} target="_blank" rel="noreferrer noopener">
          Documentation on {new URL(vendorInfo.source).hostname}
        </a>
      </p>
    </section>
  )
}

function Doings({ detail }: { detail: VendorDetail }) {
  if (detail.looked === 0) return <p class="muted">No stored events from this vendor in this range.</p>
  return (
    <section class="doings">
      <dl class="seen">
        <div>
          <dt>{detail.unit.label} in this range</dt>
          <dd>{count(detail.count)}</dd>
        </div>
        <div>
          <dt>First seen</dt>
          <dd>{detail.firstAt !== null && <Seen at={detail.firstAt} isHour={detail.firstIsHour} />}</dd>
        </div>
        <div>
          <dt>Last seen</dt>
          <dd>{detail.lastAt !== null && <Seen at={detail.lastAt} isHour={false} />}</dd>
        </div>
      </dl>
      <p>
        {detail.complete ? 'Based on ' : 'Based on the newest '}
        {counted(detail.looked, 'event')} in this range, in {counted(detail.sessions, 'session')}:
      </p>
      <div class="name-lists">
        <Names title="Classes" names={detail.classes} mark={(name) => <ClassMark class={name} />} />
        <Names title="Trust reached" names={detail.trusts} mark={(name) => <Vial trust={name} />} />
        <Names title="Tools called" names={detail.tools} />
        <Names title="Pages visited" names={detail.pages} />
        <Names title="Identities" names={detail.subjects} />
        <Names title="User agents" names={detail.userAgents} wide />
      </div>
    </section>
  )
}

/** Counts have the hour; the newest events have the exact time. */
function Seen({ at: seenAt, isHour }: { at: string; isHour: boolean }) {
  const ms = Date.parse(seenAt)
  return (
    <time dateTime={seenAt} title={`${isHour ? 'within the hour from ' : ''}${fullTime(ms)}\n${utcTime(ms)}`}>
      {ago(ms, now())}
    </time>
  )
}

interface NamesProps {
  title: string
  names: Named[]
  mark?: (name: string) => ComponentChildren
  wide?: boolean
}

function Names({ title, names, mark, wide }: NamesProps) {
  if (names.length === 0) return null
  return (
    <div class={wide ? 'wide' : ''}>
      <h3>{title}</h3>
      <ul>
        {names.map(({ name, count: events }) => (
          <li key={name}>
            <span>
              {mark?.(name)} <Text value={name} max={wide ? 160 : 34} mono={wide ?? false} />
            </span>
            <b>{count(events)}</b>
          </li>
        ))}
      </ul>
    </div>
  )
}

/** `operators.json` is the client package's list of crawlers, held equal by `tests/e2e/pages-agents.test.ts`. */
type Purpose = 'training' | 'search' | 'assistant' | 'other'

interface KnownAgent {
  operator: string
  purposes: Purpose[]
  source: string // documentation of the operator, or of a third party
  agents: { name: string; purpose: Purpose }[] // empty if the name is the agent's own
}

interface Operator {
  vendor: string
  source: string
  agents: { [name: string]: Purpose | undefined }
}

/** Operators of agents that act for a person. */
const assistants: { name: string; operator: string; source: string }[] = [
  { name: 'Operator', operator: 'OpenAI', source: 'https://openai.com/index/introducing-operator/' },
  { name: 'ChatGPT', operator: 'OpenAI', source: 'https://platform.openai.com/docs/bots' },
  { name: 'Claude', operator: 'Anthropic', source: 'https://support.anthropic.com/en/articles/8896518' },
  {
    name: 'Claude in Chrome',
    operator: 'Anthropic',
    source: 'https://www.anthropic.com/news/claude-for-chrome',
  },
  {
    name: 'Claude Computer Use',
    operator: 'Anthropic',
    source: 'https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/computer-use-tool',
  },
  { name: 'Gemini', operator: 'Google', source: 'https://gemini.google.com/' },
  {
    name: 'Gemini Computer Use',
    operator: 'Google',
    source: 'https://ai.google.dev/gemini-api/docs/computer-use',
  },
  {
    name: 'Google-Agent',
    operator: 'Google',
    source: 'https://developers.google.com/search/docs/crawling-indexing/overview-google-crawlers',
  },
  { name: 'Comet', operator: 'Perplexity', source: 'https://www.perplexity.ai/comet' },
  { name: 'GitHub Copilot', operator: 'GitHub', source: 'https://docs.github.com/en/copilot' },
  { name: 'Le Chat', operator: 'Mistral AI', source: 'https://docs.mistral.ai/robots' },
  { name: 'Browser Use', operator: 'Browser Use', source: 'https://github.com/browser-use/browser-use' },
  { name: 'Nova Act', operator: 'Amazon', source: 'https://github.com/aws/nova-act' },
  { name: 'Skyvern', operator: 'Skyvern', source: 'https://github.com/Skyvern-AI/skyvern' },
  { name: 'UI-TARS', operator: 'ByteDance', source: 'https://github.com/bytedance/UI-TARS' },
]

function ofOperator({ vendor, source, agents }: Operator): KnownAgent {
  const namedAgents = Object.entries(agents).flatMap(([name, purpose]) =>
    purpose ? [{ name, purpose }] : [],
  )
  return {
    operator: vendor,
    source,
    agents: namedAgents,
    purposes: [...new Set(namedAgents.map((namedAgent) => namedAgent.purpose))],
  }
}

/** Finds operators and agents by name, ignoring case. */
const agentsByName = new Map<string, KnownAgent>()
for (const operator of crawlers as Operator[]) {
  const operatorAgent = ofOperator(operator)
  for (const { name, purpose } of operatorAgent.agents) {
    agentsByName.set(name.toLowerCase(), { ...operatorAgent, purposes: [purpose], agents: [] })
  }
  agentsByName.set(operator.vendor.toLowerCase(), operatorAgent)
}
for (const { name, operator, source } of assistants) {
  if (agentsByName.has(name.toLowerCase())) continue
  agentsByName.set(name.toLowerCase(), { operator, source, purposes: ['assistant'], agents: [] })
}

export function knownAgent(vendor: string): KnownAgent | null {
  return agentsByName.get(vendor.trim().toLowerCase()) ?? null
}

const purposeWords: { [purpose in Purpose]: string } = {
  training: 'collects text to train models',
  search: 'builds a search index',
  assistant: 'fetches pages at the request of a person',
  other: 'checks advertisements, makes previews, reads feeds or watches sites',
}
