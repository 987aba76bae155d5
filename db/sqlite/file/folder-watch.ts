/**
 * Detects that a file of an open database was deleted or replaced. SQLite would continue to write to files without a
 * name, and acknowledged events would be lost at the end of the process.
 */
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { databasePath } from './files.ts'
import { lockFileName } from './lock.ts'

export interface FolderWatch {
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
  const others = [watched('sightglass.db-shm'), watched(lockFileName)]
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
        'can still read what was there. Fetch it before you stop it, page by page: GET /v1/traces?limit=200',
    )
  }

  return {
    requireDatabase,
    requireAll() {
      requireDatabase()
      for (const file of others) if (isOther(file)) throw displaced(file.name)
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
