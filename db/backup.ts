/**
 * Copies, inspects and replaces whole databases, also while a server holds the folder; each call has a thread of its
 * own, so that neither the caller nor the store's readers wait for the disk.
 */
import { existsSync } from 'node:fs'
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
import { askFile } from './sqlite/backup/ask.ts'
import { unfinishedRestorePath } from './sqlite/file/files.ts'
import { lockFolder } from './sqlite/file/lock.ts'
import { migrations } from './sqlite/migrations/migrations.ts'

/** The newest schema that this release knows. */
export const newestSchema = migrations.length

/** Writes a consistent copy of the folder's database to a path that must not exist; writers go on meanwhile. */
export function copyDatabase(folder: string, path: string): Promise<CopyReport> {
  return askFile('file.copy', { folder, path })
}

/** Reads a database file from end to end and says what it holds and what is wrong with it. Changes nothing. */
export function inspectDatabase(wanted: InspectionWanted): Promise<Inspection> {
  return askFile('file.inspect', wanted)
}

/** What the folder's database holds, without checking it. */
export function readFacts(folder: string): Promise<DatabaseFacts> {
  return askFile('file.facts', folder)
}

/** Which migrations the folder's database has and lacks. Changes nothing; `not_found` without a database. */
export function readSchema(folder: string): Promise<SchemaState> {
  return askFile('file.schema', folder)
}

/**
 * Puts the staged database in the place of the folder's own, which moves aside whole; the staged folder is gone then.
 * Refused with `locked` while somebody holds the folder. A failure rolls back. After an interruption the folder cannot
 * be opened until `settlePlacement` was called.
 */
export function placeDatabase(placement: Placement): Promise<{ movedAside: string[] }> {
  return askFile('file.place', placement)
}

/** Rolls an interrupted placement back or finishes it, under the folder's lock. Null when none was interrupted. */
export async function settlePlacement(folder: string): Promise<SettledPlacement | null> {
  if (!existsSync(unfinishedRestorePath(folder))) return null
  return askFile('file.settle', { folder, holder: process.pid })
}

/** Throws `locked` with the holder's process id while somebody holds the folder, which is made when it is not there. */
export async function requireFreeFolder(folder: string): Promise<void> {
  await askFile('file.requireFree', { folder, holder: process.pid })
}

/** Takes the lock of a folder or throws `locked`; returns the function that gives it back. */
export function holdFolder(folder: string): () => void {
  return lockFolder(folder, process.pid).release
}

/** A quick look at the folder's database, also while a server holds it. Changes nothing. */
export function checkUp(folder: string, now: number): Promise<Checkup> {
  return askFile('file.checkup', { folder, now })
}
