/** This node among those that share a database: its registration, its heartbeat, and the time of the database. */
import { StoreError } from '../../db/contract/errors.ts'
import type { NewNode, NodeReport } from '../../db/contract/nodes.ts'
import type { Store } from '../../db/contract/store.ts'
import { elapsedMs, type Clock } from '../clock.ts'
import type { Log } from '../log.ts'

export interface SharedNode {
  name: string
  /** The time of the database, for leases and due times that nodes share. A jump of the machine's clock keeps it. */
  clock: Clock
  /** How far this machine's clock is ahead of the database's. */
  aheadMs(): number
  /** Tells the other nodes that this one runs and what it reports, and reads the database's time. */
  beat(report?: Omit<NodeReport, 'aheadMs'>): Promise<void>
  /** Another process has registered under the name of this node since. */
  isNamedTwice(): boolean
  /** Tells the other nodes that this one has ended. */
  leave(): Promise<void>
}

/** Beyond it `doctor` warns: times of arrival and schedules of the nodes no longer agree. */
export const skewMaxMs = 5_000

/** Nodes report every 5 s. One that was not seen for longer is gone, suspended or cut off. */
export const seenMsMax = 20_000

/** Of two clocks that nobody adjusts. */
const driftMax = 200e-6

interface NodeOptions {
  store: Pick<Store, 'nodes'>
  node: NewNode
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** Registers the node. */
export async function startNode({ store: { nodes }, node, clock, log }: NodeOptions): Promise<SharedNode> {
  let storeMs = 0
  let measuredMs = 0 // in `elapsedMs`
  let errorMs = Infinity // at most, of `storeMs` then
  let startedAtMs = 0 // of the store's clock
  let wasOff = false
  let wasNamedTwice = false
  const now = () => Math.round(storeMs + elapsedMs(clock) - measuredMs)
  const aheadMs = () => clock.now() - now()

  async function measure(report: NodeReport | null): Promise<void> {
    const beganMs = elapsedMs(clock)
    const answer = await nodes.heartbeat({ name: node.name, report, now: clock.now() })
    const endedMs = elapsedMs(clock)
    const error = (endedMs - beganMs) / 2
    const atMs = (beganMs + endedMs) / 2 // the database answered about then
    const expected = storeMs + atMs - measuredMs
    const expectedError = errorMs + (atMs - measuredMs) * driftMax
    // A slow answer says less than an earlier quick one, and times must not go back and forth.
    if (error <= expectedError || Math.abs(answer.storeMs - expected) > error + expectedError) {
      measuredMs = atMs
      storeMs = answer.storeMs
      errorMs = error
    }
    const isOff = Math.abs(aheadMs()) > skewMaxMs
    if (isOff && !wasOff) log.warn('clock_differs_from_database', { aheadMs: Math.round(aheadMs()) })
    wasOff = isOff
    const isNamedTwice = answer.startedAtMs !== startedAtMs
    if (isNamedTwice && !wasNamedTwice) log.warn('node_name_used_twice', { node: node.name })
    wasNamedTwice = isNamedTwice
  }

  async function register(): Promise<void> {
    ;({ startedAtMs } = await nodes.register({ node, now: clock.now() }))
    await measure(null)
  }

  await register()
  return {
    name: node.name,
    clock: { now, elapsed: () => elapsedMs(clock) },
    aheadMs,
    isNamedTwice: () => wasNamedTwice,
    async beat(report) {
      const whole = report === undefined ? null : { ...report, aheadMs: Math.round(aheadMs()) }
      await measure(whole).catch((error: unknown) => {
        // A database that was restored from a backup does not know the node.
        if (!(error instanceof StoreError) || error.kind !== 'not_found') throw error
        return register()
      })
    },
    leave: () => nodes.leave({ name: node.name, startedAtMs }),
  }
}
