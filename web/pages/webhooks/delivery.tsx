/** One delivery: state, error and advice, each attempt, and the exact request that was sent. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ApiError } from '../../api/api.ts'
import { now } from '../../app/clock.ts'
import { CopyButton } from '../../components/copy.tsx'
import { Problem, useTask } from '../../components/problem.tsx'
import { Text, escapeHidden } from '../../components/text.tsx'
import { bytesText, counted, duration, fullTime, utcTime } from '../../text/format.ts'
import { place, withQuery } from '../../app/router.ts'
import { type Attempt, type Delivery, type SentRequest, webhookApi } from '../../api/webhook-api.ts'
import { refreshMs } from './model.ts'
import { adviceFor, errorParts, statusTones, statusLabels, waitLabel } from './labels.ts'

type Opened = Delivery & { attemptLog: Attempt[] }

interface DeliveryViewProps {
  id: string
  may: boolean
  newest: Delivery | null // the same delivery in the list; a change reloads this view
  onReplayed: () => void
}

export function DeliveryView({ id, may, newest, onReplayed }: DeliveryViewProps) {
  const opened = useSignal<Opened | null>(null)
  const problem = useSignal<ApiError | null>(null)
  const task = useTask()
  const state =
    newest === null
      ? ''
      : JSON.stringify([newest.status, newest.attempts, newest.nextAttemptAt, newest.waitingFor])
  const load = async (signal: AbortSignal): Promise<void> => {
    try {
      opened.value = await webhookApi.delivery(id, signal)
      problem.value = null
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiError)) throw error
      problem.value = error
    }
  }
  useEffect(() => {
    const stop = new AbortController()
    void load(stop.signal)
    return () => stop.abort()
  }, [state])
  // A filtered or old delivery is not in the list, so the view polls itself while the delivery is pending.
  const isAlone = newest === null && opened.value?.status === 'pending'
  useEffect(() => {
    if (!isAlone) return undefined
    const stop = new AbortController()
    const poll = () => document.visibilityState !== 'hidden' && void load(stop.signal)
    const timer = setInterval(poll, refreshMs)
    return () => {
      clearInterval(timer)
      stop.abort()
    }
  }, [isAlone])
  const replay = async (): Promise<void> => {
    await webhookApi.replay(id)
    await load(new AbortController().signal)
    onReplayed()
  }
  const back = place.value.path + withQuery(place.value.search, { delivery: [] })
  return (
    <article class="delivery" aria-label="Delivery">
      <p>
        <a href={back}>← All deliveries</a>
      </p>
      {problem.value && <Problem error={problem.value} />}
      {opened.value && (
        <>
          <header>
            <h2 class="mono">{opened.value.id}</h2>
            <span class={`chip ${statusTones[opened.value.status]}`}>
              {statusLabels[opened.value.status]}
            </span>
          </header>
          <Verdict
            opened={opened.value}
            may={may}
            busy={task.busy.value}
            onReplay={() => void task.run(replay)}
          />
          {task.problem.value && <Problem error={task.problem.value} />}
          <Attempts list={opened.value.attemptLog} />
          {may && <Request id={id} attempts={opened.value.attemptLog.length} />}
        </>
      )}
    </article>
  )
}

interface VerdictProps {
  opened: Opened
  may: boolean
  busy: boolean
  onReplay: () => void
}

function Verdict({ opened, may, busy, onReplay }: VerdictProps) {
  const { status, lastError, attempts } = opened
  const failed = opened.attemptLog.findLast((attempt) => attempt.error !== null) ?? null
  const error = lastError === null ? null : errorParts(lastError)
  return (
    <section class={`panel lead verdict ${status}`}>
      {status === 'delivered' && (
        <p>
          Delivered {opened.deliveredAt !== null && <Exact iso={opened.deliveredAt} />} after{' '}
          {counted(attempts, 'attempt')}.
        </p>
      )}
      {status === 'pending' && (
        <p>
          {attempts === 0 ? 'No attempts yet.' : `${counted(attempts, 'attempt')} failed.`}{' '}
          {opened.waitingFor !== null && <Wait opened={opened} />}
        </p>
      )}
      {status === 'dead_letter' && <p>Failed after {counted(attempts, 'attempt')}.</p>}
      {error !== null && status !== 'delivered' && (
        <p>
          <b>Error:</b> <Text value={error.message || error.code} max={300} />{' '}
          <code>
            <Text value={error.code} max={60} />
          </code>
        </p>
      )}
      {status === 'dead_letter' && <p>{adviceFor(failed)}</p>}
      <p class="muted">
        To <Text value={opened.url} max={160} mono />, scheduled <Exact iso={opened.scheduledAt} />
      </p>
      {may && status !== 'pending' && (
        <p>
          <button
            type="button"
            class={status === 'dead_letter' ? 'button primary' : 'button'}
            aria-disabled={busy}
            onClick={onReplay}
          >
            Replay
          </button>
        </p>
      )}
    </section>
  )
}

function Wait({ opened }: { opened: Opened }) {
  const { waitingFor } = opened
  const until = waitingFor !== null && 'until' in waitingFor ? waitingFor.until : null
  const text = `${waitLabel(opened, now())}.`
  return until === null ? (
    <span class="wait">{text}</span>
  ) : (
    <time
      class="wait"
      dateTime={until}
      title={`${fullTime(Date.parse(until))}\n${utcTime(Date.parse(until))}`}
    >
      {text}
    </time>
  )
}

function Exact({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={utcTime(ms)}>
      {fullTime(ms)}
    </time>
  )
}

function Attempts({ list }: { list: Attempt[] }) {
  return (
    <section class="panel lead">
      <h3>{counted(list.length, 'attempt')}</h3>
      <ol class="attempts">
        {list.map((attempt, index) => (
          <li key={`${attempt.at} ${index}`}>
            <p>
              <span class={attempt.error === null ? 'chip allow' : 'chip error'}>
                {attempt.status ?? 'no response'}
              </span>{' '}
              <Exact iso={attempt.at} /> <span class="muted">took {duration(attempt.durationMs)}</span>
            </p>
            {attempt.error !== null && (
              <p>
                <Text value={attempt.error} max={300} />
              </p>
            )}
            {attempt.responseExcerpt !== '' && (
              <details>
                <summary>Response body</summary>
                <pre tabIndex={0} role="group" aria-label="Response body">
                  {escapeHidden(attempt.responseExcerpt)}
                </pre>
              </details>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}

/** Shown only to roles that may see the secret, because the signature lets a reader test guesses of it. */
function Request({ id, attempts }: { id: string; attempts: number }) {
  const sentRequest = useSignal<SentRequest | null>(null)
  const problem = useSignal<ApiError | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    webhookApi.request(id, stop.signal).then(
      (request) => (sentRequest.value = request),
      (error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        problem.value = error
      },
    )
    return () => stop.abort()
  }, [attempts])
  if (problem.value) return <Problem error={problem.value} />
  if (!sentRequest.value) return null
  const { method, url, headers, body } = sentRequest.value
  const bytes = new TextEncoder().encode(body).length
  return (
    <section class="panel lead">
      <header class="lead-head">
        <h3>Request</h3>
        <small class="muted">as of the last attempt, signed with the current secret</small>
      </header>
      <p>
        <b>{method}</b> <Text value={url} max={200} mono />
      </p>
      <dl class="request-headers">
        {Object.entries(headers).map(([name, value]) => (
          <>
            <dt class="mono">{name}</dt>
            <dd class="mono">
              <Text value={value} />
            </dd>
          </>
        ))}
      </dl>
      <div class="lead-head">
        <h3>Body</h3>
        <small class="muted">{bytesText(bytes)}, identical on every attempt</small>
        <CopyButton text={body} label="Copy body" />
      </div>
      <pre class="request-body" tabIndex={0} role="group" aria-label="Request body">
        {escapeHidden(body)}
      </pre>
    </section>
  )
}
