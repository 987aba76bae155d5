/** One session as a timeline of its events. */
import { createLiveQuery } from '../../query/use-query.ts'
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { ApiError, type TraceEvent } from '../../api/api.ts'
import { Chip, ClassMark, Vial } from '../../components/marks.tsx'
import { PageBar } from '../../components/page-frame.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { isoTime } from '../../app/clock.ts'
import { count, counted, duration, fullTime, utcTime } from '../../text/format.ts'
import { logsHref } from '../../range/filters.tsx'
import { place, withQuery } from '../../app/router.ts'
import { type AgentSession, sessionApi, type SessionStory } from '../../api/session-api.ts'
import { type Step, steps } from './story.ts'

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
  const more = async (): Promise<void> => {
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
  const known = new Set(events.map((event) => event.id))
  const all = [...events, ...later.value.filter((event) => !known.has(event.id))]
  return (
    <>
      <Head session={session} />
      <section class="panel story" aria-label="Timeline">
        <ol>
          {steps(all).map((step) => (
            <StepLine key={step.id} step={step} />
          ))}
        </ol>
        {problem.value && <Problem error={problem.value} onRetry={() => void more()} />}
        {next !== null && (
          <button type="button" class="button" onClick={() => void more()}>
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
        {counted(session.events, 'event')} in {duration(Date.parse(lastSeenAt) - startMs)}, from{' '}
        <time dateTime={firstSeenAt} title={utcTime(startMs)}>
          {fullTime(startMs)}
        </time>
        .
      </p>
      <p class="muted">
        <Text value={session.id} max={120} mono /> at{' '}
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
