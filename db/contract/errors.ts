/** The kinds of store failure, the same for every engine. Callers map `kind`, never a driver's message. */

const kinds = [
  'storage_full', // no room to write; nothing of this call was kept
  'read_only', // the folder or file system does not take writes
  'corrupt', // the file is not a database, or a page of it is damaged
  'incomplete', // files show that the folder held more than it holds now
  'older_schema', // an upgrade would be needed, and was not allowed
  'newer_schema', // written by a newer release than this one
  'locked', // another process holds the data folder
  'conflict', // a uniqueness rule or a state the verb forbids
  'not_found', // the thing named does not exist in this organization
  'io', // the device failed; after a failed write nothing is acknowledged any more
  'displaced', // a file of the data folder was moved or replaced; nothing is acknowledged any more
  'deleted', // the database was deleted; nothing is acknowledged any more, and this process holds the only copy
  'closed', // the store is shutting down
  'deadline', // a read ran longer than it may
  'internal', // a fault of ours
] as const

export type StoreErrorKind = (typeof kinds)[number]

export function isStoreErrorKind(text: string | undefined): text is StoreErrorKind {
  return kinds.some((kind) => kind === text)
}

/** Thrown (or rejected with) by every store verb. `message` is for the operator's log, not for clients. */
export class StoreError extends Error {
  readonly kind: StoreErrorKind
  constructor(kind: StoreErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** Whether nobody knows any more what the disk holds: nothing is acknowledged after such a failure of a write. */
export function endsWriting(error: unknown): error is StoreError {
  return error instanceof StoreError && ['io', 'displaced', 'deleted'].includes(error.kind)
}
