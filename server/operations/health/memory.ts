/**
 * Watches our own memory against what we may use. The runtime has no ceiling of its own, so near the end it is better
 * to answer less, then nothing, then to end in good order and be started afresh, than to be killed in the middle.
 */
import { existsSync, readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import type { Log } from '../../log.ts'
import { sizeText } from '../../text/text.ts'

/** `reads`: exports, lists and the dashboard wait; `all`: everything but health does; `out`: the process should end. */
export type MemoryPressure = 'none' | 'reads' | 'all' | 'out'

export interface MemoryWatch {
  pressure(): MemoryPressure
  usedBytes(): number
  limitBytes: number
  look(): void
}

const readsShare = 0.7
const allShare = 0.85
const outShare = 0.95
const looksToEnd = 3 // in a row: one peak alone is no reason

/** `used` is given by tests; else it is the process' resident memory. */
export function watchMemory(
  limitBytes: number,
  log: Log,
  end: () => void,
  used: () => number = () => process.memoryUsage.rss(),
): MemoryWatch {
  let usedBytes = used()
  let pressure: MemoryPressure = 'none'
  let looksOut = 0
  let ending = false

  function look(): void {
    usedBytes = used()
    // What nobody needs any more may be most of it; collecting takes tens of milliseconds, so only when it matters.
    if (usedBytes > limitBytes * readsShare) {
      Bun.gc(true)
      usedBytes = used()
    }
    looksOut = usedBytes > limitBytes * outShare ? looksOut + 1 : 0
    const now = pressureOf(usedBytes / limitBytes, looksOut)
    if (now !== pressure) log.warn('memory_pressure', { pressure: now, usedBytes, limitBytes })
    pressure = now
    if (now !== 'out' || ending) return
    ending = true
    log.error('memory_exhausted', { usedBytes, limitBytes })
    end()
  }

  return { pressure: () => pressure, usedBytes: () => usedBytes, limitBytes, look }
}

function pressureOf(share: number, looksOut: number): MemoryPressure {
  if (looksOut >= looksToEnd) return 'out'
  if (share > allShare) return 'all'
  return share > readsShare ? 'reads' : 'none'
}

/** What the server takes beside the open store, and what the smallest limit leaves for work. */
const ownBytes = 12 * 1024 * 1024
const stepBytes = 16 * 1024 * 1024

/**
 * The smallest limit under which a server that has nothing to do sheds nothing; null when the given one is no smaller.
 * `usedBytes` is what the process takes with its store open.
 */
export function smallestLimit(limitBytes: number, usedBytes: number): number | null {
  const least = Math.ceil((usedBytes + ownBytes) / readsShare / stepBytes) * stepBytes
  return limitBytes < least ? least : null
}

/** Throws where the server would answer 503 for ever. */
export function requireMemory(limitBytes: number, isOption: boolean): void {
  Bun.gc(true)
  const usedBytes = process.memoryUsage.rss()
  const least = smallestLimit(limitBytes, usedBytes)
  if (least === null) return
  const what = isOption ? '--memory-limit' : 'the memory of this machine or container,'
  throw new Error(
    `${what} ${sizeText(limitBytes)} is too small: the server takes ${sizeText(usedBytes + ownBytes)} before it does ` +
      `anything and needs at least ${least / 1024 / 1024}MiB`,
  )
}

/** What the machine, or the container around us, leaves us. */
export function memoryAllowed(): number {
  const path = '/sys/fs/cgroup/memory.max'
  const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : 'max'
  const ofGroup = /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  return Math.min(ofGroup, totalmem())
}

/** Whether a request for this path is turned away under the given pressure. */
export function isShed(path: string, pressure: MemoryPressure): boolean {
  if (pressure === 'none' || path === '/healthz' || path === '/readyz') return false
  if (pressure !== 'reads') return true
  // What takes events goes on, and so does what an operator needs to see why.
  return /^\/(?:v1\/(?!sdk\/|limits$)|api\/(?!session$|sign-in|sign-out|doctor$))/.test(path)
}
