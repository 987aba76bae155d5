/** One event: why it was denied or failed, its facts, and the JSON as sent. */
import './drawer.css'
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, api, type ReceivedEvent, type TraceEvent } from '../../api/api.ts'
import type { EventProvenance } from '../../api/event-shapes.ts'
import { isoTime } from '../../app/clock.ts'
import { ownAddress } from '../../app/router.ts'
import { CopyButton, keyPlaceholder, sendCurl } from '../../components/copy.tsx'
import { Chip, ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { DoorSentence, VerdictSentence, type RecordNames } from '../../components/provenance.tsx'
import { fieldText, JsonView } from '../../components/json.tsx'
import { session } from '../../app/session.ts'
import { aheadMs } from '../../api/field-filters.ts'
import { count, duration, fullTime, minuteTime, utcTime } from '../../text/format.ts'
import type { ComponentChildren } from 'preact'

interface Opened {
  event: TraceEvent
  recorded: Recorded | null // null: of a node of the release before
  receivedAtMs: number
  json: string // the event's own text, digits unchanged
}

/** The record of the event, and the names in it. */
type Recorded = RecordNames & { record: EventProvenance }

function openedOf(text: string): Opened {
  const { receivedAt, event, ...recordFields } = JSON.parse(text) as ReceivedEvent & Partial<RecordNames>
  const { record, keys = {}, judgedSince = null } = recordFields
  const recorded = record === undefined ? null : { record, keys, judgedSince }
  return { event, recorded, receivedAtMs: Date.parse(receivedAt), json: fieldText(text, 'event') ?? '{}' }
}

export function EventDrawer(props: { id: string; onClose: () => void }) {
  const opened = useSignal<Opened | null>(null)
  const problem = useSignal<ApiError | null>(null)
  const drawer = useRef<HTMLElement>(null)
  useEffect(() => {
    const stop = new AbortController()
    api.eventText(props.id, stop.signal).then(
      (text) => (opened.value = openedOf(text)),
      (error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        problem.value = error
      },
    )
    // On a phone the drawer covers the page and gets the focus; on a desktop the focus stays in the table.
    if (window.matchMedia('(max-width: 700px)').matches) drawer.current?.focus()
    return () => stop.abort()
  }, [])
  return (
    <aside
      class="panel drawer"
      ref={drawer}
      tabIndex={-1}
      aria-label="Event"
      aria-busy={!opened.value && !problem.value}
    >
      <header>
        {opened.value && (
          <h2>
            <Text value={opened.value.event.type} /> <Chip value={opened.value.event.outcome} max={24} />
          </h2>
        )}
        <button type="button" class="button quiet" onClick={props.onClose}>
          Close
        </button>
      </header>
      {problem.value && <Problem error={problem.value} />}
      {opened.value && <OpenedEvent {...opened.value} />}
    </aside>
  )
}

function OpenedEvent({ event, recorded, receivedAtMs, json }: Opened) {
  const url = session.value?.ingestUrl ?? ownAddress()
  return (
    <>
      <Why event={event} isReported={recorded?.record.judgedBy === 'sender'} />
      <Facts event={event} recorded={recorded} receivedAtMs={receivedAtMs} />
      <JsonView json={json} title="As sent" label="The event as JSON">
        <CopyButton text={() => sendCurl(url, keyPlaceholder, `{"events":[${json}]}`)} label="Copy as curl" />
      </JsonView>
    </>
  )
}

/** The title of a denial or error; null if the event has neither. */
function verdict(event: TraceEvent): 'refused' | 'review' | 'failed' | null {
  if (event.outcome === 'blocked' || event.policy?.decision === 'deny') return 'refused'
  if (event.policy?.decision === 'review') return 'review'
  if (event.outcome === 'error' || event.type === 'sdk.error') return 'failed'
  return null
}

const deed = { refused: 'denied this event', review: 'requires a review', failed: 'applied' } as const

const statusNames: { readonly [status: number]: string } = {
  400: 'bad request',
  401: 'sign-in required',
  402: 'payment required',
  403: 'forbidden',
  404: 'not found',
  405: 'method not allowed',
  408: 'request timeout',
  410: 'gone',
  413: 'body too large',
  415: 'unsupported format',
  418: 'teapot',
  421: 'wrong server',
  422: 'unprocessable',
  429: 'too many requests',
  431: 'headers too large',
  444: 'closed without a response, by nginx',
  451: 'blocked for legal reasons',
  499: 'the client closed the connection, by nginx',
  500: 'server error',
  501: 'not implemented',
  502: 'bad gateway',
  503: 'unavailable',
  504: 'gateway timeout',
}

/** What a log says about a refusal without a rule is its status. */
function noReason(status: unknown): string {
  if (typeof status !== 'number') return 'The event has no reason.'
  const name = statusNames[status]
  return `The response was ${status}${name === undefined ? '' : ` (${name})`}.`
}

/** The rule and its effect, the reason, and the agent's trust, if the event has them. */
function Why({ event, isReported }: { event: TraceEvent; isReported: boolean }) {
  const eventVerdict = verdict(event)
  if (eventVerdict === null) return null
  const { ruleId = null, reason = null } = event.policy ?? {}
  const cause = reason ?? event.error ?? null
  const trust = eventVerdict === 'failed' ? null : (event.agent?.trust ?? null)
  return (
    <section class={`why ${eventVerdict}`}>
      <h3>Why</h3>
      <p>
        {ruleId !== null && (
          <>
            Rule <Text value={ruleId} max={80} mono /> {deed[eventVerdict]}
            {cause === null ? '. ' : ': '}
          </>
        )}
        {cause === null ? noReason(event.metadata?.status) : <Text value={cause} multiline />}
        {ruleId === null && cause !== null && eventVerdict === 'refused' && ' (no rule)'}
      </p>
      {trust !== null && (
        <p>
          Trust in the event: <Vial trust={trust} />{' '}
          <b>
            <Text value={trust} max={40} />
          </b>
          {isReported && ' by the sender'}.
        </p>
      )}
    </section>
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

/** A non-empty text field; fields of metadata may be anything. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function TextFact(props: { name: string; value: unknown; mono?: boolean }) {
  const value = textOf(props.value)
  if (value === null) return null
  return (
    <Fact name={props.name}>
      <Text value={value} max={160} mono={props.mono ?? false} />
    </Fact>
  )
}

/** The facts of an event, each with its label. */
function Facts({ event, recorded, receivedAtMs }: Omit<Opened, 'json'>) {
  const occurredAtMs = Date.parse(event.occurredAt)
  const delayMs = receivedAtMs - occurredAtMs
  return (
    <dl class="facts">
      {event.agent && (
        <Fact name="Agent">
          <AgentFact agent={event.agent} isReported={recorded?.record.judgedBy === 'sender'} />
        </Fact>
      )}
      <TextFact name="Name" value={event.agent?.name} />
      <TextFact name="Purpose" value={event.agent?.purpose} />
      {recorded !== null && recorded.record.verdict !== null && (
        <Fact name="Verdict">
          <VerdictSentence event={event} {...recorded} />
        </Fact>
      )}
      <TextFact name="Tool" value={event.tool} />
      <RobotsFact agent={event.agent} />
      <TextFact name="Page" value={event.metadata?.page} mono />
      <TextFact name="Method" value={event.metadata?.method} mono />
      {typeof event.metadata?.status === 'number' && <Fact name="Status">{event.metadata.status}</Fact>}
      {typeof event.metadata?.bytes === 'number' && <Fact name="Bytes">{count(event.metadata.bytes)}</Fact>}
      <TextFact name="Network" value={recorded?.record.network} mono />
      <TextFact name="Decision" value={event.policy?.decision} />
      <TextFact name="Protocol" value={event.metadata?.protocol} />
      <TextFact name="Identity" value={event.metadata?.subject} mono />
      {event.durationMs != null && <Fact name="Duration">{duration(event.durationMs)}</Fact>}
      <Fact name="Occurred">
        <time dateTime={event.occurredAt} title={utcTime(occurredAtMs)}>
          {fullTime(occurredAtMs)}
        </time>
      </Fact>
      <Fact name="Received">
        <time dateTime={isoTime(receivedAtMs)} title={utcTime(receivedAtMs)}>
          {fullTime(receivedAtMs)}
        </time>
        <span class="muted">
          {', '}
          {delayMs > 1_000
            ? `${duration(delayMs)} later`
            : delayMs < -1_000
              ? `${duration(-delayMs)} earlier`
              : 'immediately'}
        </span>
      </Fact>
      {recorded !== null && (
        <Fact name="Received by">
          <DoorSentence event={event} {...recorded} />
        </Fact>
      )}
      {aheadMs(occurredAtMs, receivedAtMs) > 0 && (
        <Fact name="Clock">
          The sender's clock is {duration(aheadMs(occurredAtMs, receivedAtMs))} ahead. The event is listed by
          its arrival time.
        </Fact>
      )}
      <TextFact name="Site" value={event.siteId} mono />
      <TextFact name="Session" value={event.sessionId} mono />
      <TextFact name="Event ID" value={event.id} mono />
      <TextFact name="User agent" value={event.agent?.userAgent} mono />
    </dl>
  )
}

/** Clients may send anything in these fields, so what is not ours is not shown. */
function RobotsFact({ agent }: { agent: TraceEvent['agent'] }) {
  const robots = agent?.robots
  if (robots !== 'allowed' && robots !== 'disallowed') return null
  const rule = agent?.robotsRule as { line?: unknown; from?: unknown } | null | undefined
  const fromMs = typeof rule?.from === 'string' ? Date.parse(rule.from) : Number.NaN
  const lineText = typeof rule?.line === 'number' ? ` by line ${rule.line} of` : ' by'
  const whole = Number.isNaN(fromMs) ? robots : `${robots}${lineText} the robots.txt of ${minuteTime(fromMs)}`
  return (
    <Fact name="robots.txt">
      <Text value={whole} max={160} />
    </Fact>
  )
}

/** `isReported`: the sender gave the verdict and, with it, the trust. */
function AgentFact(props: { agent: NonNullable<TraceEvent['agent']>; isReported: boolean }) {
  const { agent, isReported } = props
  return (
    <span class="agent-fact">
      {agent.vendor != null && (
        <span>
          <Text value={agent.vendor} max={80} />
        </span>
      )}
      {agent.class != null && (
        <span>
          <ClassMark class={agent.class} /> <Text value={agent.class} max={40} />
        </span>
      )}
      {agent.trust != null && (
        <span>
          <Vial trust={agent.trust} /> <Text value={agent.trust} max={40} />
          {isReported && <small class="muted"> by the sender</small>}
        </span>
      )}
    </span>
  )
}
