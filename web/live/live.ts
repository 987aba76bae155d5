/** Follows the live stream of events and comes back after every break at the place where it stood. */
import { ApiError, type ReceivedEvent } from '../api/api.ts'
import { messageReader } from './sse.ts'

export type LiveState =
  { state: 'connecting' | 'live' } | { state: 'lost'; error: ApiError | null; retryInMs: number }

/** The request itself was wrong, such as an unknown filter in the address: retrying would not help. */
export function isRefused(error: ApiError | null): boolean {
  return error !== null && error.status >= 400 && error.status < 500 && error.status !== 429
}

export interface LiveOptions {
  after: string // the position to continue from
  open: (after: string, signal: AbortSignal) => Promise<Response>
  onEvents: (events: ReceivedEvent[]) => void
  onState: (state: LiveState) => void
  /** The server does not know our position any more (another data folder): start over from the newest page. */
  onForgotten: () => void
  signal: AbortSignal
  wait?: (ms: number, signal: AbortSignal) => Promise<void> // for tests
  silenceMsMax?: number // the server sends a comment every 10 s; longer silence is a dead line
}

const retryMs = [250, 500, 1_000, 2_000, 4_000] as const

/** Runs until `signal` aborts. Ids move the position only after their events were handed over, so no gap can open. */
export async function followLive(options: LiveOptions): Promise<void> {
  const { open, onState, signal, wait = sleep } = options
  let { after } = options
  let failures = 0
  while (!signal.aborted) {
    onState(failures === 0 ? { state: 'connecting' } : { state: 'lost', error: null, retryInMs: 0 })
    let error: ApiError | null = null
    let openedAtMs = Number.POSITIVE_INFINITY
    try {
      const answer = await open(after, signal)
      failures = 0
      openedAtMs = performance.now()
      onState({ state: 'live' })
      await readStream(answer, options, (position) => (after = position))
      // The server ends every stream after half an hour; one that lived is simply opened again.
      if (performance.now() - openedAtMs > 60_000) continue
    } catch (cause) {
      error = cause instanceof ApiError ? cause : null
    }
    if (signal.aborted) return
    if (error?.status === 401) return
    if (error?.status === 400) {
      await wait(1_000, signal) // never in a tight circle, whatever the server dislikes
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

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const hurry = (): void => {
      clearTimeout(timer)
      resolve()
    }
    signal.addEventListener('abort', hurry, { once: true })
    // A reader who opens the lid or plugs the cable in need not wait out a pause.
    if (typeof window !== 'undefined') window.addEventListener('online', hurry, { once: true, signal })
  })
}
