/** The calling side of the readers: sorts reads into lanes and sends each to the least busy reader. */
import { StoreError } from '../../contract/errors.ts'
import type { Port } from './port.ts'

/** The reads of a lane wait for each other. Lanes alternate. */
export interface Lane {
  name: string
  /** A long read: only one per lane at a time, on one reader, so that a processor stays free for others. */
  isLong: boolean
  /** For a background job: without a deadline. */
  isBackground: boolean
}

const longVerbs = new Set([
  'sessions.page',
  'sessions.story',
  'events.count',
  'events.filteredCounts',
  'events.histogram',
  'events.top',
  'events.newValues',
  'events.trustReached',
  'audit.list',
])
const backgroundVerbs = new Set([
  ...['events.recount', 'events.verify', 'audit.verify', 'retention.eventBytes', 'retention.cutoff'],
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
}

interface OpenLane {
  waiting: PendingRead[]
  atReader: number[] // reads without a response
}

export type AskReaders = (verb: string, query: unknown) => Promise<unknown>

export function readQueue(readers: Pick<Port, 'ask' | 'open'>[]): AskReaders {
  const lanes = new Map<string, OpenLane>()
  const longAt = readers.map(() => 0)

  /**
   * The least busy reader with a free slot for this lane; -1 for none. Long reads go to the last reader, whose thread
   * has a lower priority, so that pages and ingest never compete with them for a processor.
   */
  function freest({ isLong }: Lane, { atReader }: OpenLane): number {
    if (isLong) return atReader.some((count) => count > 0) ? -1 : readers.length - 1
    let best = -1
    let least = Infinity
    for (const [index, reader] of readers.entries()) {
      const load = reader.open() + longAt[index]!
      if (atReader[index]! >= perReaderMax || load >= least) continue
      best = index
      least = load
    }
    return best
  }

  function send(lane: OpenLane, read: PendingRead, index: number): void {
    const { verb, query, answered } = read
    const long = read.lane.isLong ? 1 : 0
    lane.atReader[index]!++
    longAt[index]! += long
    const answer = readers[index]!.ask(verb, query)
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

  return (verb, query) => {
    const lane = laneOf(verb, query)
    let open = lanes.get(lane.name)
    if (open === undefined) lanes.set(lane.name, (open = { waiting: [], atReader: readers.map(() => 0) }))
    if (open.waiting.length >= waitingMax)
      return Promise.reject(
        new StoreError('deadline', `${waitingMax} reads of ${lane.name} are already waiting`),
      )
    const answered = Promise.withResolvers<unknown>()
    open.waiting.push({ verb, query, lane, sinceMs: performance.now(), answered })
    sendWaiting(lane.name, open)
    return answered.promise
  }
}
