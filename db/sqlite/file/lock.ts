/**
 * Locks the data folder for the life of the process, in two ways:
 *
 * - flock on the folder itself, because a lock file can be removed under a running server.
 * - a transaction held open on the tiny SQLite file `sightglass.lock`, which works everywhere and names the holder. Its
 * user_version is the holder's process id, which others can read, because the transaction only reserves the right to
 * write. Its application_id says whether the database's log is in use.
 *
 * The kernel releases both when the process dies. The file is not named `*.db` (contract §10), and nothing else opens
 * it: closing any descriptor of it would drop this process's locks on it.
 */
import { Database, SQLiteError } from 'bun:sqlite'
import { closeSync, openSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StoreError } from '../../contract/errors.ts'
import { storeError } from './failure.ts'
import { dlopen, read, type Pointer } from 'bun:ffi'

export const lockFileName = 'sightglass.lock'
const attemptsMax = 100 // each fails only when another process takes the same lock at the same moment
const busyCode = 5

export interface FolderLock {
  /**
   * Whether the last holder left a write-ahead log that belongs to the database. The holder sets it, and a crash leaves
   * it set.
   */
  leftLog: boolean
  /** Whether that happened since the machine started: then the shared memory is as the last holder left it. */
  sameBoot: boolean
  /** Sets or clears `leftLog` for the next holder. */
  markLog(isInUse: boolean): void
  release(): void
}

/** Locks or throws `locked` with the holder's process id. */
export function lockFolder(folder: string, pid: number): FolderLock {
  const inodes = lockInodes(folder)
  try {
    const file = lockFile(folder, pid)
    const mark = number(file, 'application_id')
    return {
      leftLog: mark !== 0,
      sameBoot: mark === bootMark(),
      markLog: (isInUse) => markLog(file, isInUse),
      release() {
        file.close()
        inodes.forEach((release) => release())
      },
    }
  } catch (error) {
    inodes.forEach((release) => release())
    throw error
  }
}

/** The folder, and the real folder of the database when `sightglass.db` is a symbolic link. */
function lockInodes(folder: string): (() => void)[] {
  const home = realpathSync(folder)
  const folders = [home]
  try {
    const ofDatabase = dirname(realpathSync(`${folder}/sightglass.db`))
    if (ofDatabase !== home) folders.push(ofDatabase)
  } catch {
    // There is no database yet.
  }
  const releases: (() => void)[] = []
  try {
    for (const lockedFolder of folders) {
      const release = lockInode(lockedFolder)
      if (release !== null) releases.push(release)
    }
    return releases
  } catch (error) {
    releases.forEach((release) => release())
    throw storeError(error, 'the data folder cannot be locked')
  }
}

function lockFile(folder: string, pid: number): Database {
  let db: Database
  try {
    db = new Database(`${folder}/${lockFileName}`, { create: true, readwrite: true, strict: true })
  } catch (error) {
    throw storeError(error, 'the lock file of the data folder cannot be opened')
  }
  try {
    db.run('PRAGMA busy_timeout = 0')
    db.run('PRAGMA page_size = 512') // one sector, which a power cut writes whole or not at all
    // Without a journal file, recording the holder needs no space on a full disk. The page has nothing else.
    db.run('PRAGMA journal_mode = MEMORY')
    reserve(db, pid)
    return db
  } catch (error) {
    const busy = error instanceof SQLiteError && (error.errno & 0xff) === busyCode
    const failure = busy ? lockedError(db) : storeError(error, 'the data folder cannot be locked')
    db.close()
    throw failure
  }
}

/** Ends with a transaction open and our process id committed before it, so that only a real holder is named. */
function reserve(db: Database, pid: number): void {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    db.run('BEGIN IMMEDIATE')
    if (number(db, 'user_version') === pid) return
    if (!commitPragma(db, 'user_version', pid)) {
      db.run('BEGIN IMMEDIATE') // held without a name, which is better than not starting on a full disk
      return
    }
  }
  throw new StoreError('locked', 'the data folder is being opened by several processes at once')
}

/** Ends the transaction for a moment. The lock on the folder excludes others meanwhile. */
function markLog(db: Database, isInUse: boolean): void {
  const mark = isInUse ? (bootMark() ?? 1) : 0
  if (number(db, 'application_id') === mark) return
  commitPragma(db, 'application_id', mark)
  db.run('BEGIN IMMEDIATE')
}

/** Identifies the current boot of the machine; null where the kernel has no id for it. */
function bootMark(): number | null {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')
    return (Number.parseInt(id.replaceAll('-', '').slice(0, 8), 16) >>> 2) + 2
  } catch {
    return null
  }
}

/** Inside a transaction, which it ends. False on a full disk, where nothing changes. */
function commitPragma(db: Database, name: 'user_version' | 'application_id', value: number): boolean {
  try {
    db.run(`PRAGMA ${name} = ${value}`)
    db.run('COMMIT')
    return true
  } catch (error) {
    if (db.inTransaction) db.run('ROLLBACK')
    if (storeError(error, '').kind !== 'storage_full') throw error
    return false
  }
}

function number(db: Database, name: 'user_version' | 'application_id'): number {
  return db.query<{ [name: string]: number }, []>(`PRAGMA ${name}`).get()?.[name] ?? 0
}

function lockedError(db: Database): StoreError {
  let pid = 0
  try {
    pid = number(db, 'user_version')
  } catch {
    // The holder is writing its name at this moment. The lock itself is certain.
  }
  const holder = pid === 0 ? 'another process' : `process ${pid}`
  return new StoreError('locked', `the data folder is in use by ${holder}`)
}

/**
 * Locks a folder with flock(2). Deleting or replacing a file in the folder does not release this lock, and the kernel
 * releases it when the process ends, also by kill -9.
 */
interface System {
  flock(descriptor: number, operation: number): number
  /** The error of this thread's last call. */
  errno(): number
}

const exclusiveNow = 2 | 4 // LOCK_EX, LOCK_NB
const wouldBlock = process.platform === 'darwin' ? 35 : 11

const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
const libraries: readonly (readonly [file: string, errno: string])[] =
  process.platform === 'darwin'
    ? [['libSystem.B.dylib', '__error']]
    : [
        ['libc.so.6', '__errno_location'],
        [`libc.musl-${arch}.so.1`, '__errno_location'],
      ]

let system: System | null | undefined

/**
 * Returns the function that unlocks. Throws `locked` while another process holds the lock. Null where the file system
 * or the C library has no such lock: then `sightglass.lock` is the only one.
 */
function lockInode(folder: string): (() => void) | null {
  system ??= loadSystem()
  if (system === null) return null
  const descriptor = openSync(folder, 'r')
  if (system.flock(descriptor, exclusiveNow) === 0) return () => closeSync(descriptor)
  const isHeld = system.errno() === wouldBlock
  closeSync(descriptor)
  if (!isHeld) return null
  throw new StoreError('locked', `the data folder is in use by ${holderText(folder)}`)
}

function loadSystem(): System | null {
  for (const [file, errno] of libraries) {
    try {
      const { symbols } = dlopen(file, {
        flock: { args: ['i32', 'i32'], returns: 'i32' },
        [errno]: { args: [], returns: 'ptr' },
      }) as { symbols: Record<string, (...args: number[]) => unknown> }
      const { flock, [errno]: location } = symbols
      if (flock === undefined || location === undefined) continue
      return {
        flock: (descriptor, operation) => flock(descriptor, operation) as number,
        errno: () => read.i32(location() as Pointer),
      }
    } catch {
      // Another C library.
    }
  }
  return null
}

/** The kernel's table of locks names the process, also when the lock file was deleted. */
function holderText(folder: string): string {
  try {
    const inode = String(statSync(folder, { bigint: true }).ino)
    for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
      const [, kind, , , pid, file] = line.split(/\s+/)
      if (kind === 'FLOCK' && file?.split(':')[2] === inode) return `process ${pid}`
    }
  } catch {
    // This system has no such table.
  }
  return 'another process'
}
