/**
 * Finds evidence of lost data before anything is written: a missing database, a deleted, truncated or damaged
 * write-ahead log, audit heads with more entries than the database. A new start would hide the loss.
 */
import type { SqliteDatabase } from './connection.ts'
import { copyFileSync, existsSync, mkdirSync, renameSync, statSync, truncateSync } from 'node:fs'
import { syncFile, syncFolder } from '../../rules/durable-files.ts'
import { StoreError } from '../../contract/errors.ts'
import { auditHeads } from '../../sql/audit/append.ts'
import { readAuditHeads } from '../../sql/audit/heads.ts'
import { databasePath, requireRestored } from './files.ts'
import type { FolderLock } from './lock.ts'
import { findLogDamage, logDamageText, readLogIndex } from './log-damage.ts'
import { schemaVersion } from './schema-version.ts'
import { freeBytes } from './reserve.ts'

const createBytesMin = 2 * 1024 * 1024 // space for an empty database, its log and its shared memory
const logName = 'sightglass.db-wal'
/** Each of these is created after the database. */
const madeLater = ['audit-heads', 'audit-checkpoints', 'audit-signing.key']
/** Files that describe the lost data. The signing key stays, because its signatures must remain verifiable. */
const setAsideFiles = ['sightglass.db', 'sightglass.db-wal', 'sightglass.db-shm', ...madeLater.slice(0, 2)]

export type Missing = {
  what: string
  files: string[]
  /** Of a damaged log: a copy is set aside, and these bytes remain. */
  soundLogBytes?: number
} | null

/**
 * The loss shown by the files alone. Throws in the middle of a restore, and when the disk has no space for a database.
 */
export function missingFiles(folder: string, lock: Pick<FolderLock, 'leftLog' | 'sameBoot'>): Missing {
  requireRestored(folder)
  const path = databasePath(folder)
  if (sizeOf(path) > 0) return missingLog(path, lock)
  if (sizeOf(`${path}-wal`) > 0 || madeLater.some((name) => existsSync(`${folder}/${name}`))) {
    const problem = 'the data folder was in use, but its database sightglass.db is missing or empty'
    return { what: problem, files: setAsideFiles }
  }
  if (freeBytes(folder) < createBytesMin) {
    throw new StoreError('storage_full', 'the disk is too full to create the database')
  }
  return null
}

/** A clean stop removes the log after copying it into the database. A crash leaves it. */
function missingLog(path: string, { leftLog, sameBoot }: Pick<FolderLock, 'leftLog' | 'sameBoot'>): Missing {
  const isThere = existsSync(`${path}-wal`)
  const expectedLog = sameBoot ? logInUse(`${path}-shm`) : null
  const isLost =
    expectedLog === null
      ? !isThere && (leftLog || existsSync(`${path}-shm`))
      : expectedLog.isNeeded && sizeOf(`${path}-wal`) < expectedLog.bytes
  if (!isLost) return damagedLog(path)
  const state = isThere ? 'was cut' : 'is gone'
  const problem =
    `the log sightglass.db-wal ${state}, and the last process ended without copying it into the database: ` +
    'acknowledged events may be lost'
  return { what: problem, files: ['sightglass.db-wal', 'sightglass.db-shm'] }
}

/** The size of the log according to the shared memory. It is exact after kill -9. */
function logInUse(path: string): { bytes: number; isNeeded: boolean } | null {
  const index = readLogIndex(path)
  if (index === null) return null
  const { frames, copiedFrames, pageBytes } = index
  return { bytes: 32 + frames * (24 + pageBytes), isNeeded: frames > copiedFrames }
}

/** Transactions that SQLite would drop without an error, because a bit of the log before them is wrong. */
function damagedLog(path: string): Missing {
  const damage = findLogDamage(path)
  if (damage === null) return null
  return { what: logDamageText(damage), files: ['sightglass.db-shm'], soundLogBytes: damage.soundBytes }
}

/** The loss shown by a database that opens: all of it, or audit entries that are in `audit-heads`. */
export function missingEntries(db: SqliteDatabase, folder: string): Missing {
  const files = madeLater.slice(0, 2)
  const recordedHeads = readAuditHeads(folder)
  if (schemaVersion(db) === 0) {
    if (!madeLater.some((name) => existsSync(`${folder}/${name}`))) return null
    return { what: 'the data folder was in use, but its database sightglass.db holds nothing', files }
  }
  const heads = auditHeads(db)
  for (const [orgId, { count }] of Object.entries(recordedHeads ?? {})) {
    const storedCount = heads[orgId]?.count ?? 0
    if (storedCount >= count) continue
    const problem =
      `the database holds ${storedCount} audit entries of ${orgId}, but the file audit-heads records ${count}: ` +
      'the log was removed, or the database was replaced by an older copy'
    return { what: problem, files }
  }
  return null
}

export function refuseMissing({ what: problem }: NonNullable<Missing>): never {
  throw new StoreError('incomplete', problem)
}

/** Moves the files into their own folder for an investigation. Returns its name. */
export function setAside(
  folder: string,
  { files, soundLogBytes }: NonNullable<Missing>,
  now: number,
): string {
  const name = `set-aside-${new Date(now).toISOString().replaceAll(':', '')}`
  mkdirSync(`${folder}/${name}`, { mode: 0o700, recursive: true })
  if (soundLogBytes !== undefined) copyFileSync(`${folder}/${logName}`, `${folder}/${name}/${logName}`)
  for (const file of files) {
    if (existsSync(`${folder}/${file}`)) renameSync(`${folder}/${file}`, `${folder}/${name}/${file}`)
  }
  syncFolder(`${folder}/${name}`)
  if (soundLogBytes !== undefined)
    cutLog(`${folder}/${logName}`, `${folder}/${name}/${logName}`, soundLogBytes)
  syncFolder(folder)
  return name
}

/** Without the damage, after the copy of the whole log is on disk. */
function cutLog(path: string, copy: string, bytes: number): void {
  syncFile(copy)
  truncateSync(path, bytes)
  syncFile(path)
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
