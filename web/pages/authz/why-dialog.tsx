/** Why an agent was denied: rule and reason, identity, evidence, the tool's version, earlier attempts. */
import { useQuery } from '../../query/use-query.ts'
import { api, type TraceEvent, type Why } from '../../api/api.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Chip, ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { count, duration, fullTime, utcTime } from '../../text/format.ts'
import { logsHref } from '../../range/filters.tsx'
import type { ComponentChildren } from 'preact'

export function WhyDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { data: explanation, error: problem } = useQuery({
    key: `authz/why/${id}`,
    fetch: (signal) => api.why(id, signal),
  })
  const event = explanation?.event as TraceEvent | undefined
  return (
    <Dialog title={event ? verdictOf(event) : 'Why'} class="why-dialog" onClose={onClose}>
      {problem && <Problem error={problem} />}
      {explanation && event && <Explained why={explanation} event={event} />}
      <footer>
        <a class="button" href={`/logs?event=${encodeURIComponent(id)}`}>
          Open event
        </a>
        <button type="button" class="button" onClick={onClose} data-first-focus>
          Close
        </button>
      </footer>
    </Dialog>
  )
}

function Explained({ why: explanation, event }: { why: Why; event: TraceEvent }) {
  const earlier = explanation.earlier.map((entry) => entry.event as TraceEvent)
  const { refusals, sameTool } = attempts(event, earlier)
  const occurredAtMs = Date.parse(event.occurredAt)
  return (
    <>
      <Answer event={event} refusalNumber={refusals + 1} complete={explanation.earlierComplete} />
      <dl class="why-facts">
        <Fact name="When">
          <time dateTime={event.occurredAt} title={utcTime(occurredAtMs)}>
            {fullTime(occurredAtMs)}
          </time>
        </Fact>
        <Fact name="Agent">
          <span class="with-mark">
            {event.agent?.class != null && <ClassMark class={event.agent.class} />}
            <Text value={event.agent?.vendor ?? 'unnamed'} max={60} />
            {event.agent?.class != null && <Text value={event.agent.class} max={30} />}
          </span>
        </Fact>
        <Fact name="Identity">
          <Identity event={event} />
        </Fact>
        {evidenceOf(event).map(({ name, text }) => (
          <Fact key={name} name={name}>
            <Text value={text} max={240} mono />
          </Fact>
        ))}
        {event.tool != null && (
          <Fact name="Tool">
            <Text value={event.tool} max={80} /> <ToolThen why={explanation} />
          </Fact>
        )}
      </dl>
      <section>
        <h3>Earlier in this session</h3>
        <Earlier why={explanation} event={event} earlier={earlier} sameTool={sameTool} />
      </section>
    </>
  )
}

function Fact(props: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </>
  )
}

const ordinals = ['', 'First', 'Second', 'Third', 'Fourth', 'Fifth']

function Answer(props: { event: TraceEvent; refusalNumber: number; complete: boolean }) {
  const { event, refusalNumber, complete } = props
  const { ruleId = null, reason = null } = event.policy ?? {}
  const trust = event.agent?.trust ?? null
  return (
    <p class="why-answer">
      {ruleId === null ? (
        'No rule'
      ) : (
        <>
          Rule <Text value={ruleId} max={80} mono />
        </>
      )}
      {reason === null ? (
        ', no reason.'
      ) : (
        <>
          :{' '}
          <b>
            <Text value={reason} />
          </b>
          .
        </>
      )}
      {trust !== null && (
        <>
          {' '}
          Trust in the event:{' '}
          <span class="with-mark">
            <Vial trust={trust} />
            <b>
              <Text value={trust} max={40} />
            </b>
          </span>
          .
        </>
      )}{' '}
      {complete &&
        (refusalNumber < ordinals.length
          ? `${ordinals[refusalNumber]} denial in this session.`
          : `Denial ${count(refusalNumber)} in this session.`)}
    </p>
  )
}

function Identity({ event }: { event: TraceEvent }) {
  const { subject, protocol } = event.metadata ?? {}
  if (typeof subject !== 'string' && typeof protocol !== 'string') return <>No identity presented</>
  return (
    <>
      {typeof subject === 'string' && <Text value={subject} max={100} mono />}
      {typeof subject === 'string' && typeof protocol === 'string' && ' by '}
      {typeof protocol === 'string' && <Text value={protocol} max={40} />}
    </>
  )
}

function ToolThen({ why: explanation }: { why: Why }) {
  if (!explanation.tool) return <span class="muted">(not registered at that time)</span>
  return (
    <span class="muted">
      version {explanation.tool.version}, since {fullTime(Date.parse(explanation.tool.since))}
      {explanation.tool.description !== null && (
        <>
          : <Text value={explanation.tool.description} max={160} />
        </>
      )}
    </span>
  )
}

interface EarlierProps {
  why: Why
  event: TraceEvent
  earlier: TraceEvent[]
  sameTool: number
}

const shownMax = 12

function Earlier({ why: explanation, event, earlier, sameTool }: EarlierProps) {
  if (earlier.length === 0) return <p class="muted">No earlier events in this session.</p>
  const atMs = Date.parse(event.occurredAt)
  return (
    <>
      {sameTool > 0 && (
        <p class="muted">Denied {sameTool === 1 ? 'once' : `${sameTool} times`} before for the same tool.</p>
      )}
      <ol class="earlier">
        {earlier.slice(0, shownMax).map((earlierEvent) => (
          <li key={earlierEvent.id}>
            <span class="muted">
              {duration(Math.max(0, atMs - Date.parse(earlierEvent.occurredAt)))} before
            </span>
            <span>
              {deedOf(earlierEvent)} <Text value={targetOf(earlierEvent)} max={40} />
            </span>
            <Chip value={earlierEvent.policy?.decision ?? earlierEvent.outcome} />
          </li>
        ))}
      </ol>
      {(earlier.length > shownMax || !explanation.earlierComplete) && (
        <p class="muted">
          There are more earlier events.{' '}
          <a href={logsHref({ sessionId: event.sessionId, siteIds: [event.siteId] })}>
            Open the session in Logs
          </a>
        </p>
      )}
    </>
  )
}

export function isRefusal(event: TraceEvent): boolean {
  if (event.type !== 'authz.evaluated') return false // a blocked call repeats the denial of its evaluation
  const decision = event.policy?.decision ?? null
  return decision === null ? event.outcome === 'blocked' : decision === 'deny'
}

export function verdictOf(event: TraceEvent): string {
  if (isRefusal(event)) return 'Denied'
  if (event.policy?.decision === 'review') return 'Held for review'
  return event.policy?.decision === 'allow' || event.outcome === 'success' ? 'Allowed' : 'Decided'
}

/** Denials earlier in the session, and those for the same tool. */
export function attempts(event: TraceEvent, earlier: TraceEvent[]): { refusals: number; sameTool: number } {
  const refused = earlier.filter(isRefusal)
  const sameTool = refused.filter((refusal) => event.tool != null && refusal.tool === event.tool)
  return { refusals: refused.length, sameTool: sameTool.length }
}

const deeds: { [type: string]: string } = {
  'agent.detected': 'Detected',
  'agent.missed': 'Not recognized',
  'agent.requested': 'Requested',
  'agent.invoked': 'Invoked an agent',
  'auth.identity_presented': 'Presented an identity',
  'auth.identity_cleared': 'Cleared its identity',
  'authz.policies_set': 'Policies set',
  'authz.evaluated': 'Asked for',
  'memory.accessed': 'Read site memory',
  'memory.updated': 'Changed site memory',
  'tool.registered': 'Registered',
  'tool.executed': 'Called',
  'tool.surfaced': 'Received tools',
  'tool.unregistered': 'Unregistered',
  'tool.progressed': 'Progressed',
  'sdk.error': 'Client error',
}

export function deedOf(event: TraceEvent): string {
  return Object.hasOwn(deeds, event.type) ? (deeds[event.type] ?? event.type) : event.type
}

/** What an event was about: its tool, or the page that was requested. */
export function targetOf({ type, tool, metadata }: TraceEvent): string {
  if (tool != null) return tool
  if (type !== 'agent.requested' && type !== 'authz.evaluated') return ''
  return typeof metadata?.page === 'string' ? metadata.page : type === 'authz.evaluated' ? 'access' : 'a page'
}

/** The fields by which an agent was recognized. */
export function evidenceOf(event: TraceEvent): { name: string; text: string }[] {
  const agent = (event.agent ?? {}) as { [name: string]: unknown }
  const evidence: { name: string; text: string }[] = []
  const add = (name: string, text: unknown): void => {
    if (typeof text === 'string' && text !== '') evidence.push({ name, text })
  }
  if (typeof agent['confidence'] === 'number') {
    add('Confidence', `${Math.round(agent['confidence'] * 100)} %`)
  }
  const { signals } = agent
  if (typeof signals === 'object' && signals !== null) add('Signals', signalText(signals))
  add('User agent', agent['userAgent'])
  add('Detection', agent['detectionVersion'])
  const page = event.metadata?.page
  add('Page', page)
  return evidence
}

/** Signals are a list of names or an object. */
function signalText(signals: object): string {
  if (Array.isArray(signals)) return signals.map((signal) => plain(signal)).join(', ')
  return Object.entries(signals)
    .map(([name, value]) => (value === true ? name : `${name} ${plain(value)}`))
    .join(', ')
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
