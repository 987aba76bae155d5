/** Opens the store in a data folder. The only file that picks an engine. */
import { StoreError } from './contract/errors.ts'
import { openSqliteReader, openSqliteStore, openWorker, readOnce } from './sqlite/threads/threads.ts'
import { existsSync } from 'node:fs'
import { unfinishedRestorePath } from './sqlite/file/files.ts'
import { lockFolder } from './sqlite/file/lock.ts'
import { migrations } from './sqlite/migrations/migrations.ts'
import type { AuditAnchor, AuditEntry, AuditVerdict, EventVerdict, Org, Store } from './contract/store.ts'
import type {
  Checkup,
  CopyReport,
  DatabaseFacts,
  Inspection,
  InspectionQuery,
  Placement,
  SchemaState,
  SettledPlacement,
} from './contract/operations.ts'
import type { FileVerbs } from './sqlite/backup/file-verbs.ts'

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
  // Every file this process creates is readable by its owner only: SQLite creates the log and shared-memory files
  // later.
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
  const { version, newest } = await readSchema(folder)
  if (version < newest) {
    throw new StoreError('older_schema', `the data has schema ${version}, this release works with ${newest}`)
  }
  return openSqliteReader(folder, readDeadlineMsDefault)
}

/** Verifies the audit chains of a folder, also beside a running server. `not_found` when there is no database. */
export function verifyAudit(folder: string, anchors: AuditAnchor[] = []): Promise<AuditVerdict> {
  return readOnce(folder, 'audit.verify', anchors)
}

/**
 * Verifies every event, id, index and rollup of a folder, also beside a running server: about 10 s per million events.
 */
export function verifyEvents(folder: string): Promise<EventVerdict> {
  return readOnce(folder, 'events.verify')
}

/** The newest schema version of this release. */
export const newestSchema = migrations.length

/** Writes a consistent copy of the folder's database to a path that must not exist. Writers continue meanwhile. */
export function copyDatabase(folder: string, path: string): Promise<CopyReport> {
  return runFileVerb('file.copy', { folder, path })
}

/** Reads a whole database file and reports its contents and faults. Changes nothing. */
export function inspectDatabase(query: InspectionQuery): Promise<Inspection> {
  return runFileVerb('file.inspect', query)
}

/** Summarizes the folder's database without verifying it. */
export function readFacts(folder: string): Promise<DatabaseFacts> {
  return runFileVerb('file.facts', folder)
}

/** Lists the migrations that the folder's database has and lacks. Changes nothing; `not_found` without a database. */
export function readSchema(folder: string): Promise<SchemaState> {
  return runFileVerb('file.schema', folder)
}

/**
 * Replaces the folder's database with the staged one, moves the old one aside and deletes the staged folder. Rejects
 * with `locked` while another process holds the folder. A failure rolls back. After an interruption the folder cannot
 * be opened until `settlePlacement` has run.
 */
export function placeDatabase(placement: Placement): Promise<{ movedAside: string[] }> {
  return runFileVerb('file.place', placement)
}

/** Rolls an interrupted placement back or completes it, under the folder's lock. Null when none was interrupted. */
export async function settlePlacement(folder: string): Promise<SettledPlacement | null> {
  if (!existsSync(unfinishedRestorePath(folder))) return null
  return runFileVerb('file.settle', { folder, holder: process.pid })
}

/** Throws `locked` with the holder's process id while another process holds the folder. Creates a missing folder. */
export async function requireFreeFolder(folder: string): Promise<void> {
  await runFileVerb('file.requireFree', { folder, holder: process.pid })
}

/** Locks a folder or throws `locked`. Returns the function that unlocks it. */
export function holdFolder(folder: string): () => void {
  return lockFolder(folder, process.pid).release
}

/** Examines the folder's database briefly, also beside a running server. Changes nothing. */
export function checkUp(folder: string, now: number): Promise<Checkup> {
  return runFileVerb('file.checkup', { folder, now })
}

/** Runs one file command on a thread that ends with its result. */
async function runFileVerb<K extends keyof FileVerbs>(
  verb: K,
  command: Parameters<FileVerbs[K]>[0],
): Promise<ReturnType<FileVerbs[K]>> {
  const reader = openWorker('reader')
  try {
    return (await reader.ask(verb, command)) as ReturnType<FileVerbs[K]>
  } finally {
    await Promise.allSettled([reader.ask('close', null)])
    await reader.ended
  }
}
