/**
 * Watches the free space under the data folder, so that ingest can refuse in time instead of failing on a full disk.
 */
import { statfs } from 'node:fs/promises'
import type { Log } from '../../log.ts'

export interface DiskWatch {
  /** Below the floor at the last look, or a write failed for lack of room since then. */
  full(): boolean
  freeBytes(): number
  /** A write just failed for lack of room: refuse until a look finds room again. */
  sawFull(): void
  look(): Promise<void>
}

/** Looks once before it returns. `floorBytes` is `--disk-floor`: below it ingest answers 507. */
export async function watchDisk(dataDir: string, floorBytes: number, log: Log): Promise<DiskWatch> {
  let freeBytes = Number.POSITIVE_INFINITY
  let below = false
  const look = async () => {
    const stats = await statfs(dataDir)
    freeBytes = stats.bavail * stats.bsize
    const now = freeBytes < floorBytes
    if (now !== below) log.warn(now ? 'disk_below_floor' : 'disk_has_room', { freeBytes, floorBytes })
    below = now
  }
  await look()
  return {
    full: () => below,
    freeBytes: () => freeBytes,
    sawFull: () => void (below = true),
    look,
  }
}
