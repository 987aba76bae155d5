/** One event: why it was denied or failed, its facts, and the JSON as sent. */
import './drawer.css'
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, api, type TraceEvent } from '../../api/api.ts'
import { ownAddress } from '../../app/router.ts'
import { CopyButton } from '../../components/copy.tsx'
import { Chip, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { keyPlaceholder, sendCurl } from '../../components/copy.tsx'
import { fieldText, prettyJson, prettyTokens } from '../../components/json.tsx'
import { session } from '../../app/session.ts'
import { Facts } from './facts.tsx'

interface Opened {
  event: TraceEvent
  receivedAtMs: number
  json: string // the event's own text, digits unchanged
}

function openedOf(text: string): Opened {
  const { receivedAt, event } = JSON.parse(text) as { receivedAt: string; event: TraceEvent }
  return { event, receivedAtMs: Date.parse(receivedAt), json: fieldText(text, 'event') ?? '{}' }
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

function OpenedEvent({ event, receivedAtMs, json }: Opened) {
  const url = session.value?.ingestUrl ?? ownAddress()
  return (
    <>
      <Why event={event} />
      <Facts event={event} receivedAtMs={receivedAtMs} />
      <div class="json-head">
        <h3>As sent</h3>
        <CopyButton text={() => prettyJson(json)} label="Copy JSON" />
        <CopyButton text={() => sendCurl(url, keyPlaceholder, `{"events":[${json}]}`)} label="Copy as curl" />
      </div>
      <pre class="json" tabIndex={0} role="group" aria-label="The event as JSON">
        {prettyTokens(json).map((part) =>
          part.kind === 'space' ? part.text : <span class={part.kind}>{part.text}</span>,
        )}
      </pre>
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

/** The rule and its effect, the reason, and the agent's trust, if the event has them. */
function Why({ event }: { event: TraceEvent }) {
  const found = verdict(event)
  if (found === null) return null
  const { ruleId = null, reason = null } = event.policy ?? {}
  const told = reason ?? event.error ?? null
  const trust = found === 'failed' ? null : (event.agent?.trust ?? null)
  return (
    <section class={`why ${found}`}>
      <h3>Why</h3>
      <p>
        {ruleId !== null && (
          <>
            Rule <Text value={ruleId} max={80} mono /> {deed[found]}
            {told === null ? '. ' : ': '}
          </>
        )}
        {told === null ? 'The event has no reason.' : <Text value={told} multiline />}
        {ruleId === null && found === 'refused' && ' (no rule)'}
      </p>
      {trust !== null && (
        <p>
          The agent’s trust was <Vial trust={trust} />{' '}
          <b>
            <Text value={trust} max={40} />
          </b>
          .
        </p>
      )}
    </section>
  )
}
