/** Maps errors of the driver and the server to a `StoreError`. */
import { DrizzleQueryError } from 'drizzle-orm'
import { StoreError, type StoreErrorKind } from '../../contract/errors.ts'

/** What crosses from the I/O thread. Without the server's detail, which repeats stored values. */
export interface Failure {
  code: string
  message: string
}

/** Codes of the I/O thread itself. */
export const lostCode = 'LOST'
export const refusedCode = 'REFUSED'

/** Of the server: it is a standby, or has default_transaction_read_only. */
export const readOnlyCode = '25006'

const kindByCode: { [code: string]: StoreErrorKind } = {
  [refusedCode]: 'internal',
  '23503': 'not_found', // foreign_key_violation: the organization or account named does not exist
  '23505': 'conflict', // unique_violation
  SG004: 'newer_schema', // begin_write: a migration has ended the release of this node
  P0001: 'conflict', // raise_exception: a trigger protects the audit trail
  [readOnlyCode]: 'not_writable',
  '42501': 'read_only', // insufficient_privilege
  '53100': 'storage_full', // disk_full
  XX001: 'corrupt', // data_corrupted
  XX002: 'corrupt', // index_corrupted
}

/**
 * Rejected credentials, a missing database, a deadlock or a serialization failure, too many connections, a lock or
 * statement timeout, a shutdown, a failed device. Nothing of the call was committed, except that the outcome
 * of a COMMIT whose connection was lost is unknown.
 */
const unavailableCode = /^(08|28|3D|40|53|57|58)|^(55P03|25P02|25P03|25P04)$/

/** Codes of the driver and of the system: every error of a connection. */
const connectionCode = /^(CONNECTION_|CONNECT_|E[A-Z]{3,}|ERR_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|SASL_)/

export function kindOf(code: string): StoreErrorKind {
  const kind = kindByCode[code]
  if (kind !== undefined) return kind
  return code === lostCode || unavailableCode.test(code) || connectionCode.test(code)
    ? 'unavailable'
    : 'internal'
}

/** Whether the connection, and so its transaction, ended. One to a standby does: the next may find a primary. */
export function endsConnection(code: string): boolean {
  return code === lostCode || /^(08|57P0[1-5])|^25(P0[34]|006)$/.test(code) || connectionCode.test(code)
}

/** For the operator's log. A pooler that refuses our settings does not say what helps. */
export function explained({ code, message }: Failure): string {
  const hint = message.startsWith('unsupported startup parameter')
    ? ': a pooler needs prepare=false in the URL of the database'
    : ''
  return `${message} (${code})${hint}`
}

/** `doing` names the failed step, for the operator's log. A StoreError passes through unchanged. */
export function storeError(error: unknown, doing: string): StoreError {
  // drizzle's own error repeats the bound values, which may be secret. The wrapped error does not.
  const cause = error instanceof DrizzleQueryError ? error.cause : error
  if (cause instanceof StoreError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new StoreError('internal', `${doing}: ${message}`, { cause })
}
