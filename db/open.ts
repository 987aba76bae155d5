/** Opens the store in a data folder: the one place that picks an engine. */
import { StoreError } from './contract/errors.ts'
import { openSqliteReader, openSqliteStore } from './sqlite/store.ts'
import { readOnce } from './sqlite/threads/threads.ts'
import { existsSync } from 'node:fs'
import { unfinishedRestorePath } from './sqlite/file/files.ts'
import { lockFolder } from './sqlite/file/lock.ts'
import { migrations } from './sqlite/migrations/migrations.ts'
import { openPort } from './sqlite/threads/port.ts'
import type { AuditAnchor, AuditEntry, AuditVerdict, EventVerdict, Org, Store } from './contract/store.ts'
import type {
  Checkup,
  CopyReport,
  DatabaseFacts,
  Inspection,
  InspectionWanted,
  Placement,
  SchemaState,
  SettledPlacement,
} from './contract/backup.ts'
import type { FileVerbs } from './sqlite/backup/file-verbs.ts'

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
  return readOnce(folder, 'audit.verify', anchors)
}

/** Checks every event, id, index and rollup of a folder, also while a server holds it. About 10 s a million events. */
export function verifyEvents(folder: string): Promise<EventVerdict> {
  return readOnce(folder, 'events.verify')
}

/** The newest schema that this release knows. */
export const newestSchema = migrations.length

/** Writes a consistent copy of the folder's database to a path that must not exist; writers go on meanwhile. */
export function copyDatabase(folder: string, path: string): Promise<CopyReport> {
  return runFileVerb('file.copy', { folder, path })
}

/** Reads a database file from end to end and says what it holds and what is wrong with it. Changes nothing. */
export function inspectDatabase(wanted: InspectionWanted): Promise<Inspection> {
  return runFileVerb('file.inspect', wanted)
}

/** What the folder's database holds, without checking it. */
export function readFacts(folder: string): Promise<DatabaseFacts> {
  return runFileVerb('file.facts', folder)
}

/** Which migrations the folder's database has and lacks. Changes nothing; `not_found` without a database. */
export function readSchema(folder: string): Promise<SchemaState> {
  return runFileVerb('file.schema', folder)
}

/**
 * Puts the staged database in the place of the folder's own, which moves aside whole; the staged folder is gone then.
 * Refused with `locked` while somebody holds the folder. A failure rolls back. After an interruption the folder cannot
 * be opened until `settlePlacement` was called.
 */
export function placeDatabase(placement: Placement): Promise<{ movedAside: string[] }> {
  return runFileVerb('file.place', placement)
}

/** Rolls an interrupted placement back or finishes it, under the folder's lock. Null when none was interrupted. */
export async function settlePlacement(folder: string): Promise<SettledPlacement | null> {
  if (!existsSync(unfinishedRestorePath(folder))) return null
  return runFileVerb('file.settle', { folder, holder: process.pid })
}

/** Throws `locked` with the holder's process id while somebody holds the folder, which is made when it is not there. */
export async function requireFreeFolder(folder: string): Promise<void> {
  await runFileVerb('file.requireFree', { folder, holder: process.pid })
}

/** Takes the lock of a folder or throws `locked`; returns the function that gives it back. */
export function holdFolder(folder: string): () => void {
  return lockFolder(folder, process.pid).release
}

/** A quick look at the folder's database, also while a server holds it. Changes nothing. */
export function checkUp(folder: string, now: number): Promise<Checkup> {
  return runFileVerb('file.checkup', { folder, now })
}

/** Asks one question about files to a thread that ends with its answer. */
async function runFileVerb<K extends keyof FileVerbs>(
  verb: K,
  command: Parameters<FileVerbs[K]>[0],
): Promise<ReturnType<FileVerbs[K]>> {
  const reader = openPort('reader')
  try {
    return (await reader.ask(verb, command)) as ReturnType<FileVerbs[K]>
  } finally {
    await Promise.allSettled([reader.ask('close', null)])
    await reader.ended
  }
}
