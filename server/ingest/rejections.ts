/**
 * Keeps what ingest refused for the ingest-health page: gathered while a write runs, so that a flood costs few
 * writes.
 */
import type { RejectedSample, Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'

export interface Rejections {
  keep(samples: RejectedSample[]): void
  /** Resolves when what was kept so far is written, or could not be. */
  settled(): Promise<void>
}

/** No organization keeps more than its newest thousand, so more than that never needs to wait either. */
const waitingMax = 1_000

export function makeRejections(store: Pick<Store, 'rejected'>, log: Log): Rejections {
  let waiting: RejectedSample[] = []
  let writing: Promise<void> | null = null

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const samples = waiting
      waiting = []
      // A sample helps somebody to mend a sender; losing one to a full disk must not fail the sender's request.
      await store.rejected.add(samples).catch((error: unknown) => {
        log.warn('rejected_samples_not_kept', { count: samples.length, message: String(error) })
      })
    }
    writing = null
  }

  return {
    keep(samples) {
      waiting = [...waiting, ...samples].slice(-waitingMax)
      writing ??= writeAll()
    },
    settled: async () => void (await writing),
  }
}
