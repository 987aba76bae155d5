/** Maps errors of the driver and the file system to a `StoreError`, and rejects writes after a device failure. */
import { SQLiteError } from 'bun:sqlite'
import { DrizzleQueryError } from 'drizzle-orm'
import { StoreError, endsWriting, type StoreErrorKind } from '../../contract/errors.ts'
import type { EventWriter } from '../../sql/events/engine.ts'

const kindByPrimaryCode: { [code: number]: StoreErrorKind } = {
  3: 'read_only', // PERM
  5: 'locked', // BUSY
  6: 'locked', // LOCKED
  8: 'read_only', // READONLY
  10: 'io', // IOERR
  11: 'corrupt', // CORRUPT
  13: 'storage_full', // FULL
  14: 'read_only', // CANTOPEN
  26: 'corrupt', // NOTADB
}

const kindByExtendedCode: { [code: number]: StoreErrorKind } = {
  787: 'not_found', // CONSTRAINT_FOREIGNKEY: the organization or account named does not exist
  1555: 'conflict', // CONSTRAINT_PRIMARYKEY
  1811: 'conflict', // CONSTRAINT_TRIGGER: an audit entry would replace another
  2067: 'conflict', // CONSTRAINT_UNIQUE
  4874: 'storage_full', // IOERR_SHMSIZE: no space for the shared-memory file
}

const kindByFileCode: { [code: string]: StoreErrorKind } = {
  ENOSPC: 'storage_full',
  EDQUOT: 'storage_full',
  EACCES: 'read_only',
  EPERM: 'read_only',
  EROFS: 'read_only',
  ENOTDIR: 'read_only',
  EEXIST: 'read_only',
  ENOENT: 'read_only',
  EIO: 'io',
}

/** `doing` names the failed step, for the operator's log. A StoreError passes through unchanged. */
export function storeError(error: unknown, doing: string): StoreError {
  if (error instanceof StoreError) return error
  // drizzle's own error repeats the bound values, which may be secret. The wrapped error does not.
  const cause = error instanceof DrizzleQueryError ? error.cause : error
  const message = cause instanceof Error ? cause.message : String(cause)
  return new StoreError(kindOf(cause), `${doing}: ${message}`, { cause })
}

function kindOf(error: unknown): StoreErrorKind {
  if (error instanceof SQLiteError) {
    return kindByExtendedCode[error.errno] ?? kindByPrimaryCode[error.errno & 0xff] ?? 'internal'
  }
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') {
    return kindByFileCode[error.code] ?? 'internal'
  }
  return 'internal'
}

/** Rejects every write after a device failure, and makes the event engine reload its memory after a rollback. */
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
