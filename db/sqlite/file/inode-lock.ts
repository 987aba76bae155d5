/**
 * Locks a folder itself with flock(2). Removing or replacing a file in the folder does not release this lock, and the
 * kernel releases it when the process ends, also by kill -9.
 */
import { dlopen, read, type Pointer } from 'bun:ffi'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'

interface System {
  flock(descriptor: number, operation: number): number
  /** Why the last call of this thread failed. */
  errno(): number
}

const exclusiveNow = 2 | 4 // LOCK_EX, LOCK_NB
const wouldBlock = process.platform === 'darwin' ? 35 : 11

const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
const libraries: readonly (readonly [file: string, errno: string])[] =
  process.platform === 'darwin'
    ? [['libSystem.B.dylib', '__error']]
    : [
        ['libc.so.6', '__errno_location'],
        [`libc.musl-${arch}.so.1`, '__errno_location'],
      ]

let system: System | null | undefined

/**
 * Returns the function that releases the lock. Throws `locked` while another process holds it. Null where the file
 * system or the C library offers no such lock: `sightglass.lock` is then the only one.
 */
export function lockInode(folder: string): (() => void) | null {
  system ??= loadSystem()
  if (system === null) return null
  const descriptor = openSync(folder, 'r')
  if (system.flock(descriptor, exclusiveNow) === 0) return () => closeSync(descriptor)
  const isHeld = system.errno() === wouldBlock
  closeSync(descriptor)
  if (!isHeld) return null
  throw new StoreError('locked', `the data folder is in use by ${holderText(folder)}`)
}

function loadSystem(): System | null {
  for (const [file, errno] of libraries) {
    try {
      const { symbols } = dlopen(file, {
        flock: { args: ['i32', 'i32'], returns: 'i32' },
        [errno]: { args: [], returns: 'ptr' },
      }) as { symbols: Record<string, (...args: number[]) => unknown> }
      const { flock, [errno]: location } = symbols
      if (flock === undefined || location === undefined) continue
      return {
        flock: (descriptor, operation) => flock(descriptor, operation) as number,
        errno: () => read.i32(location() as Pointer),
      }
    } catch {
      // Another C library.
    }
  }
  return null
}

/** The kernel's table of locks names the process, also when the lock file that would name it was removed. */
function holderText(folder: string): string {
  try {
    const inode = String(statSync(folder, { bigint: true }).ino)
    for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
      const [, kind, , , pid, file] = line.split(/\s+/)
      if (kind === 'FLOCK' && file?.split(':')[2] === inode) return `process ${pid}`
    }
  } catch {
    // No such table on this system.
  }
  return 'another process'
}
