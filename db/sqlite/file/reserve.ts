/**
 * The reserve: 4 MiB beside the database that are given up on a full disk, in pieces or whole. A piece makes room for
 * opening the database (SQLite needs some for its shared memory) and for what people must be able to do then: sign in,
 * export, shorten retention. Retention takes all of it for the room in the log that it needs to make room.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { StoreError } from '../../contract/errors.ts'

const reserveBytes = 4 * 1024 * 1024
const openBytesMin = 1024 * 1024 // below this much room, opening may fail
const makeBytesMin = 4 * reserveBytes // make it only where it does not itself fill the disk

const pieceBytes = 256 * 1024
const chunkBytes = 64 * 1024

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

/** Gives a piece of the reserve up; false when nothing is left of it. */
function lendReserve(folder: string): boolean {
  const path = `${folder}/${fileName}`
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (bytes === 0) return false
  truncateSync(path, Math.max(0, bytes - pieceBytes))
  return true
}

/** Takes back what was lent and is free again, before anything else on the disk does. */
export function regainReserve(folder: string): void {
  const path = `${folder}/${fileName}`
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? reserveBytes
  if (bytes >= reserveBytes) return
  let end = bytes
  const file = openSync(path, 'r+')
  try {
    while (end < reserveBytes) end += writeSync(file, Buffer.alloc(chunkBytes), 0, chunkBytes, end)
  } catch {
    ftruncateSync(file, end) // the disk is still full
  } finally {
    closeSync(file)
  }
}

/** Gives up as much of the reserve as opening the database needs. */
export function dropReserveWhenFull(folder: string): void {
  while (freeBytes(folder) < openBytesMin && lendReserve(folder));
}

/** Makes the reserve when it is missing and there is room. A failure leaves none: it is a comfort, not a need. */
export function makeReserveWhenRoom(folder: string): void {
  const path = `${folder}/${fileName}`
  try {
    if (freeBytes(folder) < makeBytesMin) return
    if (existsSync(path)) return regainReserve(folder)
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

/** What people do, in a few kilobytes: on a full disk they must be able to look and to mend it. Traffic is refused. */
const byPeople = [
  /^(accounts|secondFactors|sites)\./,
  /^signIns\.(create|end|endById|endOthers|switchOrg)$/,
  /^invitations\.(create|revoke|accept)$/,
  /^orgs\.(create|rename|askDeletion|keep)$/,
  /^keys\.(create|revoke|change|rotate)$/,
  /^(audit\.append|retention\.set)$/,
]

/** Runs a verb of people again with a piece of the reserve for as long as there is no room for it. */
export function withReserve<T>(folder: string, verb: string, work: () => T): T {
  for (;;) {
    try {
      return work()
    } catch (error) {
      const isFull = error instanceof StoreError && error.kind === 'storage_full'
      if (!isFull || !byPeople.some((pattern) => pattern.test(verb)) || !lendReserve(folder)) throw error
    }
  }
}
