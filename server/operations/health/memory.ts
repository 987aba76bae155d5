/**
 * Watches the process's memory against its limit. Bun has no ceiling of its own, so near the limit the server first
 * refuses reads, then everything, then exits cleanly to be restarted, instead of being killed in the middle of work.
 */
import { existsSync, readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { isOtlp } from '../../http/request.ts'
import type { Log } from '../../log.ts'
import { sizeText } from '../../text/text.ts'

/** `reads`: refuse exports, lists and the dashboard; `all`: refuse everything but health; `out`: end the process. */
type MemoryPressure = 'none' | 'reads' | 'all' | 'out'

export interface MemoryWatch {
  pressure(): MemoryPressure
  usedBytes(): number
  limitBytes: number
  check(): void
}

const readsShare = 0.7
const allShare = 0.85
const outShare = 0.95
const checksToEnd = 3 // in a row: one peak is not enough

/** `used` is the resident memory of the process; tests replace it. */
export function watchMemory(
  limitBytes: number,
  log: Log,
  end: () => void,
  readUsedBytes: () => number = () => process.memoryUsage.rss(),
): MemoryWatch {
  let usedBytes = readUsedBytes()
  let pressure: MemoryPressure = 'none'
  let checksOut = 0
  let ending = false

  function check(): void {
    usedBytes = readUsedBytes()
    // Most of it may be garbage; collecting takes tens of milliseconds, so only under pressure.
    if (usedBytes > limitBytes * readsShare) {
      Bun.gc(true)
      usedBytes = readUsedBytes()
    }
    checksOut = usedBytes > limitBytes * outShare ? checksOut + 1 : 0
    const now = pressureOf(usedBytes / limitBytes, checksOut)
    if (now !== pressure) log.warn('memory_pressure', { pressure: now, usedBytes, limitBytes })
    pressure = now
    if (now !== 'out' || ending) return
    ending = true
    log.error('memory_exhausted', { usedBytes, limitBytes })
    end()
  }

  return { pressure: () => pressure, usedBytes: () => usedBytes, limitBytes, check }
}

function pressureOf(share: number, checksOut: number): MemoryPressure {
  if (checksOut >= checksToEnd) return 'out'
  if (share > allShare) return 'all'
  return share > readsShare ? 'reads' : 'none'
}

/** The memory of the server beside the open store, and the minimum left for work. */
const ownBytes = 12 * 1024 * 1024
const stepBytes = 16 * 1024 * 1024

/**
 * The smallest limit at which an idle server refuses nothing; null when the given limit is large enough. `usedBytes` is
 * the memory of the process with its store open.
 */
function smallestLimit(limitBytes: number, usedBytes: number): number | null {
  const limitMin = Math.ceil((usedBytes + ownBytes) / readsShare / stepBytes) * stepBytes
  return limitBytes < limitMin ? limitMin : null
}

/** Throws when the limit is so low that every request would get a 503. */
export function requireMemory(limitBytes: number, isOption: boolean): void {
  // Garbage does not count, but collecting it takes 20 ms of every start, so only when it decides.
  if (smallestLimit(limitBytes, process.memoryUsage.rss()) === null) return
  Bun.gc(true)
  const usedBytes = process.memoryUsage.rss()
  const limitMin = smallestLimit(limitBytes, usedBytes)
  if (limitMin === null) return
  const limitName = isOption ? '--memory-limit' : 'the memory of this machine or container,'
  throw new Error(
    `${limitName} ${sizeText(limitBytes)} is too small: the idle server uses ${sizeText(usedBytes + ownBytes)} and ` +
      `needs at least ${limitMin / 1024 / 1024}MiB`,
  )
}

/** The memory of the machine or the container. */
export function memoryAllowed(): number {
  const path = '/sys/fs/cgroup/memory.max'
  const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : 'max'
  const ofGroup = /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  return Math.min(ofGroup, totalmem())
}

/** Whether a request for this path is refused under the given pressure. */
export function isShed(method: string, path: string, pressure: MemoryPressure): boolean {
  if (pressure === 'none' || path === '/healthz' || path === '/readyz') return false
  if (pressure !== 'reads') return true
  if (isOtlp(method, path)) return false
  // Ingest continues, and so does everything an operator needs to diagnose the cause.
  return /^\/(?:mcp\/?$|v1\/(?!sdk\/|limits$)|api\/(?!session$|sign-in|sign-out|doctor$))/.test(path)
}
