/**
 * Runs operations on files that an operator names, which may be on a network share that stopped answering.
 *
 * An operation that hangs keeps a thread of the process until the share answers, and there may be only three. So at
 * most two such operations run at a time, no second one runs in a folder that hangs, and each caller waits ten seconds
 * only: nothing else of the server, and not its end, waits for a share.
 */
import { dirname } from 'node:path'

const runningMax = 2
const waitMs = 10_000
const endingWaitMs = 1_000

/** The file system does not answer. `code` is like that of its own errors. */
class SlowFiles extends Error {
  readonly code = 'ETIMEDOUT'
}

interface Waiting {
  start(): void
  refuse(error: SlowFiles): void
}

// Of the whole process, like the threads.
let running = 0
const hangingFolders = new Set<string>()
const queue: Waiting[] = []
const waitingCallers = new Set<() => void>()
let isEnding = false

/** At the end of the process nobody waits long. */
export function shortenWaits(): void {
  isEnding = true
  setTimeout(() => waitingCallers.forEach((giveUp) => giveUp()), endingWaitMs).unref()
}

interface Within<T> {
  path: string // names the folder
  /** Releases what an operation returns after its caller stopped waiting, such as an open file. */
  discard?(late: T): void
}

/** Rejects with the error of the work, or with the code ETIMEDOUT. */
export async function withinTime<T>({ path, discard }: Within<T>, work: () => Promise<T>): Promise<T> {
  const folder = dirname(path)
  await turn(folder)
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  let isLate = false
  const giveUp = (): void => {
    waitingCallers.delete(giveUp)
    isLate = true
    hangingFolders.add(folder)
    reject(new SlowFiles('does not answer: its file system hangs'))
    if (hangingFolders.size >= runningMax)
      for (const waiting of queue.splice(0)) waiting.refuse(tooManyHang())
  }
  const timer = setTimeout(giveUp, isEnding ? endingWaitMs : waitMs)
  waitingCallers.add(giveUp)
  const settle = (end: () => void): void => {
    clearTimeout(timer)
    waitingCallers.delete(giveUp)
    if (isLate) hangingFolders.delete(folder)
    running--
    queue.shift()?.start()
    end()
  }
  work().then(
    (result) => settle(() => (isLate ? discard?.(result) : resolve(result))),
    (error: unknown) => settle(() => reject(error)),
  )
  return promise
}

/** Waits until an operation may start. */
async function turn(folder: string): Promise<void> {
  for (;;) {
    if (hangingFolders.has(folder)) throw new SlowFiles('does not answer: its file system hangs')
    if (hangingFolders.size >= runningMax) throw tooManyHang()
    if (running < runningMax) {
      running++
      return
    }
    await new Promise<void>((start, refuse) => queue.push({ start, refuse }))
  }
}

const tooManyHang = (): SlowFiles => new SlowFiles('is not tried: the file systems of other files hang')
