/** Watches the disk of the data folder: free space, so that ingest refuses before it fails, and fsync latency. */
import { open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { diskBoundsMs, makeHistogram, observe } from '../../db/rules/histogram.ts'
import type { Histogram } from '../../db/contract/histogram.ts'
import type { Log } from '../log.ts'

export interface DiskWatch {
  /** Below the floor at the last check, or a write failed for lack of space since then. */
  full(): boolean
  freeBytes(): number
  /** A write failed for lack of space: refuse until a check finds space again. */
  sawFull(): void
  check(): Promise<void>
}

/** Checks once before it returns. `floorBytes` is `--disk-floor`: below it ingest responds 507. */
export async function watchDisk(dataDir: string, floorBytes: number, log: Log): Promise<DiskWatch> {
  let freeBytes = Number.POSITIVE_INFINITY
  let isBelowFloor = false
  const check = async () => {
    const stats = await statfs(dataDir)
    freeBytes = stats.bavail * stats.bsize
    const now = freeBytes < floorBytes
    if (now !== isBelowFloor)
      log.warn(now ? 'disk_below_floor' : 'disk_above_floor', { freeBytes, floorBytes })
    isBelowFloor = now
  }
  await check()
  return {
    full: () => isBelowFloor,
    freeBytes: () => freeBytes,
    sawFull: () => void (isBelowFloor = true),
    check,
  }
}

/**
 * Measures how long the disk takes to sync a small write, with an unlinked file. A commit writes and syncs at once,
 * so this distinguishes a slow disk from a large commit.
 */
export interface FsyncProbe {
  /** Writes and syncs once. Errors are ignored, because the store reports them itself. */
  check(): Promise<void>
  times(): Histogram
  close(): Promise<void>
}

const probeBytes = 4_096

export async function probeFsync(dataDir: string): Promise<FsyncProbe> {
  const times = makeHistogram(diskBoundsMs)
  const path = join(dataDir, 'fsync-probe')
  // The open file outlives its name: its space is freed when the process ends, also after a crash.
  const file = await open(path, 'w', 0o600).catch(() => null)
  if (file !== null) await rm(path, { force: true }).catch(() => undefined)
  const content = new Uint8Array(probeBytes)
  return {
    async check() {
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
