/** Maps errors of the driver and the file system to a `StoreError`. */
import { SQLiteError } from 'bun:sqlite'
import { DrizzleQueryError } from 'drizzle-orm'
import { StoreError, type StoreErrorKind } from '../../contract/errors.ts'

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
