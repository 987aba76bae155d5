/** This node among those that share a database: its registration, its heartbeat, and the time of the database. */
import { StoreError } from '../../db/contract/errors.ts'
import type { NewNode } from '../../db/contract/nodes.ts'
import type { Store } from '../../db/contract/store.ts'
import { elapsedMs, type Clock } from '../clock.ts'
import type { Log } from '../log.ts'

export interface SharedNode {
  name: string
  /** The time of the database, for leases and due times that nodes share. A jump of the machine's clock keeps it. */
  clock: Clock
  /** How far this machine's clock is ahead of the database's. */
  aheadMs(): number
  /** Tells the other nodes that this one runs, and reads the database's time. */
  beat(): Promise<void>
}

/** Beyond it `doctor` warns: times of arrival and schedules of the nodes no longer agree. */
export const skewMaxMs = 5_000

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
  let wasOff = false
  const now = () => Math.round(storeMs + elapsedMs(clock) - measuredMs)
  const aheadMs = () => clock.now() - now()

  async function measure(): Promise<void> {
    const startedMs = elapsedMs(clock)
    const answer = await nodes.heartbeat({ name: node.name, now: clock.now() })
    measuredMs = (startedMs + elapsedMs(clock)) / 2 // the database answered about then
    storeMs = answer.storeMs
    const isOff = Math.abs(aheadMs()) > skewMaxMs
    if (isOff && !wasOff) log.warn('clock_differs_from_database', { aheadMs: Math.round(aheadMs()) })
    wasOff = isOff
  }

  async function register(): Promise<void> {
    await nodes.register({ node, now: clock.now() })
    await measure()
  }

  await register()
  return {
    name: node.name,
    clock: { now, elapsed: () => elapsedMs(clock) },
    aheadMs,
    async beat() {
      await measure().catch((error: unknown) => {
        // A database that was restored from a backup does not know the node.
        if (!(error instanceof StoreError) || error.kind !== 'not_found') throw error
        return register()
      })
    },
  }
}
