/** After a device has failed, rejects every later write, and makes the event engine reload its memory. */
import { endsWriting, type StoreError } from '../../contract/errors.ts'
import type { EventWriter } from '../events/engine.ts'
import { storeError } from '../file/failure.ts'

export interface FailureLatch {
  /**
   * Runs one piece of writing and throws a StoreError when it fails. Once a device has failed, what is in memory and
   * what is on disk may differ: from then on nothing runs and nothing is acknowledged any more.
   */
  run<T>(doing: string, work: () => T): T
  /** The event engine, for work that has it take part: only then need its memory follow the transaction. */
  engine(): EventWriter
  /** Tells the engine, when it took part, that the transaction is on disk. */
  committed(): void
}

export function failureLatch(events: EventWriter): FailureLatch {
  let broken: StoreError | null = null
  let engineUsed = false

  function undone(doing: string, error: unknown): StoreError {
    const failure = storeError(error, doing)
    if (endsWriting(failure)) broken = failure
    try {
      if (engineUsed) events.rolledBack() // reads a good deal anew: not for every refused key
    } catch (second) {
      broken ??= storeError(second, 'the memory of the event engine was lost')
    }
    return failure
  }

  return {
    run(doing, work) {
      if (broken !== null) throw broken
      engineUsed = false
      try {
        return work()
      } catch (error) {
        throw undone(doing, error)
      }
    },
    engine() {
      engineUsed = true
      return events
    },
    committed() {
      if (engineUsed) events.committed()
    },
  }
}
