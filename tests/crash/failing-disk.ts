/** Compiles the disk that fails on demand (`failing-disk.c`) and lets it fail. */
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
  /** Environment of a process whose disk it is. */
  env: Record<string, string>
  fail(fault: Fault): void
  /** When the first call failed, or null. */
  failedAtMs(): number | null
}

/** Why there is none here; null when there can be. */
export function whyNoFailingDisk(): string | null {
  if (process.platform !== 'linux') return 'calls are replaced with LD_PRELOAD, which is of Linux'
  return Bun.which('gcc') === null
    ? 'there is no gcc to build it with (Debian: apt-get install gcc libc6-dev)'
    : null
}

/** Compiles it into `folder`, once for all disks. */
export async function buildFailingDisk(folder: string): Promise<string> {
  const library = join(folder, 'failing-disk.so')
  const source = join(import.meta.dir, 'failing-disk.c')
  const built = Bun.spawnSync(['gcc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source])
  if (built.exitCode !== 0) throw new Error(`gcc failed:\n${built.stderr.toString()}`)
  return library
}

/** A disk of its own for one process; `folder` takes its control file. */
export function failingDisk(library: string, folder: string): FailingDisk {
  const control = join(folder, 'fault')
  const noted = `${control}.failed`
  return {
    env: { LD_PRELOAD: library, FAILING_DISK: control },
    fail({ call, file, after, times, errno: number }) {
      writeFileSync(`${control}.new`, `${call} ${file} ${after} ${times} ${number}\n`)
      renameSync(`${control}.new`, control)
    },
    failedAtMs() {
      const text = existsSync(noted) ? readFileSync(noted, 'utf8') : ''
      return text.endsWith('\n') ? Number(text) : null
    },
  }
}
