/** Kinds of store failure, the same for every engine. Callers branch on `kind`, never on a driver's message. */

const kinds = [
  'storage_full', // the disk is full; nothing of this call was stored
  'read_only', // the folder or file system is read-only, or the role of the server lacks a right
  'not_writable', // the database refuses all writes at the moment; reads work
  'corrupt', // the file is not a database, or one of its pages is damaged
  'incomplete', // files show that the folder has lost data
  'older_schema', // the data needs an upgrade, which was not allowed
  'newer_schema', // a newer release wrote the data
  'locked', // another process holds the data folder
  'conflict', // a duplicate, or a state that the verb does not allow
  'not_found', // no such object in this organization
  'io', // the device failed; after a failed write nothing is acknowledged
  'displaced', // a file of the data folder was moved or replaced; nothing is acknowledged
  'deleted', // the database was deleted; nothing is acknowledged, and this process has the only copy
  'unavailable', // the database cannot be reached or did not answer in time; the same call may succeed in a moment
  'closed', // the store is shutting down
  'deadline', // a read exceeded its deadline
  'cancelled', // the caller ended the read
  'internal', // a bug
] as const

export type StoreErrorKind = (typeof kinds)[number]

export function isStoreErrorKind(text: string | undefined): text is StoreErrorKind {
  return kinds.some((kind) => kind === text)
}

/** The error of every store verb. `message` is for the operator's log, not for clients. */
export class StoreError extends Error {
  readonly kind: StoreErrorKind
  constructor(kind: StoreErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** Whether the same call may succeed later, without a change to this process or its data. */
export function passesBy(error: unknown): error is StoreError {
  return error instanceof StoreError && ['unavailable', 'not_writable'].includes(error.kind)
}

/**
 * Whether the process must end: the contents of the disk are unknown, and after such a failed write nothing is
 * acknowledged, or a newer release has migrated the database.
 */
export function endsWriting(error: unknown): error is StoreError {
  return error instanceof StoreError && ['io', 'displaced', 'deleted', 'newer_schema'].includes(error.kind)
}
