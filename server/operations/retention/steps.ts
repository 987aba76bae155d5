/** Deletes in steps, so that ingest gets the writer between them; works on a full disk. */
import { StoreError } from '../../../db/contract/errors.ts'
import type { Store } from '../../../db/contract/store.ts'

const pauseMs = 20

export interface Steps {
  /** `small` requests a step that needs little space in the write-ahead log. */
  once<T>(step: (small: boolean) => Promise<T>): Promise<T>
  /** Returns the sum of `took` over all steps. Throws between two steps when it must end. */
  untilDone<T extends { done: boolean }>(
    step: (small: boolean) => Promise<T>,
    took: (part: T) => number,
  ): Promise<number>
}

/**
 * Deleting events writes to the write-ahead log first. On a full disk the reserve is released once to make space for
 * that; from then on steps are small and the log is truncated after each, which frees pages of the database.
 */
export function makeSteps({ retention }: Pick<Store, 'retention'>, ending: AbortSignal): Steps {
  let tight = false

  async function once<T>(step: (small: boolean) => Promise<T>): Promise<T> {
    try {
      const done = await step(tight)
      if (tight) await retention.truncateLog()
      return done
    } catch (error) {
      if (tight || !(error instanceof StoreError) || error.kind !== 'storage_full') throw error
      tight = true
      await retention.truncateLog()
      await retention.dropReserve()
      const done = await step(true)
      await retention.truncateLog()
      return done
    }
  }

  return {
    once,
    async untilDone(step, took) {
      for (let sum = 0; ;) {
        const part = await once(step)
        sum += took(part)
        if (part.done) return sum
        await Bun.sleep(pauseMs)
        ending.throwIfAborted()
      }
    },
  }
}
