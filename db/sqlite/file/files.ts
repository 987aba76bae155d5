/** Names the files in the data folder and checks it before the database is opened. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../../contract/errors.ts'
import { storeError } from './failure.ts'
import { syncFolder } from '../../rules/durable-files.ts'

export function databasePath(folder: string): string {
  return `${folder}/sightglass.db`
}

/** Exists exactly while a restore exchanges the database. The folder must not be opened then. */
export function unfinishedRestorePath(folder: string): string {
  return `${folder}/restore-unfinished`
}

/** Links to the database's files while a restore begins. Without its marker nothing was exchanged. */
export function settingAsidePath(folder: string): string {
  return `${folder}/.setting-aside`
}

/** Creates a missing data folder with mode 0700. */
export function makeFolder(folder: string): void {
  try {
    const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (made !== undefined) syncFolder(dirname(made))
  } catch (error) {
    throw storeError(error, 'the data folder cannot be made')
  }
}

/** For inspection: a folder without a database is reported, and none is created. */
export function requireDatabase(folder: string): void {
  if (existsSync(databasePath(folder))) return
  throw new StoreError('not_found', 'there is no database in the data folder')
}
