/** Takes away in steps: ingest has the writer to itself between two of them, and a full disk does not end it. */
import { StoreError } from '../../../db/contract/errors.ts'
import type { Store } from '../../../db/contract/store.ts'

const pauseMs = 20

export interface Steps {
  /** `small` asks for a step that needs little room in the log. */
  once<T>(step: (small: boolean) => Promise<T>): Promise<T>
  /** Returns the sum of what `took` reads from each step. Throws between two of them when it is to end. */
  untilDone<T extends { done: boolean }>(
    step: (small: boolean) => Promise<T>,
    took: (part: T) => number,
  ): Promise<number>
}

/**
 * Taking events away writes to the log first. On a full disk the reserve is the room for that: it is given up once, and
 * from then on steps are small and the log is emptied after each, which turns them into free pages of the database.
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
