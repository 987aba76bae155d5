/**
 * The calling side of the readers: sorts reads into lanes and sends each to the least busy reader. The last reader may
 * open on demand, so that a program that reads a little never pays for its thread.
 */
import { StoreError } from '../../contract/errors.ts'
import type { Following } from '../../contract/explore.ts'
import type { Port } from './port.ts'

/** The reads of a lane wait for each other. Lanes alternate. */
export interface Lane {
  name: string
  /** A long read: only one per lane at a time, on one reader, so that a processor stays free for others. */
  isLong: boolean
  /** For a background job: without a deadline. */
  isBackground: boolean
  /** Ends by its own budget instead of the deadline. */
  hasBudget?: true
}

const longVerbs = new Set([
  'sessions.page',
  'sessions.story',
  'events.count',
  'events.filteredCounts',
  'events.histogram',
  'events.series',
  'events.top',
  'events.newValues',
  'events.trustReached',
  'robots.test',
  'audit.list',
])
const backgroundVerbs = new Set([
  'events.recount',
  'events.verify',
  'audit.verify',
  'retention.eventBytes',
  'retention.cutoff',
])

/** A larger page belongs to an export, which reads all events. */
const shortPageMax = 200

export function laneOf(verb: string, command: unknown): Lane {
  const {
    orgId,
    limit = 0,
    filter,
  } = (typeof command === 'object' && command !== null ? command : {}) as {
    orgId?: unknown
    limit?: number
    filter?: { text?: string }
  }
  const name = String(orgId ?? (typeof command === 'string' ? command : verb))
  if (backgroundVerbs.has(verb)) return { name: `${name} background`, isLong: true, isBackground: true }
  // A lane of its own, because it may take a minute.
  if (verb === 'events.explore')
    return { name: `${name} explore`, isLong: true, isBackground: false, hasBudget: true }
  const isWalk = verb === 'events.page' && (limit > shortPageMax || filter?.text !== undefined)
  const isLong = isWalk || longVerbs.has(verb)
  return { name: isLong ? `${name} long` : name, isLong, isBackground: false }
}

/** Reads of a lane at one reader: one that runs and the next, so that the reader need not wait for it. */
const perReaderMax = 2
/** Further reads of the same lane are rejected as overloaded. */
const waitingMax = 1_000
/** The caller has already received a timeout. */
const waitMsMax = 30_000

interface PendingRead {
  verb: string
  query: unknown
  lane: Lane
  sinceMs: number
  answered: PromiseWithResolvers<unknown>
  following: Following | undefined
}

interface OpenLane {
  waiting: PendingRead[]
  atReader: number[] // reads without a response
}

type Reader = Pick<Port, 'ask' | 'open'>

export interface ReadQueue<R extends Reader> {
  ask(verb: string, query: unknown, following?: Following): Promise<unknown>
  /** The readers to close: those that were passed, and the one that was opened on demand. */
  opened(): Promise<R[]>
}

/** The readers, of which `openLast` may open one more. */
function readerPool<R extends Reader>(first: readonly R[], openLast: (() => Promise<R>) | null) {
  const readers = [...first]
  const longAt = Array.from({ length: first.length + (openLast === null ? 0 : 1) }, () => 0)
  let opening: Promise<unknown> | null = null
  return {
    readers,
    longAt, // long reads without a response, also of the reader that is not open yet
    /** Opens the last reader for a long read, or when the others have two each. Meanwhile the others answer. */
    openIfBusy({ isLong }: Lane): void {
      if (openLast === null || opening !== null) return
      if (!isLong && readers.some((reader) => reader.open() < perReaderMax)) return
      // After a failure the next such read tries again.
      opening = openLast().then(
        (reader) => readers.push(reader),
        () => (opening = null),
      )
    },
    /**
     * The least busy reader with a free slot for this lane; -1 for none. Long reads go to the last reader, whose thread
     * has a lower priority, so that pages and ingest never compete with them for a processor.
     */
    freest({ isLong }: Lane, { atReader }: OpenLane): number {
      if (isLong) return atReader.some((count) => count > 0) ? -1 : readers.length - 1
      let best = -1
      let leastLoad = Infinity
      for (const [index, reader] of readers.entries()) {
        const load = reader.open() + longAt[index]!
        if (atReader[index]! >= perReaderMax || load >= leastLoad) continue
        best = index
        leastLoad = load
      }
      return best
    },
    async opened(): Promise<R[]> {
      await opening
      return readers
    },
  }
}

/** `openLast` opens one more reader when the first ones are busy. */
export function readQueue<R extends Reader>(
  first: readonly R[],
  openLast: (() => Promise<R>) | null = null,
): ReadQueue<R> {
  const lanes = new Map<string, OpenLane>()
  const { readers, longAt, openIfBusy, freest, opened } = readerPool(first, openLast)

  function send(lane: OpenLane, read: PendingRead, index: number): void {
    const { verb, query, answered, following } = read
    const long = read.lane.isLong ? 1 : 0
    lane.atReader[index]!++
    longAt[index]! += long
    const answer = readers[index]!.ask(verb, query, following)
    answer.then(answered.resolve, answered.reject)
    const next = () => {
      lane.atReader[index]!--
      longAt[index]! -= long
      sendWaiting(read.lane.name, lane)
    }
    answer.then(next, next)
  }

  function sendWaiting(name: string, lane: OpenLane): void {
    for (let read = lane.waiting[0]; read !== undefined; read = lane.waiting[0]) {
      const index = freest(read.lane, lane)
      if (index < 0) return
      lane.waiting.shift()
      const isLate = performance.now() - read.sinceMs > waitMsMax && !read.lane.isBackground
      if (isLate) read.answered.reject(new StoreError('deadline', `${read.verb} waited too long`))
      else send(lane, read, index)
    }
    if (lane.atReader.every((count) => count === 0)) lanes.delete(name)
  }

  function ask(verb: string, query: unknown, following?: Following): Promise<unknown> {
    if (following?.signal?.aborted) return Promise.reject(cancelled())
    const lane = laneOf(verb, query)
    openIfBusy(lane)
    let open = lanes.get(lane.name)
    if (open === undefined) lanes.set(lane.name, (open = { waiting: [], atReader: longAt.map(() => 0) }))
    if (open.waiting.length >= waitingMax)
      return Promise.reject(
        new StoreError('deadline', `${waitingMax} reads of ${lane.name} are already waiting`),
      )
    const answered = Promise.withResolvers<unknown>()
    const read: PendingRead = { verb, query, lane, sinceMs: performance.now(), answered, following }
    open.waiting.push(read)
    sendWaiting(lane.name, open)
    if (open.waiting.includes(read)) cancelWaiting(open, read)
    return answered.promise
  }

  /** A read that was sent already is ended by its reader. */
  function cancelWaiting(open: OpenLane, read: PendingRead): void {
    read.following?.signal?.addEventListener('abort', () => {
      const index = open.waiting.indexOf(read)
      if (index < 0) return
      open.waiting.splice(index, 1)
      read.answered.reject(cancelled())
    })
  }

  return { ask, opened }
}

/** The error of a read that its caller ended. */
export const cancelled = (): StoreError => new StoreError('cancelled', 'the caller ended the read')
