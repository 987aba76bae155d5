/**
 * Watches the free space under the data folder, so that ingest can refuse in time instead of failing on a full disk.
 */
import { open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { diskBoundsMs, makeHistogram, observe, type Histogram } from '../../../db/rules/histogram.ts'
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

/**
 * How long the disk below the data folder takes to make a small write last: by a file that nobody else sees. SQLite
 * writes and syncs in one step of COMMIT, so this tells a slow disk from a large commit.
 */
export interface FsyncProbe {
  /** Writes and syncs once. A disk that refuses is no failure here: what is stored tells of it by itself. */
  look(): Promise<void>
  times(): Histogram
  close(): Promise<void>
}

const probeBytes = 4_096

export async function probeFsync(dataDir: string): Promise<FsyncProbe> {
  const times = makeHistogram(diskBoundsMs)
  const path = join(dataDir, 'fsync-probe')
  // Open, it outlives its name: the room is given back when the process ends, however it does.
  const file = await open(path, 'w', 0o600).catch(() => null)
  if (file !== null) await rm(path, { force: true }).catch(() => undefined)
  const content = new Uint8Array(probeBytes)
  return {
    async look() {
      const startedMs = performance.now()
      try {
        await file?.write(content, 0, probeBytes, 0)
        await file?.datasync()
      } catch {
        return
      }
      if (file !== null) observe(times, performance.now() - startedMs)
    },
    times: () => times,
    close: async () => void (await file?.close().catch(() => undefined)),
  }
}
