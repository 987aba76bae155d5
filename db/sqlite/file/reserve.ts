/**
 * The reserve: 4 MiB beside the database, released on a full disk in pieces or whole. A piece makes space for opening
 * the database (SQLite needs some for its shared memory) and for what people must be able to do then: sign in, export,
 * shorten retention. Retention releases all of it, because its log needs space before it frees any.
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
const openBytesMin = 1024 * 1024 // with less free space, opening may fail
const makeBytesMin = 4 * reserveBytes // create it only where it does not fill the disk itself

const pieceBytes = 256 * 1024
const chunkBytes = 64 * 1024

const fileName = 'reserve'

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Releases the whole reserve. Returns false without a reserve. */
export function dropReserve(folder: string): boolean {
  const path = `${folder}/${fileName}`
  if (!existsSync(path)) return false
  rmSync(path)
  return true
}

/** Releases a piece of the reserve; false when none is left. */
function lendReserve(folder: string): boolean {
  const path = `${folder}/${fileName}`
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (bytes === 0) return false
  truncateSync(path, Math.max(0, bytes - pieceBytes))
  return true
}

/** Reclaims released pieces that are free again, before other data on the disk uses them. */
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

/** Releases as much of the reserve as opening the database needs. */
export function dropReserveWhenFull(folder: string): void {
  while (freeBytes(folder) < openBytesMin && lendReserve(folder));
}

/**
 * Creates a missing reserve when there is space. Returns whether there was. A failure leaves none, because the reserve
 * is optional.
 */
export function makeReserveWhenRoom(folder: string): boolean {
  const path = `${folder}/${fileName}`
  try {
    if (freeBytes(folder) < makeBytesMin) return false
    if (existsSync(path)) {
      regainReserve(folder)
      return true
    }
    const file = openSync(path, 'wx', 0o600)
    try {
      writeFileSync(file, Buffer.alloc(reserveBytes))
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    return true
  } catch {
    rmSync(path, { force: true })
    return false
  }
}

/** People's verbs, each a few kilobytes: on a full disk people can inspect and repair, while ingest is rejected. */
const byPeople = [
  /^(accounts|secondFactors|sites)\./,
  /^signIns\.(create|end|endById|endOthers|switchOrg)$/,
  /^throttle\.(begin|end)$/,
  /^invitations\.(create|revoke|accept)$/,
  /^orgs\.(create|rename|askDeletion|keep)$/,
  /^keys\.(create|revoke|change|rotate)$/,
  /^(audit\.append|retention\.set)$/,
]

/** Retries a person's verb with pieces of the reserve while the disk is full. */
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
