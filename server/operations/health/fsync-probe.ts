/**
 * How long the disk below the data folder takes to make a small write last: by a file that nobody else sees. SQLite
 * writes and syncs in one step of COMMIT, so this tells a slow disk from a large commit.
 */
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { diskBoundsMs, makeHistogram, observe, type Histogram } from '../../../db/rules/histogram.ts'

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
