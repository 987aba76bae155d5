/** A tab's side of the shared stream: looks like a response of /api/live, read from the worker all tabs share. */
import type { EventFilter } from '../api/event-shapes.ts'

/** What tabs and the shared worker that holds the stream say to each other; `n` numbers the streams of a tab. */
export type ToWorker =
  | { kind: 'open'; n: number; base: string; reader: string; filter: EventFilter; after: string }
  | { kind: 'close'; n: number }
  | { kind: 'here' } // the tab still is; a port that went says nothing
  | { kind: 'gone' }

export type ToTab =
  | { kind: 'begin'; n: number }
  | { kind: 'text'; n: number; text: string }
  | { kind: 'end'; n: number }
  | { kind: 'refused'; n: number; status: number; headers: [string, string][]; body: string }
  | { kind: 'unreachable'; n: number }

/** How often a tab says that it is there; a tab in the background may come to it but once a minute. */
const hereEveryMs = 20_000
export const hereMsMax = 150_000

export interface SharedAsk {
  base: string
  filter: EventFilter
  after: string
  signal: AbortSignal
  /** A stream of this tab's own, where the browser shares no workers. */
  direct: () => Promise<Response>
}

type Stream = (message: ToTab) => void

interface Line {
  send(message: ToWorker): void
  open(stream: Stream): number
  close(n: number): void
}

/** A worker that has not answered after this time does not work. */
const answerMsMax = 10_000

let reader = ''
let line: Line | null | undefined

/** Who is signed in, to whom nothing of another's stream may come. */
export function setLiveReader(who: string): void {
  reader = who
}

function connect(base: string): Line | null {
  if (typeof SharedWorker === 'undefined') return null
  const streams = new Map<number, Stream>()
  let last = 0
  const worker = new SharedWorker(`${base}/live-worker.js`, { type: 'module', name: 'sightglass-live' })
  // A worker that cannot be loaded: from now on this tab has a stream of its own.
  worker.addEventListener('error', () => {
    line = null
    for (const [n, stream] of streams) stream({ kind: 'unreachable', n })
  })
  const send = (message: ToWorker): void => worker.port.postMessage(message)
  worker.port.addEventListener('message', ({ data }: MessageEvent<ToTab>) => streams.get(data.n)?.(data))
  worker.port.start()
  setInterval(() => send({ kind: 'here' }), hereEveryMs)
  window.addEventListener('pagehide', () => send({ kind: 'gone' }))
  return {
    send,
    open(stream) {
      last += 1
      streams.set(last, stream)
      return last
    },
    close(n) {
      streams.delete(n)
      send({ kind: 'close', n })
    },
  }
}

/** Rejects with an AbortError when `signal` says so, and with a TypeError when the appliance does not answer. */
export function sharedLive(ask: SharedAsk): Promise<Response> {
  if (line === undefined) line = connect(ask.base)
  const shared = line
  if (shared === null || reader === '') return ask.direct()
  const { base, filter, after, signal, direct } = ask
  return new Promise((resolve, reject) => {
    let body: ReadableStreamDefaultController<Uint8Array> | null = null
    const encoder = new TextEncoder()
    const finish = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      shared.close(n)
    }
    const n = shared.open((message) => {
      if (message.kind === 'begin') {
        clearTimeout(timer)
        const stream = new ReadableStream<Uint8Array>({
          start: (controller) => void (body = controller),
          cancel: finish,
        })
        return resolve(new Response(stream))
      }
      if (message.kind === 'text') return body?.enqueue(encoder.encode(message.text))
      finish()
      if (message.kind === 'end') body?.close()
      else if (message.kind === 'refused')
        resolve(new Response(message.body, { status: message.status, headers: message.headers }))
      else if (line === null) resolve(direct())
      else reject(new TypeError('the appliance does not answer'))
    })
    const onAbort = (): void => {
      finish()
      const reason = new DOMException('given up', 'AbortError')
      body?.error(reason)
      reject(reason)
    }
    const timer = setTimeout(() => {
      finish()
      line = null
      resolve(direct())
    }, answerMsMax)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort)
    shared.send({ kind: 'open', n, base, reader, filter, after })
  })
}
