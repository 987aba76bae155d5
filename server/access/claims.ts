/** Who reads which log now: two readers of one log are refused, and Settings shows what each of them reports. */
import { readFileSync } from 'node:fs'
import { elapsedMs, isoTime, type Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { cutChars } from '../text/text.ts'
import type { LogStatus } from './sink.ts'

/** A log that is read now, as its reader reports it. */
export interface WatchedLog {
  siteId: string
  path: string
  source: string | null
  behindBytes: number
  problem: string | null
  seenAt: string
  isRunning: boolean // it was heard of a moment ago
}

/** Who reads, for whom. */
export interface Claimant {
  orgId: string
  options: { siteId: string }
  reader: string | null // null: a client that only sends
}

interface Claim {
  reader: string
  untilMs: number
}

/** A reader renews its claim every 5 s. */
const claimMs = 15_000
const shownMs = 10 * 60_000
const claimsMax = 10_000
const textCharsMax = 1_024

/**
 * Claims are in memory: after a restart, and on the other nodes of a shared database, the position that is stored with
 * the lines still keeps two readers from storing a line twice.
 */
export function makeClaims(clock: Clock) {
  const claims = new Map<string, Claim>()
  const shown = new Map<string, { orgId: string; log: WatchedLog; atMs: number }>()
  const nameOf = ({ orgId, options, reader }: Claimant, path: string) =>
    JSON.stringify([orgId, options.siteId, reader, path])
  const claimOf = ({ orgId, options }: Claimant, source: string) =>
    JSON.stringify([orgId, options.siteId, source])

  function renew(claimant: Claimant, { path, source }: { path: string; source: string | null }): void {
    const { reader } = claimant
    if (reader === null || source === null) return
    const name = claimOf(claimant, source)
    const currentClaim = claims.get(name)
    const nowMs = elapsedMs(clock)
    if (
      currentClaim !== undefined &&
      currentClaim.reader !== reader &&
      currentClaim.untilMs > nowMs &&
      isAlive(currentClaim.reader)
    ) {
      shown.delete(nameOf(claimant, path))
      throw new AppError('conflict', `Another process reads ${cutChars(path, textCharsMax)}.`, {
        hint: `stop the other one; if it was killed, this log is free after ${claimMs / 1_000} s`,
      })
    }
    claims.delete(name)
    claims.set(name, { reader, untilMs: nowMs + claimMs })
    if (claims.size > claimsMax) claims.delete(claims.keys().next().value!)
  }

  return {
    renew,
    /** Claims a log, and remembers what its reader says. */
    claim(claimant: Claimant, status: LogStatus): void {
      renew(claimant, status)
      if (claimant.reader === null) return
      const { orgId, options } = claimant
      const nowMs = elapsedMs(clock)
      const siteId = options.siteId
      const name = nameOf(claimant, status.path)
      const seenAt = isoTime(clock.now())
      const source = status.source ?? shown.get(name)?.log.source ?? null
      shown.delete(name)
      shown.set(name, { orgId, log: { siteId, ...status, source, seenAt, isRunning: true }, atMs: nowMs })
      if (shown.size > claimsMax) shown.delete(shown.keys().next().value!)
    },
    watched(orgId: string): WatchedLog[] {
      const nowMs = elapsedMs(clock)
      for (const [name, { atMs }] of shown) if (nowMs - atMs > shownMs) shown.delete(name)
      const orgLogs = [...shown.values()].filter((entry) => entry.orgId === orgId)
      return orgLogs.map(({ log, atMs }) => ({ ...log, isRunning: nowMs - atMs < claimMs }))
    },
  }
}

/** The name of a reader on this machine: its process, so that a claim ends when it was killed. */
export function processReader(pid: number, word: string): string {
  return `process:${pid}:${startOf(pid) ?? ''}:${word}`
}

function isAlive(reader: string): boolean {
  const [kind, pid, started] = reader.split(':')
  if (kind !== 'process' || started === '') return true
  return startOf(Number(pid)) === started
}

/** The start time of a process, in clock ticks since boot; null if it has ended or the system has no /proc. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
