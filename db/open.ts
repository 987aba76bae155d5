/** Opens the store in a data folder: the one place that picks an engine. */
import { openSqliteStore } from './sqlite/sqlite-store.ts'
import type { AuditEntry, Org, Store } from './store.ts'

export interface OpenOptions {
  folder: string // made, for its owner only, when it is not there
  now: number
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
    readers: options.readers ?? readersDefault,
    readDeadlineMs: options.readDeadlineMs ?? readDeadlineMsDefault,
  })
  if (bootstrap === undefined) return store
  try {
    await store.write('orgs.bootstrap', bootstrap)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}
