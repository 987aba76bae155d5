/** The files of the data folder that this engine makes, and the first look at them before anything is opened. */
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../errors.ts'
import { auditHeadsPath } from './audit-heads.ts'
import { storeError } from './failure.ts'
import { freeBytes } from './reserve.ts'
import { syncFolder } from '../durable-files.ts'

const createBytesMin = 2 * 1024 * 1024 // room for an empty database, its log and its shared memory

export function databasePath(folder: string): string {
  return `${folder}/sightglass.db`
}

/** There exactly while a restore is exchanging the database: whoever opens the folder then must not. */
export function unfinishedRestorePath(folder: string): string {
  return `${folder}/restore-unfinished`
}

/** Links to the database's files while a restore begins; without its marker nothing was exchanged. */
export function settingAsidePath(folder: string): string {
  return `${folder}/.setting-aside`
}

/** Makes the data folder, for its owner only, when it is not there. */
export function makeFolder(folder: string): void {
  try {
    const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (made !== undefined) syncFolder(dirname(made))
  } catch (error) {
    throw storeError(error, 'the data folder cannot be made')
  }
}

/**
 * Refuses to begin anew where a database has been: an absent or empty file beside the audit heads is a loss that
 * somebody must hear of, not a fresh start.
 */
export function requireWholeOrNew(folder: string): void {
  if (existsSync(unfinishedRestorePath(folder))) {
    throw new StoreError(
      'corrupt',
      'a restore into the data folder was interrupted: "sightglass restore --undo" brings the old data back, or run the restore again',
    )
  }
  rmSync(settingAsidePath(folder), { recursive: true, force: true })
  const bytes = statSync(databasePath(folder), { throwIfNoEntry: false })?.size ?? 0
  if (bytes > 0) return
  if (existsSync(auditHeadsPath(folder))) {
    throw new StoreError(
      'corrupt',
      'the data folder was in use, but its database sightglass.db is gone or empty',
    )
  }
  if (freeBytes(folder) < createBytesMin) {
    throw new StoreError('storage_full', 'the disk is too full to make the database')
  }
}

/** For those who only look: a folder without a database is an answer, not a reason to make one. */
export function requireDatabase(folder: string): void {
  if (existsSync(databasePath(folder))) return
  throw new StoreError('not_found', 'there is no database in the data folder')
}
