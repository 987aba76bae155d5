/** How long work on stored data runs: one organization after the other, in bounded steps, also on a full disk. */
import { StoreError, type StoreErrorKind } from '../../db/contract/errors.ts'
import type { Store } from '../../db/contract/store.ts'

/**
 * Runs `work` for one organization after the other. One whose data cannot be read or changed does not hold up the
 * others: returns the first such failure, for the caller to throw at its end. Throws any other.
 */
export async function forEachOrg(
  orgIds: readonly string[],
  work: (orgId: string) => Promise<void>,
  kinds: readonly StoreErrorKind[] = kindsOfOne,
): Promise<StoreError | null> {
  let failure: StoreError | null = null
  for (const id of orgIds) {
    try {
      await work(id)
    } catch (error) {
      if (!(error instanceof StoreError) || !kinds.includes(error.kind)) throw error
      failure ??= new StoreError(error.kind, `organization ${id}: ${error.message}`, { cause: error })
    }
  }
  return failure
}

/** Failures that need not concern every organization. A `conflict` may be a lost lease, which ends the run. */
export const kindsOfOne: StoreErrorKind[] = ['corrupt', 'internal', 'not_found', 'read_only']

export const orgIdsOf = async ({ orgs }: Pick<Store, 'orgs'>): Promise<string[]> =>
  (await orgs.list()).map(({ id }) => id)

const pauseMs = 20

interface Steps {
  once<T>(step: () => Promise<T>): Promise<T>
  /** Returns the sum of `countOf` over all steps. Throws between two steps when it must end. */
  untilDone<T extends { done: boolean }>(
    step: () => Promise<T>,
    countOf: (part: T) => number,
  ): Promise<number>
}

/**
 * Deleting needs space on the disk before it frees any. After the first step that a full disk rejects, the store makes
 * space for small steps, and returns what each of them deleted.
 */
export function makeSteps({ retention }: Pick<Store, 'retention'>, ending: AbortSignal): Steps {
  let tight = false

  async function once<T>(step: () => Promise<T>): Promise<T> {
    try {
      const done = await step()
      if (tight) await retention.maintain({ reason: 'deleted' })
      return done
    } catch (error) {
      if (tight || !(error instanceof StoreError) || error.kind !== 'storage_full') throw error
      tight = true
      await retention.maintain({ reason: 'full' })
      const done = await step()
      await retention.maintain({ reason: 'deleted' })
      return done
    }
  }

  return {
    once,
    async untilDone(step, countOf) {
      for (let sum = 0; ;) {
        const part = await once(step)
        sum += countOf(part)
        if (part.done) return sum
        await Bun.sleep(pauseMs)
        ending.throwIfAborted()
      }
    },
  }
}
