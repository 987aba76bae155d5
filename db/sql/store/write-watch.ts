/** Remembers whether the last write failed as every other one would, and finds out when writes work again. */
import { StoreError, type StoreErrorKind } from '../../contract/errors.ts'
import type { AppendOutcome } from '../threads/protocol.ts'

export interface WriteWatch {
  /** Notes a failure. A success proves little: a verb that finds nothing to change writes nothing. */
  verb<T>(written: Promise<T>): Promise<T>
  append(stored: Promise<AppendOutcome[]>): Promise<AppendOutcome[]>
  /** After a failure it tries a small write, because nobody else writes to a store that is not ready. */
  failure(): Promise<StoreErrorKind | null>
}

/** Failures that do not depend on what is written. After `io` and the like the process ends anyway. */
const ofEveryWrite: readonly StoreErrorKind[] = [
  'not_writable',
  'read_only',
  'storage_full',
  'locked',
  'unavailable',
]

/** However many ask. */
const checkEveryMs = 500

/** A write may wait longer for a lock. Then the failure stands. */
const answerMsMax = 2_000

/** On a full disk a small write may find space where events do not, so it proves nothing for so long. */
const fullMs = 10_000

export function writeWatch(smallWrite: () => Promise<unknown>): WriteWatch {
  let failure: StoreErrorKind | null = null
  let failedAtMs = -Infinity
  let checkedAtMs = -Infinity
  let checking: Promise<void> | null = null

  function note(kind: StoreErrorKind): void {
    if (!ofEveryWrite.includes(kind)) return
    failure = kind
    failedAtMs = performance.now()
  }

  function noteError(error: unknown): void {
    if (error instanceof StoreError) note(error.kind)
  }

  async function check(): Promise<void> {
    try {
      await smallWrite()
      failure = null
    } catch (error) {
      noteError(error)
    }
    checkedAtMs = performance.now()
  }

  function isCheckDue(): boolean {
    const nowMs = performance.now()
    const isFull = failure === 'storage_full' && nowMs - failedAtMs < fullMs
    return failure !== null && !isFull && nowMs - checkedAtMs >= checkEveryMs
  }

  return {
    verb(written) {
      written.catch(noteError)
      return written
    },
    append(stored) {
      stored.then((outcomes) => {
        for (const outcome of outcomes) {
          if ('kind' in outcome) note(outcome.kind)
          else if (outcome.accepted > 0) failure = null
        }
      }, noteError)
      return stored
    },
    async failure() {
      if (checking === null && isCheckDue()) checking = check().finally(() => (checking = null))
      if (checking !== null) await Promise.race([checking, Bun.sleep(answerMsMax)])
      return failure
    },
  }
}
