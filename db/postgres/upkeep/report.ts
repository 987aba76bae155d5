/** What the keeper of a node reports after each run, as its store remembers it. */
import type { Upkeep } from '../../contract/nodes.ts'
import type { Port } from '../../sql/threads/port.ts'

export interface KeeperReport extends Pick<Upkeep, 'runs' | 'failures' | 'lastFailure'> {
  isFailing: boolean // in the last run
}

/** Follows the reports from the start of the thread until its end. Returns what is known now. */
export function followKeeper(started: Promise<Port>): () => Upkeep {
  let last: KeeperReport = { runs: 0, failures: 0, lastFailure: null, isFailing: false }
  let endedMs = performance.now()
  let failingSinceMs: number | null = null
  const follow = async (): Promise<void> => {
    const keeper = await started
    for (;;) {
      last = (await keeper.ask('next', null)) as KeeperReport
      endedMs = performance.now()
      failingSinceMs = last.isFailing ? (failingSinceMs ?? endedMs) : null
    }
  }
  follow().catch(() => undefined) // the store was closed
  return () => {
    const { runs, failures, lastFailure } = last
    const failingMs = failingSinceMs === null ? null : performance.now() - failingSinceMs
    return { runs, failures, lastFailure, failingMs, ageMs: performance.now() - endedMs }
  }
}
