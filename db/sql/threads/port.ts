/** Both ends of a worker: `openPort` sends requests and matches responses, `serve` answers them in order. */
import { StoreError } from '../../contract/errors.ts'
import {
  failureOf,
  packAnswer,
  packRequest,
  unpackAnswer,
  unpackRequest,
  type Answer,
  type Progress,
} from './protocol.ts'
import type { Following } from '../../contract/explore.ts'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

export interface Port {
  /** A reader reports the progress of a long read, and ends one whose signal aborts. */
  ask(verb: string, command: unknown, following?: Following): Promise<unknown>
  /** Like `ask`, for a message that `pack` writes around the given id. */
  askPacked(pack: (id: number) => string): Promise<unknown>
  /** Requests without a response. */
  open(): number
  /** Fulfilled when the worker has ended. */
  ended: Promise<void>
}

interface PendingRequest {
  resolve(result: unknown): void
  reject(error: StoreError): void
  onProgress: Following['onProgress']
}

/** `url` is the worker's module, `name` its name in errors. A reader's heap begins small, see `gcOptions`. */
export function openPort(name: string, url: string): Port {
  const worker = new Worker(url, { name: `store ${name}`, smol: name === 'reader' })
  const pending = new Map<number, PendingRequest>()
  let lastId = 0
  let death: StoreError | null = null

  function die(error: StoreError): void {
    death ??= error
    for (const request of pending.values()) request.reject(death)
    pending.clear()
  }

  worker.onmessage = ({ data }: MessageEvent<string>) => {
    const [id, result, failure] = unpackAnswer(data)
    const request = pending.get(id)
    if (failure === 'progress') return request?.onProgress?.(result)
    pending.delete(id)
    if (failure === undefined) request?.resolve(result)
    else request?.reject(new StoreError(failure.kind, failure.message))
  }
  worker.onerror = (event) => {
    die(new StoreError('internal', `the ${name} of the store failed: ${event.message}`))
  }
  const ended = new Promise<void>((resolve) => {
    worker.addEventListener('close', () => {
      die(new StoreError('closed', 'the store is closed'))
      resolve()
    })
  })

  function askPacked(pack: (id: number) => string, following: Following = {}): Promise<unknown> {
    if (death !== null) return Promise.reject(death)
    const id = ++lastId
    const { signal, onProgress } = following
    const answer = new Promise<unknown>((resolve, reject) => {
      pending.set(id, { resolve, reject, onProgress })
      worker.postMessage(pack(id))
    })
    if (signal === undefined) return answer
    // The worker answers the read itself with `cancelled`.
    const cancel = () => worker.postMessage(JSON.stringify([++lastId, 'cancel', id]))
    signal.addEventListener('abort', cancel)
    return answer.finally(() => signal.removeEventListener('abort', cancel))
  }

  return {
    ask: (verb, command, following) => askPacked((id) => packRequest(id, verb, command), following),
    askPacked,
    open: () => pending.size,
    ended,
  }
}

/** The worker's side of a port. Every message is answered once, in order of arrival. */
declare const self: Worker

/** A request as a worker sees it: its number, by which it can be cancelled, and how to report progress. */
export interface Call {
  id: number
  report(share: number): void
}

/**
 * `storeError` translates the engine's errors. `handle` completes one request before the next, unless it returns a
 * promise.
 */
export function serve(
  storeError: (error: unknown, verb: string) => StoreError,
  handle: (verb: string, command: unknown, parts: string[], call: Call) => unknown,
): void {
  self.onmessage = ({ data }: MessageEvent<string>) => {
    const { request, parts } = unpackRequest(data)
    const [id, verb, command] = request
    const answer = (result: unknown) => self.postMessage(packAnswer(id, verb, result))
    const report = (share: number) =>
      self.postMessage(JSON.stringify([id, share, 'progress'] satisfies Progress))
    const refuse = (error: unknown) =>
      self.postMessage(JSON.stringify([id, null, failureOf(storeError(error, verb))] satisfies Answer))
    try {
      const result = handle(verb, command, parts, { id, report })
      if (result instanceof Promise) void result.then(answer).catch(refuse)
      else answer(result)
    } catch (error) {
      refuse(error)
    }
  }
}

/** Ends the calling thread after the response to its present request, also when that is an error. */
export function endThread(): void {
  setTimeout(() => process.exit(0)) // in a worker this ends the thread only
}

/** From 0 (like all others) to 19: with 3 a thread gets half the time of another when both need a processor. */
const niceness = 3

/**
 * For the calling thread alone, which only Linux supports. Beside full ingest on two cores, pages of events then took a
 * fifth less time, at the same rate of ingest. Without permission nothing changes.
 */
export function giveWay(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), niceness)
  } catch {
    return
  }
}
