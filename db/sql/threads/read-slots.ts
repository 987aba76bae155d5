/** The reader's side of the lanes: starts a read when it arrives, and runs long reads in alternating slices. */
import { StoreError } from '../../contract/errors.ts'
import { cancelled, laneOf, type Lane } from './read-queue.ts'
import type { Call } from './port.ts'
import { beginSlice, isSliced, type Sliced } from '../slices.ts'

/** How long another organization's read waits at most, except for work that no slice divides. */
const sliceMs = 8

export interface ReadSlots {
  /** Answers once. `run` may return a result or a generator of slices. */
  ask(verb: string, command: unknown, run: (connection: number) => unknown, call?: Call): Promise<unknown>
  /** Ends the read of this call between two slices. It is answered with `cancelled`. */
  cancel(id: number): void
  /** Ends all unanswered reads. */
  end(error: StoreError): void
}

interface SlotsOptions {
  /** Counts a read's own time, without that of others. */
  deadlineMs: number
  /** A read keeps its connection until it ends, because its transaction is one snapshot. */
  connectionsMax: number
  /** Calls back after other messages were handled. */
  later?: (go: () => void) => void
}

interface PendingRead {
  verb: string
  lane: Lane
  run: (connection: number) => unknown
  answered: PromiseWithResolvers<unknown>
  connection: number
  slices: Sliced<unknown> | null
  usedMs: number
  call: Call | undefined
  isCancelled: boolean
}

/** The outcome of a read's next slice; null when there are more. */
type Ended = { result: unknown } | { error: unknown } | null

export function readSlots({ deadlineMs, connectionsMax, later = setImmediate }: SlotsOptions): ReadSlots {
  const lanes = new Map<string, PendingRead[]>() // the first read of each has started or is ready to
  const ready: PendingRead[] = []
  const running: PendingRead[] = []
  const connections = freeConnections(connectionsMax)
  let isDue = false

  function schedule(): void {
    if (isDue || (ready.length === 0 && running.length === 0)) return
    isDue = true
    later(step)
  }

  /** Starts a read that is ready, and continues the one that has waited longest. */
  function step(): void {
    isDue = false
    const next = ready[0]
    if (next !== undefined && begin(next)) ready.shift()
    const read = running.shift()
    if (read !== undefined) settle(read, nextSlice(read, deadlineMs))
    schedule()
  }

  /** False while no connection is free. */
  function begin(read: PendingRead): boolean {
    read.connection = connections.take(read.lane)
    if (read.connection < 0) return false
    settle(read, firstSlice(read, deadlineMs))
    return true
  }

  function settle(read: PendingRead, ended: Ended): void {
    if (ended === null) {
      running.push(read)
      return
    }
    connections.giveBack(read.connection)
    if ('error' in ended) read.answered.reject(ended.error)
    else read.answered.resolve(ended.result)
    const lane = lanes.get(read.lane.name)
    lane?.shift()
    if (lane?.[0] !== undefined) ready.push(lane[0])
    else lanes.delete(read.lane.name)
  }

  return {
    ask(verb, command, run, call) {
      const read = pendingRead(verb, laneOf(verb, command), run, call)
      const { lane, answered } = read
      const laneReads = lanes.get(lane.name)
      if (laneReads !== undefined) laneReads.push(read)
      else {
        lanes.set(lane.name, [read])
        if (ready.length > 0 || !begin(read)) ready.push(read)
      }
      schedule()
      return answered.promise
    },
    cancel(id) {
      const read = [...lanes.values()].flat().find(({ call }) => call?.id === id)
      if (read !== undefined) read.isCancelled = true
    },
    end(error) {
      for (const { slices } of running.splice(0)) thrownInto(slices, error)
      for (const { answered } of [...lanes.values()].flat()) answered.reject(error)
      lanes.clear()
      ready.length = 0
    },
  }
}

function pendingRead(verb: string, lane: Lane, run: PendingRead['run'], call: Call | undefined): PendingRead {
  const answered = Promise.withResolvers<unknown>()
  const unused = { connection: -1, slices: null, usedMs: 0, isCancelled: false }
  return { verb, lane, run, answered, call, ...unused }
}

function firstSlice(read: PendingRead, deadlineMs: number): Ended {
  if (read.isCancelled) return { error: cancelled() }
  beginSlice(Math.min(sliceMs, deadlineMs))
  try {
    const result = read.run(read.connection)
    if (!isSliced(result)) return { result }
    read.slices = result
  } catch (error) {
    return { error }
  }
  return nextSlice(read, deadlineMs)
}

function nextSlice(read: PendingRead, deadlineMs: number): Ended {
  const { slices, verb, lane, isCancelled } = read
  const isLate = read.usedMs > deadlineMs && !lane.isBackground && !lane.hasBudget
  if (isLate || isCancelled) {
    const late = () => new StoreError('deadline', `${verb} took longer than ${deadlineMs} ms`)
    const error = isCancelled ? cancelled() : late()
    thrownInto(slices, error)
    return { error }
  }
  const startMs = performance.now()
  beginSlice(Math.min(sliceMs, deadlineMs))
  try {
    const slice = slices!.next()
    read.usedMs += performance.now() - startMs
    if (slice.done) return { result: slice.value }
    if (typeof slice.value === 'number') read.call?.report(slice.value)
    return null
  } catch (error) {
    return { error }
  }
}

/** Ends a read between two slices, and with it its transaction. */
function thrownInto(slices: Sliced<unknown> | null, error: StoreError): void {
  try {
    slices?.throw(error)
  } catch {
    return // it is the error itself
  }
}

function freeConnections(max: number) {
  const busyConnections = new Set<number>()
  return {
    /** Long reads leave the first connection, which caches counts, to others when possible. -1: none is free. */
    take({ isLong }: Lane): number {
      for (let n = 0; n < max; n++) {
        const connection = isLong ? (n + 1) % max : n
        if (busyConnections.has(connection)) continue
        busyConnections.add(connection)
        return connection
      }
      return -1
    },
    giveBack: (connection: number) => void busyConnections.delete(connection),
  }
}
