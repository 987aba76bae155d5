/** One vendor: its operator, and what its newest events show. */
import { countsQuery, pageParams } from '../../query/counts.ts'
import { useQuery } from '../../query/use-query.ts'
import type { ComponentChildren } from 'preact'
import { api, type Named, type VendorDetail } from '../../api/api.ts'
import { now } from '../../app/clock.ts'
import { Dialog } from '../../components/dialog.tsx'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { ago, count, counted, fullTime, utcTime } from '../../text/format.ts'
import { query } from '../../app/router.ts'
import { visibleText } from '../../text/text.ts'
import { filterHref } from '../../range/filters.tsx'
import { logsHref } from '../../range/filters.tsx'
import { rangeParams, choiceOf } from '../../range/range.ts'
import { type KnownAgent, knownAgent, purposeWords } from './known-agents.ts'

export function VendorDialog({ vendor, onClose }: { vendor: string; onClose: () => void }) {
  const params = pageParams()
  params.set('vendor', vendor)
  const { data: found, error: problem } = useQuery(countsQuery('detect/vendor', params))
  const known = knownAgent(vendor)
  return (
    <Dialog title={visibleText(vendor).slice(0, 120)} class="vendor-dialog" onClose={onClose}>
      {known ? <Known known={known} /> : <p class="muted">No information about this vendor.</p>}
      {problem && <Problem error={problem} />}
      {found && <Doings detail={found} />}
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
function Known({ known }: { known: KnownAgent }) {
  return (
    <section class="known-agent">
      <p>
        Operated by <b>{known.operator}</b>.{' '}
        {known.agents.length === 0 &&
          known.purposes.map((purpose) => `${purpose}: ${purposeWords[purpose]}.`).join(' ')}
      </p>
      {known.agents.length > 0 && (
        <ul>
          {known.agents.map(({ name, purpose }) => (
            <li key={name}>
              <b>{name}</b> {purpose}, {purposeWords[purpose]}
            </li>
          ))}
        </ul>
      )}
      <p>
        <a href={known.source} target="_blank" rel="noreferrer noopener">
          Documentation on {new URL(known.source).hostname}
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
          <dt>Events in this range</dt>
          <dd>{count(detail.events)}</dd>
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
function Seen({ at, isHour }: { at: string; isHour: boolean }) {
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={`${isHour ? 'within the hour from ' : ''}${fullTime(ms)}\n${utcTime(ms)}`}>
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
