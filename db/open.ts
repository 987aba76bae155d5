/** Opens the store in a data folder. The only file that picks an engine. */
import { StoreError } from './contract/errors.ts'
import { folderFiles, openFolderAdmin } from './sqlite/backup/admin.ts'
import { openSqliteReader, openSqliteStore } from './sqlite/threads/threads.ts'
import type { AuditEntry, Org, Store } from './contract/store.ts'
import type { DatabaseAdmin, DatabaseFiles } from './contract/admin.ts'

export interface OpenOptions {
  folder: string // created with mode 0700 when it is missing
  now: number
  /** When false, data of an older schema is rejected with `older_schema` and stays unchanged. Default: true. */
  mayMigrate?: boolean
  /** When true, evidence of lost data is set aside instead of rejected (`missing-data.ts`). Default: false. */
  acceptLoss?: boolean
  /** Created, with its audit entry, when the store has no organization. */
  bootstrap?: { org: Org; audit: AuditEntry }
  readers?: number
  readDeadlineMs?: number
}

const readersDefault = 2
const readDeadlineMsDefault = 10_000

/** Rejects with a `StoreError`: `locked`, `read_only`, `storage_full`, `corrupt` or `newer_schema`. */
export async function openStore(options: OpenOptions): Promise<Store> {
  // Every file this process creates is readable by its owner only, also those that the engine creates later.
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

/**
 * Opens a read-only store, also beside a running server and on a read-only file system. Rejects other schema versions.
 */
export async function openReadStore(folder: string): Promise<Store> {
  const { version, newest } = await openDatabaseAdmin(folder).schema()
  if (version < newest) {
    throw new StoreError('older_schema', `the data has schema ${version}, this release works with ${newest}`)
  }
  return openSqliteReader(folder, readDeadlineMsDefault)
}

/** Whole-database operations on a data folder. Nothing is opened, created or changed until one is called. */
export function openDatabaseAdmin(folder: string): DatabaseAdmin {
  const migrate = async (now: number) => (await openStore({ folder, now })).close()
  return { ...openFolderAdmin(folder), migrate }
}

/** Database files outside of a data folder, for example in a backup. */
export const databaseFiles: DatabaseFiles = folderFiles
