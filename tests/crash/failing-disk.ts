/** Controls when and how the disk of `failing-disk.c` fails. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Fault {
  call: 'sync' | 'write'
  file: string // the end of its name
  after: number // calls that still succeed
  times: number // calls that fail then
  errno: number
}

export const errno = { EIO: 5, ENOSPC: 28 } as const

export interface FailingDisk {
  /** Environment of a process that uses this disk. */
  env: Record<string, string>
  fail(fault: Fault): void
  /** When the first call failed, or null. */
  failedAtMs(): number | null
}

/** A separate disk for one process; `folder` holds its control file. */
export function failingDisk(library: string, folder: string): FailingDisk {
  const control = join(folder, 'fault')
  const noted = `${control}.failed`
  return {
    env: { LD_PRELOAD: library, FAILING_DISK: control },
    fail({ call, file, after: skipCount, times, errno: number }) {
      writeFileSync(`${control}.new`, `${call} ${file} ${skipCount} ${times} ${number}\n`)
      renameSync(`${control}.new`, control)
    },
    failedAtMs() {
      const text = existsSync(noted) ? readFileSync(noted, 'utf8') : ''
      return text.endsWith('\n') ? Number(text) : null
    },
  }
}
