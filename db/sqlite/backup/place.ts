/**
 * Replaces a folder's database, so that an interruption at any step leaves the old files complete.
 *
 * The old files are first linked into `.setting-aside`. A marker file then names the files to exchange. While it exists
 * nobody opens the folder, and `settlePlacement` rolls the exchange back from those links. New files are linked into
 * place too, so that their own folder stays complete until the exchange is done. The marker is removed last, when no
 * file has a second name in another folder: two databases must never share an inode.
 */
import { Database } from 'bun:sqlite'
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import type { Placement, SettledPlacement } from '../../contract/operations.ts'
import { syncFolder, writeWhole } from '../../rules/durable-files.ts'
import { StoreError } from '../../contract/errors.ts'
import { databasePath, makeFolder, settingAsidePath, unfinishedRestorePath } from '../file/files.ts'
import { findLogDamage } from '../file/log-damage.ts'
import { lockFolder, type FolderLock } from '../file/lock.ts'

const databaseFiles = ['sightglass.db', 'sightglass.db-wal', 'sightglass.db-shm', 'audit-heads']

/** The marker's contents, in JSON. */
interface Exchange {
  kind: Placement['kind']
  /** `exchanging` can be rolled back; `finishing` completes an undo; `restored` has been rolled back. */
  phase: 'exchanging' | 'finishing' | 'restored'
  staged: string // path
  aside: string // name, inside the folder
  names: string[] // of the exchanged files
  there: string[] // the names that existed before
}

/** Locks the folder, and unlocks it at the end. */
export function requireFreeFolder({ folder, holder }: { folder: string; holder: number }): null {
  makeFolder(folder)
  lockFolder(folder, holder).release()
  return null
}

export function placeDatabase(placement: Placement): { movedAside: string[] } {
  const { folder, staged, holder } = placement
  if (!existsSync(databasePath(staged))) throw new StoreError('not_found', 'no database is staged')
  makeFolder(folder)
  const lock = lockFolder(folder, holder)
  try {
    settle(folder)
    settleLog(folder, lock)
    // A remnant of the log that was removed: beside the database it would report a lost log.
    if (!existsSync(`${databasePath(staged)}-wal`)) rmSync(`${databasePath(staged)}-shm`, { force: true })
    const exchange = linkAside(placement)
    try {
      mark(folder, exchange)
      bringIn(folder, staged, exchange.names)
      finish(folder, exchange)
    } catch (error) {
      if (settle(folder)?.outcome !== 'finished') throw error
    }
    lock.markLog(false) // the log that a crash left moved aside with its database
    return { movedAside: exchange.there }
  } finally {
    lock.release()
  }
}

/** Rolls an interrupted exchange back or completes it; null when none was interrupted. */
export function settlePlacement({
  folder,
  holder,
}: {
  folder: string
  holder: number
}): SettledPlacement | null {
  makeFolder(folder)
  const lock = lockFolder(folder, holder)
  try {
    return settle(folder)
  } finally {
    lock.release()
  }
}

/**
 * Copies the log into the old database, so that the file is complete alone. A damaged database keeps its log beside it.
 */
function settleLog(folder: string, lock: FolderLock): void {
  const path = databasePath(folder)
  if (!existsSync(`${path}-wal`)) return
  try {
    if (findLogDamage(path) !== null) return
    const db = new Database(path, { readwrite: true, strict: true })
    try {
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      db.close()
    }
    if (!existsSync(`${path}-wal`)) lock.markLog(false)
  } catch {
    // The database is damaged, which may be why it is replaced.
  }
}

function linkAside({ folder, staged, aside, files, kind }: Placement): Exchange {
  const names = [...databaseFiles, ...files]
  const existingNames = names.filter((name) => existsSync(`${folder}/${name}`))
  const to = settingAsidePath(folder)
  mkdirSync(to, { mode: 0o700 })
  try {
    for (const name of existingNames) linkSync(`${folder}/${name}`, `${to}/${name}`)
    syncFolder(to)
    syncFolder(folder)
  } catch (error) {
    rmSync(to, { recursive: true, force: true })
    throw error
  }
  return { kind, phase: 'exchanging', staged, aside, names, there: existingNames }
}

/** Removes files without a successor, because an old log must never meet the new database. `from` null: all of them. */
function bringIn(folder: string, from: string | null, names: string[]): void {
  for (const name of names) {
    const to = `${folder}/${name}`
    if (from !== null && existsSync(`${from}/${name}`)) linkOver(`${from}/${name}`, to)
    else for (const path of [to, incomingOf(to)]) rmSync(path, { force: true })
  }
  syncFolder(folder)
}

const incomingOf = (path: string) => `${path}.incoming`

/** Gives a file a second name that replaces another file, which exists at every moment. */
function linkOver(from: string, to: string): void {
  const incoming = incomingOf(to)
  rmSync(incoming, { force: true })
  linkSync(from, incoming)
  renameSync(incoming, to)
  rmSync(incoming, { force: true }) // renaming one link of a file onto another keeps both
}

function finish(folder: string, exchange: Exchange): void {
  mark(folder, { ...exchange, phase: 'finishing' })
  const from = settingAsidePath(folder)
  if (exchange.there.length === 0) rmSync(from, { recursive: true, force: true })
  else if (existsSync(from)) renameSync(from, `${folder}/${exchange.aside}`)
  rmSync(exchange.staged, { recursive: true, force: true })
  syncFolder(folder)
  unmark(folder)
}

function mark(folder: string, exchange: Exchange): void {
  writeWhole(unfinishedRestorePath(folder), `${JSON.stringify(exchange)}\n`)
}

function unmark(folder: string): void {
  rmSync(unfinishedRestorePath(folder))
  try {
    syncFolder(folder)
  } catch {
    // Everything else is on disk. A marker that a power cut restores is settled like any other.
  }
}

function settle(folder: string): SettledPlacement | null {
  const path = unfinishedRestorePath(folder)
  const from = settingAsidePath(folder)
  if (!existsSync(path)) {
    // The exchange had not begun.
    rmSync(from, { recursive: true, force: true })
    rmSync(`${path}.tmp`, { force: true })
    return null
  }
  const exchange = readMarker(folder, readFileSync(path, 'utf8'))
  const { kind, aside } = exchange
  if (kind === 'undo' && exchange.phase === 'finishing') {
    finish(folder, exchange)
    return { kind, outcome: 'finished', aside }
  }
  if (exchange.phase !== 'restored') rollBack(folder, exchange)
  // Only now: until here the old files might be needed.
  rmSync(from, { recursive: true, force: true })
  rmSync(`${folder}/${aside}`, { recursive: true, force: true })
  unmark(folder)
  return { kind, outcome: 'rolled_back', aside }
}

function rollBack(folder: string, exchange: Exchange): void {
  const { names, there: existingNames, aside } = exchange
  const from = [settingAsidePath(folder), `${folder}/${aside}`].find((path) => existsSync(path))
  if (from === undefined && existingNames.length > 0) {
    throw new StoreError(
      'corrupt',
      `a restore was interrupted, and the folder ${aside} with the old data is gone`,
    )
  }
  bringIn(folder, from ?? null, names)
  mark(folder, { ...exchange, phase: 'restored' })
}

/** A marker of an earlier release contains only the name of the folder, without the step. */
function readMarker(folder: string, text: string): Exchange {
  try {
    return JSON.parse(text) as Exchange
  } catch {
    const aside = text.trim()
    const names = [...databaseFiles, 'audit-checkpoints']
    const existingNames = names.filter((name) => existsSync(`${folder}/${aside}/${name}`))
    keepMixed(folder, aside, names)
    const exchangedNames = existingNames.length === 0 ? [] : names
    return {
      kind: 'restore',
      phase: 'exchanging',
      staged: '',
      aside,
      names: exchangedNames,
      there: existingNames,
    }
  }
}

/** Files that an earlier release left half exchanged may be the only copy, so they stay under another name. */
function keepMixed(folder: string, aside: string, names: string[]): void {
  const to = `${folder}/interrupted-${aside}`
  if (!/^replaced-/.test(aside) || existsSync(to)) return
  mkdirSync(to, { mode: 0o700 })
  for (const name of names)
    if (existsSync(`${folder}/${name}`)) linkSync(`${folder}/${name}`, `${to}/${name}`)
  syncFolder(to)
}
