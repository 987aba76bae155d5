/** The live stream in a tab: a response from the shared worker, their messages, and the parser of the stream. */
import type { EventFilter } from './event-shapes.ts'

/** The messages between tabs and the shared worker. `n` numbers the streams of a tab. */
export type ToWorker =
  | { kind: 'open'; n: number; base: string; reader: string; filter: EventFilter; after: string }
  | { kind: 'close'; n: number }
  | { kind: 'here' } // heartbeat of the tab, because a closed port sends nothing
  | { kind: 'gone' }

export type ToTab =
  | { kind: 'begin'; n: number }
  | { kind: 'text'; n: number; text: string }
  | { kind: 'end'; n: number }
  | { kind: 'refused'; n: number; status: number; headers: [string, string][]; body: string }
  | { kind: 'unreachable'; n: number }

/** Heartbeat interval of a tab. Browsers throttle timers of background tabs to one per minute. */
const hereEveryMs = 20_000
export const hereMsMax = 150_000

interface SharedAsk {
  base: string
  filter: EventFilter
  after: string
  signal: AbortSignal
  /** Opens a stream of this tab alone, for browsers without shared workers. */
  direct: () => Promise<Response>
}

type Stream = (message: ToTab) => void

interface Line {
  send(message: ToWorker): void
  open(stream: Stream): number
  close(n: number): void
}

/** A worker without a response after this time is broken. */
const answerMsMax = 10_000

let reader = ''
let line: Line | null | undefined

/** Identifies the person and organization, so that their events reach nobody else. */
export function setLiveReader(who: string): void {
  reader = who
}

function connect(base: string): Line | null {
  if (typeof SharedWorker === 'undefined') return null
  const streams = new Map<number, Stream>()
  let last = 0
  const worker = new SharedWorker(`${base}/live-worker.js`, { type: 'module', name: 'sightglass-live' })
  // The worker cannot be loaded, so this tab uses a stream of its own.
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

/**
 * A response like that of /api/live, read from the worker that all tabs share. Rejects with an AbortError when `signal`
 * aborts, and with a TypeError when the appliance does not respond.
 */
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
      else reject(new TypeError('the appliance does not respond'))
    })
    const onAbort = (): void => {
      finish()
      const reason = new DOMException('aborted', 'AbortError')
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

/** A message of a server-sent event stream. */
export interface StreamMessage {
  event: string
  id: string | null
  data: string
}

/** A stateful parser: accepts text wherever the network splits it, and returns the complete messages. */
export function messageReader(): (text: string) => StreamMessage[] {
  let rest = ''
  let lines: string[] = []
  return (text) => {
    const messages: StreamMessage[] = []
    rest += text
    // A carriage return at the end may be the first half of CRLF, so it waits for more text.
    const whole = rest.split(/\r\n|\n|\r(?!$)/)
    rest = whole.pop() ?? ''
    for (const line of whole) {
      if (line !== '') {
        lines.push(line)
        continue
      }
      const message = messageOf(lines)
      if (message !== null) messages.push(message)
      lines = []
    }
    return messages
  }
}

function messageOf(lines: string[]): StreamMessage | null {
  let event = 'message'
  let id: string | null = null
  const data: string[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon === 0) continue // a comment, sent as a heartbeat
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'event') event = value
    else if (name === 'id') id = value
    else if (name === 'data') data.push(value)
  }
  return data.length === 0 ? null : { event, id, data: data.join('\n') }
}
