/** Follows the live stream of events and reconnects at its last position after every break. */
import { ApiError, type ReceivedEvent } from '../api/api.ts'
import { messageReader } from '../api/shared-live.ts'

export type LiveState =
  { state: 'connecting' | 'live' } | { state: 'lost'; error: ApiError | null; retryInMs: number }

/** The request is invalid, such as an unknown filter in the URL. Retrying would not help. */
export function isRefused(error: ApiError | null): boolean {
  return error !== null && error.status >= 400 && error.status < 500 && error.status !== 429
}

interface LiveOptions {
  after: string // the position to continue from
  open: (position: string, signal: AbortSignal) => Promise<Response>
  onEvents: (events: ReceivedEvent[]) => void
  onState: (state: LiveState) => void
  /** The server does not know the position, because its data folder changed. Start over with the newest page. */
  onForgotten: () => void
  signal: AbortSignal
  wait?: (ms: number, signal: AbortSignal) => Promise<void> // for tests
  silenceMsMax?: number // the server sends a heartbeat every 10 s; a longer silence means a dead connection
}

const retryMs = [250, 500, 1_000, 2_000, 4_000] as const

/** Runs until `signal` aborts. The position advances only after events were handled, so no gap can occur. */
export async function followLive(options: LiveOptions): Promise<void> {
  const { open, onState, signal, wait = sleep } = options
  let { after: lastPosition } = options
  let failures = 0
  while (!signal.aborted) {
    onState(failures === 0 ? { state: 'connecting' } : { state: 'lost', error: null, retryInMs: 0 })
    let error: ApiError | null = null
    let openedAtMs = Number.POSITIVE_INFINITY
    try {
      const answer = await open(lastPosition, signal)
      failures = 0
      openedAtMs = performance.now()
      onState({ state: 'live' })
      await readStream(answer, options, (position) => (lastPosition = position))
      // The server ends every stream after 30 minutes. It is opened again at once.
      if (performance.now() - openedAtMs > 60_000) continue
    } catch (cause) {
      error = cause instanceof ApiError ? cause : null
    }
    if (signal.aborted) return
    if (error?.status === 401) return
    if (error?.status === 400) {
      await wait(1_000, signal) // limits the rate of retries, whatever the error is
      return signal.aborted ? undefined : options.onForgotten()
    }
    const pauseMs = Math.max(
      retryMs[Math.min(failures, retryMs.length - 1)] ?? 4_000,
      (error?.retryAfterS ?? 0) * 1_000,
    )
    failures += 1
    onState({ state: 'lost', error, retryInMs: pauseMs })
    await wait(pauseMs, signal)
  }
}

async function readStream(
  answer: Response,
  options: LiveOptions,
  moved: (position: string) => void,
): Promise<void> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  const read = messageReader()
  let silence = 0
  const listen = (): void => {
    clearTimeout(silence)
    silence = Number(setTimeout(() => void reader.cancel(), options.silenceMsMax ?? 25_000))
  }
  try {
    for (;;) {
      listen()
      const { done, value } = await reader.read()
      if (done) return
      for (const message of read(value)) {
        if (options.signal.aborted) return
        if (message.event === 'events') {
          options.onEvents((JSON.parse(message.data) as { events: ReceivedEvent[] }).events)
        }
        if (message.id !== null) moved(message.id)
      }
    }
  } finally {
    clearTimeout(silence)
    void reader.cancel().catch(() => {})
  }
}

export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const hurry = (): void => {
      clearTimeout(timer)
      resolve()
    }
    signal.addEventListener('abort', hurry, { once: true })
    // Reconnects at once when the device wakes up or goes online.
    if (typeof window !== 'undefined') window.addEventListener('online', hurry, { once: true, signal })
  })
}
