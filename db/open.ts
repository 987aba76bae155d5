/** Opens the store in a data folder: the one place that picks an engine. */
import { readSchema } from './backup.ts'
import { StoreError } from './contract/errors.ts'
import { openSqliteReader, openSqliteStore } from './sqlite/store.ts'
import { askOnce } from './sqlite/threads/threads.ts'
import type { AuditAnchor, AuditEntry, AuditVerdict, EventVerdict, Org, Store } from './contract/store.ts'

export interface OpenOptions {
  folder: string // made, for its owner only, when it is not there
  now: number
  /** When false, data of an older schema is refused with `older_schema` and left as it was. True when left out. */
  mayMigrate?: boolean
  /** When true, evidence of lost data is set aside instead of refused (`missing-data.ts`). False when left out. */
  acceptLoss?: boolean
  /** Created, with its audit entry, when the store has no organization yet. */
  bootstrap?: { org: Org; audit: AuditEntry }
  readers?: number
  readDeadlineMs?: number
}

const readersDefault = 2
const readDeadlineMsDefault = 10_000

/** Rejects with a `StoreError`: `locked`, `read_only`, `storage_full`, `corrupt` or `newer_schema`. */
export async function openStore(options: OpenOptions): Promise<Store> {
  // Every file this process makes from here on is its owner's alone; log and shared-memory files come and go later.
  process.umask(0o077)
  const { folder, now, bootstrap } = options
  const store = await openSqliteStore({
    folder,
    now,
    acceptLoss: options.acceptLoss ?? false,
    mayMigrate: options.mayMigrate ?? true,
    readers: options.readers ?? readersDefault,
    readDeadlineMs: options.readDeadlineMs ?? readDeadlineMsDefault,
  })
  if (bootstrap === undefined) return store
  try {
    await store.call('orgs.bootstrap', bootstrap)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** A store that only reads, also beside a server and on a read-only file system. Data of another schema is refused. */
export async function openReadStore(folder: string): Promise<Store> {
  const { version, newest } = await readSchema(folder)
  if (version < newest) {
    throw new StoreError('older_schema', `the data has schema ${version}, this release works with ${newest}`)
  }
  return openSqliteReader(folder, readDeadlineMsDefault)
}

/** Checks the audit chains of a folder, also while a server holds it. `not_found` when there is no database. */
export function verifyAudit(folder: string, anchors: AuditAnchor[] = []): Promise<AuditVerdict> {
  return askOnce(folder, 'audit.verify', anchors)
}

/** Checks every event, id, index and rollup of a folder, also while a server holds it. About 10 s a million events. */
export function verifyEvents(folder: string): Promise<EventVerdict> {
  return askOnce(folder, 'events.verify')
}
