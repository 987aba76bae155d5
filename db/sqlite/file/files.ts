/** Names the files in the data folder, checks it before the database is opened, and detects when they disappear. */
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../../contract/errors.ts'
import { storeError } from './failure.ts'
import { syncFolder } from '../../rules/durable-files.ts'
import { lockFileName } from './lock.ts'

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
    const createdFolder = mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (createdFolder !== undefined) syncFolder(dirname(createdFolder))
  } catch (error) {
    throw storeError(error, 'the data folder cannot be created')
  }
}

/** Throws `conflict` in the middle of a restore, when the database and its log may not belong together. */
export function requireRestored(folder: string): void {
  if (!existsSync(unfinishedRestorePath(folder))) return
  throw new StoreError(
    'conflict',
    'a restore into the data folder has not finished: "sightglass restore --undo" brings the old data back, ' +
      'or run the restore again',
  )
}

/** Before the folder is read: throws when it has no database, and creates none. */
export function requireDatabase(folder: string): void {
  requireRestored(folder)
  if (existsSync(databasePath(folder))) return
  throw new StoreError('not_found', `there is no data in ${folder} (set the folder with --data-dir)`)
}

/**
 * Detects that a file of an open database was deleted or replaced. SQLite would continue to write to files without a
 * name, and acknowledged events would be lost at the end of the process.
 */
interface FolderWatch {
  /** Compares the database and its log, about 5 µs. Called before every acknowledgement. */
  requireDatabase(): void
  /** Compares every file that the store depends on. */
  requireAll(): void
  /** Call after the database is closed: closing any descriptor of it drops this process's locks on it. */
  end(): void
}

interface Watched {
  path: string
  name: string
  id: string | null // null until the file is first seen
}

export function watchFolder(folder: string): FolderWatch {
  const path = databasePath(folder)
  const watched = (name: string): Watched => ({
    path: `${folder}/${name}`,
    name,
    id: idOf(`${folder}/${name}`),
  })
  const database = watched('sightglass.db')
  const log = watched('sightglass.db-wal')
  const otherFiles = [watched('sightglass.db-shm'), watched(lockFileName)]
  const descriptor = openSync(path, 'r')

  function requireDatabase(): void {
    if (isOther(database)) throw databaseGone()
    if (isOther(log)) throw displaced(log.name)
  }

  function databaseGone(): StoreError {
    // A file without a name exists until the last process closes it, so this process has the only copy.
    if (fstatSync(descriptor).nlink > 0) return displaced(database.name)
    return new StoreError(
      'deleted',
      'the data folder or its database sightglass.db was deleted: nothing is stored any more, and only this process ' +
        'can still read the events. Fetch them page by page before you stop it: GET /v1/traces?limit=200',
    )
  }

  return {
    requireDatabase,
    requireAll() {
      requireDatabase()
      for (const file of otherFiles) if (isOther(file)) throw displaced(file.name)
      if (fstatSync(descriptor).size === 0) throw displaced(database.name)
    },
    end: () => closeSync(descriptor),
  }
}

function displaced(name: string): StoreError {
  return new StoreError(
    'displaced',
    `${name} was removed, moved or replaced while the server was running: nothing is stored any more`,
  )
}

function isOther(file: Watched): boolean {
  const id = idOf(file.path)
  file.id ??= id
  return id !== file.id && id !== unknown
}

const unknown = 'unknown'

/** Device and inode; null when no file has the name. */
function idOf(path: string): string | null {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? null : `${stat.dev}:${stat.ino}`
  } catch {
    return unknown // for example no permission: this proves nothing
  }
}
