/** The paths of the files in the data folder, and the checks before the database is opened. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../../contract/errors.ts'
import { storeError } from './failure.ts'
import { syncFolder } from '../../rules/durable-files.ts'

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

/** For those who only look: a folder without a database is an answer, not a reason to make one. */
export function requireDatabase(folder: string): void {
  if (existsSync(databasePath(folder))) return
  throw new StoreError('not_found', 'there is no database in the data folder')
}
