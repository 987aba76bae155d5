/**
 * The reserve: 4 MiB beside the database that are given up when the disk is full, so that it can still be opened, and
 * so that retention has the room in the log that it takes to make room.
 * SQLite needs a little room for its shared-memory file even when nothing but reading is wanted.
 */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, writeFileSync } from 'node:fs'

export const reserveBytes = 4 * 1024 * 1024
const openBytesMin = 1024 * 1024 // below this much room, opening may fail
const makeBytesMin = 4 * reserveBytes // make it only where it does not itself fill the disk

const fileName = 'reserve'

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Gives the reserve up; false when there is none. */
export function dropReserve(folder: string): boolean {
  const path = `${folder}/${fileName}`
  if (!existsSync(path)) return false
  rmSync(path)
  return true
}

/** Gives the reserve up when there is too little room to open the database. */
export function dropReserveWhenFull(folder: string): void {
  if (freeBytes(folder) < openBytesMin) rmSync(`${folder}/${fileName}`, { force: true })
}

/** Makes the reserve when it is missing and there is room. A failure leaves none: it is a comfort, not a need. */
export function makeReserveWhenRoom(folder: string): void {
  const path = `${folder}/${fileName}`
  try {
    if (existsSync(path) || freeBytes(folder) < makeBytesMin) return
    const file = openSync(path, 'wx', 0o600)
    try {
      writeFileSync(file, Buffer.alloc(reserveBytes))
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  } catch {
    rmSync(path, { force: true })
  }
}
