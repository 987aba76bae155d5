/** One session as a timeline of its events: each a sentence, with the time since the first. */
import { createLiveQuery } from '../../range/counts-query.ts'
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { type AgentSession, ApiError, type SessionStory, type TraceEvent, sessionApi } from '../../api/api.ts'
import { Chip, ClassMark, Vial } from '../../components/marks.tsx'
import { PageBar } from '../../components/page-frame.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { isoTime } from '../../app/clock.ts'
import { count, counted, duration, fullTime, utcTime } from '../../text/format.ts'
import { Waterfall } from './waterfall.tsx'
import { logsHref } from '../../range/filters.tsx'
import { place, withQuery } from '../../app/router.ts'

/** The timeline from its start. Further pages are loaded once and appended. */
export function StoryView({ id }: { id: string }) {
  const model = useMemo(() => createLiveQuery<SessionStory>([], [{ name: 'sessionId', value: id }]), [])
  useEffect(() => {
    model.start({ key: `session/${id}`, fetch: (stop) => sessionApi.story(id, null, stop) })
    return () => model.stop()
  }, [])
  const back = place.value.path + withQuery(place.value.search, { session: [] })
  const story = model.data.value
  return (
    <>
      <PageBar title="Sessions" />
      <div class="page session-story" aria-busy={story === null && model.error.value === null}>
        <p>
          <a href={back}>← All sessions</a>
        </p>
        {model.error.value && <Problem error={model.error.value} onRetry={model.refetch} />}
        {story && <Story story={story} />}
      </div>
    </>
  )
}

function Story({ story }: { story: SessionStory }) {
  const { session, events, nextCursor } = story
  const later = useSignal<TraceEvent[]>([])
  const cursor = useSignal<string | null | undefined>(undefined)
  const problem = useSignal<ApiError | null>(null)
  const next = cursor.value === undefined ? nextCursor : cursor.value
  const loadMore = async (): Promise<void> => {
    if (next === null) return
    try {
      const page = await sessionApi.story(session.id, next, new AbortController().signal)
      later.value = [...later.value, ...page.events]
      cursor.value = page.nextCursor
      problem.value = null
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      problem.value = error
    }
  }
  const knownIds = new Set(events.map((event) => event.id))
  const allEvents = [...events, ...later.value.filter((event) => !knownIds.has(event.id))]
  return (
    <>
      <Head session={session} />
      <Waterfall events={allEvents} isWhole={next === null} />
      <section class="panel story" aria-label="Timeline">
        <ol>
          {steps(allEvents).map((step) => (
            <StepLine key={step.id} step={step} />
          ))}
        </ol>
        {problem.value && <Problem error={problem.value} onRetry={() => void loadMore()} />}
        {next !== null && (
          <button type="button" class="button" onClick={() => void loadMore()}>
            Load more events
          </button>
        )}
      </section>
    </>
  )
}

function Head({ session }: { session: AgentSession }) {
  const { agent, firstSeenAt, lastSeenAt } = session
  const startMs = Date.parse(firstSeenAt)
  const tookMs = Date.parse(lastSeenAt) - startMs
  return (
    <header class="panel lead">
      <h2>
        <Text value={agent.vendor ?? agent.class ?? 'Unknown agent'} max={60} />{' '}
        {agent.trust !== null && (
          <span class="story-trust">
            <Vial trust={agent.trust} /> <Text value={agent.trust} max={20} />
          </span>
        )}
      </h2>
      <p>
        {agent.class !== null && (
          <>
            <ClassMark class={agent.class} /> <Text value={agent.class} max={30} />,{' '}
          </>
        )}
        {session.truncated && 'over '}
        {counted(session.events, 'event')}
        {tookMs > 0 ? ', the first on ' : ' on '}
        <time dateTime={firstSeenAt} title={utcTime(startMs)}>
          {fullTime(startMs)}
        </time>
        {tookMs > 0 && `, the last ${duration(tookMs)} later`}.
      </p>
      <p class="muted">
        <Text value={session.id} max={120} mono /> on{' '}
        <Text value={session.siteIds.join(', ')} max={80} mono />
      </p>
      <p class="story-outcomes">
        {Object.entries(session.byOutcome).map(([outcome, events]) => (
          <span key={outcome}>
            <Chip value={outcome} /> {count(events)}
          </span>
        ))}
        <a href={logsHref({ sessionId: session.id })}>Open in Logs</a>
      </p>
    </header>
  )
}

function StepLine({ step }: { step: Step }) {
  return (
    <li class={step.tone}>
      <time
        class="step-offset"
        dateTime={isoTime(step.atMs)}
        title={`${fullTime(step.atMs)}\n${utcTime(step.atMs)}`}
      >
        {step.sinceStart}
      </time>
      <i aria-hidden="true" />
      <div>
        <p>
          {step.what !== '' && <>{step.what} </>}
          {step.subject !== null && (
            <b>
              <Text value={step.subject} max={60} />
            </b>
          )}{' '}
          {step.how}
          {step.by !== null && (
            <>
              {' '}
              <Text value={step.by} max={60} mono />
            </>
          )}{' '}
          {step.trust !== null && (
            <>
              <Vial trust={step.trust} /> <Text value={step.trust} max={20} />{' '}
            </>
          )}
          <Chip value={step.outcome} />{' '}
          <a class="step-link" href={`/logs?event=${encodeURIComponent(step.id)}`}>
            event
          </a>
        </p>
        {step.detail !== null && (
          <p class="muted">
            <Text value={step.detail} max={200} />
          </p>
        )}
      </div>
    </li>
  )
}

type Tone = 'allow' | 'block' | 'error' | 'review' | 'plain'

interface Step {
  id: string
  atMs: number
  sinceStart: string // "0.0 s", "+120 ms", "+2.1 s"
  what: string // the action, as a fixed text
  subject: string | null // a name from the event: untrusted text
  how: string // follows the subject, as a fixed text
  by: string | null // a name from the event
  detail: string | null // a name from the event
  trust: string | null
  outcome: string
  tone: Tone
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

function toneOf({ outcome, policy, type }: TraceEvent): Tone {
  if (policy?.decision === 'review') return 'review'
  if (outcome === 'blocked' || policy?.decision === 'deny') return 'block'
  if (outcome === 'error' || type === 'sdk.error') return 'error'
  return outcome === 'success' ? 'allow' : 'plain'
}

/** "0.0 s" at the start, "+120 ms", "+2.1 s" and "+3 min" after it. */
export function offset(ms: number): string {
  if (ms === 0) return '0.0 s'
  if (ms >= 999.5 && ms < 60_000) return `+${(ms / 1_000).toFixed(1)} s`
  return `+${duration(ms)}`
}

type StepText = Pick<Step, 'what' | 'subject' | 'how' | 'by' | 'detail' | 'trust'>

const stepText = (action: string, details: Partial<StepText> = {}): StepText => ({
  what: action,
  subject: null,
  how: '',
  by: null,
  detail: null,
  trust: null,
  ...details,
})

const verdicts: { [tone in Tone]: string } = {
  allow: 'allowed',
  block: 'refused',
  review: 'sent to review',
  error: 'not decided',
  plain: 'evaluated',
}

function decision(event: TraceEvent, tone: Tone): StepText {
  const rule = text(event.policy?.ruleId)
  return stepText('', {
    subject: text(event.tool) ?? 'access',
    how: rule === null ? verdicts[tone] : `${verdicts[tone]} by`,
    by: rule,
    detail: text(event.policy?.reason),
  })
}

function call(event: TraceEvent, tone: Tone): StepText {
  const took =
    event.durationMs == null ? '' : ` ${tone === 'allow' ? 'in' : 'after'} ${duration(event.durationMs)}`
  const outcomeText = tone === 'block' ? 'was blocked' : tone === 'error' ? `failed${took}` : `ran${took}`
  return stepText('', { subject: text(event.tool) ?? 'a tool', how: outcomeText, detail: text(event.error) })
}

function textOfEvent(event: TraceEvent, tone: Tone): StepText {
  const { agent, metadata, tool, error } = event
  const page = text(metadata?.page)
  switch (event.type) {
    case 'agent.detected':
      return stepText('Detected', {
        subject: text(agent?.vendor) ?? 'an agent',
        detail: page,
        trust: text(agent?.trust),
      })
    case 'agent.missed':
      return stepText('Not recognized', { detail: page })
    case 'agent.invoked':
      return stepText('Invoked', { subject: text(agent?.name) ?? text(agent?.vendor) ?? 'an agent' })
    case 'agent.requested':
      return stepText('Requested', { subject: page })
    case 'agent.referred':
      return stepText('Sent a person', { subject: text(agent?.name), detail: page })
    case 'auth.identity_presented':
      return stepText('Identity', {
        subject: text(metadata?.protocol),
        how: tone === 'allow' ? 'presented' : 'presented, not accepted',
        detail: text(metadata?.subject) ?? text(error) ?? text(event.policy?.reason),
        trust: text(agent?.trust),
      })
    case 'auth.identity_cleared':
      return stepText('Identity cleared')
    case 'authz.evaluated':
      return decision(event, tone)
    case 'tool.executed':
      return call(event, tone)
    case 'memory.accessed':
      return stepText('Read site memory', { detail: page })
    case 'memory.updated':
      return stepText('Site memory updated', { detail: page })
    default:
      return stepText('', { subject: event.type, detail: text(tool) ?? text(error) ?? page })
  }
}

/** `events` are in chronological order. */
export function steps(events: TraceEvent[]): Step[] {
  const startMs = Date.parse(events[0]?.occurredAt ?? '')
  return events.map((event) => {
    const atMs = Date.parse(event.occurredAt)
    const tone = toneOf(event)
    return {
      id: event.id,
      atMs,
      sinceStart: offset(Math.max(0, atMs - startMs)),
      outcome: event.outcome,
      tone,
      ...textOfEvent(event, tone),
    }
  })
}
