/**
 * Preloaded by `npm test`: starts the threads of a store from the bundle of the run instead of their sources, and keeps
 * them for the next store, because a new thread compiles everything anew. The store suite takes a third less processor
 * time. `--full` starts new threads, as the executable does.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isFull } from './runs.ts'

/** For the programs that tests start, see `bunProgram` in process.ts. */
process.env['SIGHTGLASS_TEST_THREADS'] = import.meta.path

const folder = join(import.meta.dir, '../../out/threads')

type Options = WorkerOptions & { smol?: boolean; ref?: boolean }
type Handler<E> = ((event: E) => void) | null

/** Sent by a thread in place of its end, with the number of messages that it had received. */
interface Ended {
  endedAfter: number
}

/** A thread, and how many messages it was sent. */
interface Thread {
  worker: Worker & { ref(): void; unref(): void }
  sent: number
}

globalThis.Worker = new Proxy(globalThis.Worker, {
  construct: (target, [url, options = {}]: [string | URL, Options?]) => {
    const path = bundled(String(url))
    if (path === null || isFull) return new target(path ?? url, options)
    const workerOptions = { ...options, preload: import.meta.path } as WorkerOptions
    const start = () => ({ worker: new target(path, workerOptions) as Thread['worker'], sent: 0 })
    return workerOf(`${path} ${options.smol}`, options, start)
  },
})

// A thread ends itself a moment after each request to end.
if (!Bun.isMainThread && !isFull) {
  const exit = process.exit.bind(process)
  let received = 0
  let endings = 0
  addEventListener('message', ({ data }: MessageEvent<unknown>) => {
    received++
    if (data === null || (typeof data === 'string' && /^\[\d+,"close",/.test(data))) endings++
  })
  process.exit = ((code?: number) => {
    if (endings === 0) exit(code)
    else if (--endings === 0) postMessage({ endedAfter: received } satisfies Ended)
  }) as typeof process.exit
}

function bundled(url: string): string | null {
  const name = /\/(db\/(?:copy|(?:sqlite|postgres)\/\w+)\/\w+)\.[jt]s$/.exec(url)?.[1]
  const path = join(folder, `${name}.js`)
  return name !== undefined && existsSync(path) ? pathToFileURL(path).href : null
}

const idle = new Map<string, Thread[]>()

/** What a store uses of a worker, over a thread that is idle or new. */
function workerOf(key: string, { ref = true }: Options, start: () => Thread): object {
  const threads = idle.get(key) ?? []
  idle.set(key, threads)
  const thread = threads.pop() ?? start()
  const { worker } = thread
  if (ref) worker.ref()
  const listeners: (() => void)[] = []
  const facade = {
    onmessage: null as Handler<MessageEvent>,
    onerror: null as Handler<ErrorEvent>,
    postMessage(message: unknown, transfer: never[] = []) {
      thread.sent++
      worker.postMessage(message, transfer)
    },
    addEventListener: (_: 'close', listener: () => void) => void listeners.push(listener),
  }
  const close = () => {
    worker.removeEventListener('close', close)
    facade.postMessage = () => {}
    for (const listener of listeners) listener()
  }
  worker.addEventListener('close', close)
  worker.onerror = (event) => facade.onerror?.(event)
  worker.onmessage = (event: MessageEvent<Partial<Ended> | null>) => {
    const endedAfter = event.data?.endedAfter
    if (endedAfter === undefined) return facade.onmessage?.(event)
    // The next store would get the answer to a message that is still on its way.
    if (endedAfter < thread.sent) return worker.terminate()
    worker.unref()
    worker.onerror = ({ message }) => {
      throw new Error(`a thread failed after its store was closed: ${message}`)
    }
    threads.push(thread)
    close()
  }
  return facade
}
