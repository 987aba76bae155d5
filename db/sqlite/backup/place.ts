/**
 * Puts another database in the place of a folder's own, so that an interruption at any step leaves the old files whole.
 *
 * The old files are linked into `.setting-aside` first. A marker file then says what is being exchanged: while it is
 * there, nobody opens the folder, and `settlePlacement` rolls the exchange back from those links. New files are linked
 * into place too, so that the folder they come from stays whole until the exchange is done. The marker goes last, when
 * no file has a second name in another folder: two databases must never share an inode.
 */
import { Database } from 'bun:sqlite'
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import type { Placement, SettledPlacement } from '../../contract/backup.ts'
import { syncFolder, writeWhole } from '../../rules/durable-files.ts'
import { StoreError } from '../../contract/errors.ts'
import { databasePath, makeFolder, settingAsidePath, unfinishedRestorePath } from '../file/files.ts'
import { lockFolder, type FolderLock } from '../file/lock.ts'

const databaseFiles = ['sightglass.db', 'sightglass.db-wal', 'sightglass.db-shm', 'audit-heads']

/** What the marker says, in JSON. */
interface Exchange {
  kind: Placement['kind']
  /** `exchanging` can be rolled back; `finishing` of an undo is finished; `restored` has been rolled back. */
  phase: 'exchanging' | 'finishing' | 'restored'
  staged: string // path
  aside: string // name, inside the folder
  names: string[] // of the files that are exchanged
  there: string[] // those that were there before
}

/** Takes the folder's lock and gives it back. */
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
    const exchange = linkAside(placement)
    try {
      mark(folder, exchange)
      bringIn(folder, staged, exchange.names)
      finish(folder, exchange)
    } catch (error) {
      if (settle(folder)?.outcome !== 'finished') throw error
    }
    lock.markLog(false) // the log that a crash left went aside with its database
    return { movedAside: exchange.there }
  } finally {
    lock.release()
  }
}

/** Rolls an interrupted exchange back, or finishes it; null when none was interrupted. */
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

/** Copies the log into the old database, so that it is whole by itself; a damaged one keeps its log beside it. */
function settleLog(folder: string, lock: FolderLock): void {
  const path = databasePath(folder)
  if (!existsSync(`${path}-wal`)) return
  try {
    const db = new Database(path, { readwrite: true, strict: true })
    try {
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      db.close()
    }
    if (!existsSync(`${path}-wal`)) lock.markLog(false)
  } catch {
    // It is being replaced because something is wrong with it.
  }
}

function linkAside({ folder, staged, aside, files, kind }: Placement): Exchange {
  const names = [...databaseFiles, ...files]
  const there = names.filter((name) => existsSync(`${folder}/${name}`))
  const to = settingAsidePath(folder)
  mkdirSync(to, { mode: 0o700 })
  try {
    for (const name of there) linkSync(`${folder}/${name}`, `${to}/${name}`)
    syncFolder(to)
    syncFolder(folder)
  } catch (error) {
    rmSync(to, { recursive: true, force: true })
    throw error
  }
  return { kind, phase: 'exchanging', staged, aside, names, there }
}

/** Files that have no successor go: an old log must never meet the new database. `from` null: nothing has one. */
function bringIn(folder: string, from: string | null, names: string[]): void {
  for (const name of names) {
    const to = `${folder}/${name}`
    if (from !== null && existsSync(`${from}/${name}`)) linkOver(`${from}/${name}`, to)
    else for (const path of [to, incomingOf(to)]) rmSync(path, { force: true })
  }
  syncFolder(folder)
}

const incomingOf = (path: string) => `${path}.incoming`

/** Gives the file a second name, in the place of another file, without a moment without either. */
function linkOver(from: string, to: string): void {
  const incoming = incomingOf(to)
  rmSync(incoming, { force: true })
  linkSync(from, incoming)
  renameSync(incoming, to)
  rmSync(incoming, { force: true }) // renaming one link of a file over another leaves both
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
    // All else is on the disk. A marker that a power cut brings back is settled like any other.
  }
}

function settle(folder: string): SettledPlacement | null {
  const path = unfinishedRestorePath(folder)
  const from = settingAsidePath(folder)
  if (!existsSync(path)) {
    // Of an exchange that had not begun.
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
  // Only then: until here the old files might be needed again.
  rmSync(from, { recursive: true, force: true })
  rmSync(`${folder}/${aside}`, { recursive: true, force: true })
  unmark(folder)
  return { kind, outcome: 'rolled_back', aside }
}

function rollBack(folder: string, exchange: Exchange): void {
  const { names, there, aside } = exchange
  const from = [settingAsidePath(folder), `${folder}/${aside}`].find((path) => existsSync(path))
  if (from === undefined && there.length > 0) {
    throw new StoreError(
      'corrupt',
      `a restore was interrupted, and the folder ${aside} with the old data is gone`,
    )
  }
  bringIn(folder, from ?? null, names)
  mark(folder, { ...exchange, phase: 'restored' })
}

/** A marker of an earlier release holds the name of the folder alone, and does not say what was being done. */
function readMarker(folder: string, text: string): Exchange {
  try {
    return JSON.parse(text) as Exchange
  } catch {
    const aside = text.trim()
    const names = [...databaseFiles, 'audit-checkpoints']
    const there = names.filter((name) => existsSync(`${folder}/${aside}/${name}`))
    keepMixed(folder, aside, names)
    const known = there.length === 0 ? [] : names
    return { kind: 'restore', phase: 'exchanging', staged: '', aside, names: known, there }
  }
}

/** What an earlier release left half exchanged may hold the only copy of a file: it stays, under another name. */
function keepMixed(folder: string, aside: string, names: string[]): void {
  const to = `${folder}/interrupted-${aside}`
  if (!/^replaced-/.test(aside) || existsSync(to)) return
  mkdirSync(to, { mode: 0o700 })
  for (const name of names)
    if (existsSync(`${folder}/${name}`)) linkSync(`${folder}/${name}`, `${to}/${name}`)
  syncFolder(to)
}
