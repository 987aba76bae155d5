/**
 * Puts another database in the place of a folder's own. What was there is linked into a folder beside it first, so
 * that at no moment anything exists only half; a marker tells whoever opens the folder when this was interrupted.
 */
import { Database } from 'bun:sqlite'
import { existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import type { Placement } from '../../backup-contract.ts'
import { StoreError } from '../../errors.ts'
import { databasePath, makeFolder, unfinishedRestorePath } from '../files.ts'
import { lockFolder } from '../lock.ts'
import { syncFolder, writeWhole } from '../../durable-files.ts'

const databaseFiles = ['sightglass.db', 'sightglass.db-wal', 'sightglass.db-shm', 'audit-heads']

/** Takes the folder's lock and gives it back. */
export function requireFreeFolder({ folder, holder }: { folder: string; holder: number }): null {
  makeFolder(folder)
  lockFolder(folder, holder)()
  return null
}

export function placeDatabase(placement: Placement): { movedAside: string[] } {
  const { folder, staged, holder } = placement
  if (!existsSync(databasePath(staged))) throw new StoreError('not_found', 'no database is staged')
  makeFolder(folder)
  const unlock = lockFolder(folder, holder)
  try {
    settleLog(folder)
    const movedAside = linkAside(placement)
    writeWhole(unfinishedRestorePath(folder), `${placement.aside}\n`)
    exchange(placement)
    rmSync(unfinishedRestorePath(folder))
    syncFolder(folder)
    return { movedAside }
  } finally {
    unlock()
  }
}

/** Copies the log into the old database, so that it is whole by itself; a damaged one keeps its log beside it. */
function settleLog(folder: string): void {
  const path = databasePath(folder)
  if (!existsSync(`${path}-wal`)) return
  try {
    const db = new Database(path, { readwrite: true, strict: true })
    try {
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      db.close()
    }
  } catch {
    // It is being replaced because something is wrong with it.
  }
}

function linkAside({ folder, aside, files }: Placement): string[] {
  const there = [...databaseFiles, ...files].filter((name) => existsSync(`${folder}/${name}`))
  if (there.length === 0) return []
  const to = `${folder}/${aside}`
  mkdirSync(to, { mode: 0o700 })
  for (const name of there) linkSync(`${folder}/${name}`, `${to}/${name}`)
  syncFolder(to)
  syncFolder(folder)
  return there
}

function exchange({ folder, staged, files }: Placement): void {
  for (const name of [...databaseFiles, ...files]) {
    // Moving over the old one leaves no moment without; what has no successor goes: an old log must never meet the
    // new database.
    if (existsSync(`${staged}/${name}`)) renameSync(`${staged}/${name}`, `${folder}/${name}`)
    else rmSync(`${folder}/${name}`, { force: true })
  }
  syncFolder(folder)
}
