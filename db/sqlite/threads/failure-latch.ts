/** Rejects every write after a device failure, and makes the event engine reload its memory after a rollback. */
import { endsWriting, type StoreError } from '../../contract/errors.ts'
import type { EventWriter } from '../events/engine.ts'
import { storeError } from '../file/failure.ts'

export interface FailureLatch {
  /**
   * Runs one write and throws a StoreError when it fails. After a device failure memory and disk may differ, so nothing
   * runs and nothing is acknowledged any more.
   */
  run<T>(doing: string, work: () => T): T
  /** The event engine, for writes that use it. Only then must its memory follow the transaction. */
  engine(): EventWriter
  /** Tells the engine, when it was used, that the transaction was committed. */
  committed(): void
}

export function failureLatch(events: EventWriter): FailureLatch {
  let broken: StoreError | null = null
  let engineUsed = false

  function undone(doing: string, error: unknown): StoreError {
    const failure = storeError(error, doing)
    if (endsWriting(failure)) broken = failure
    try {
      if (engineUsed) events.rolledBack() // reads much again, so not for every rejected key
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
