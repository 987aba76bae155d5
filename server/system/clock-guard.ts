/**
 * Compares the wall clock with the machine's uptime, so that a clock that jumped deletes nothing and delays nothing.
 *
 * Retention, pruning and expiry ask `hold()` before they delete: after a jump they wait until the clock is back, until
 * an operator confirms it, or until it has been steady for a day. Waits that are stored as times (webhook retries) are
 * shifted by the jump, at the moment from which `clock` tells the new time.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../../db/rules/durable-files.ts'
import { elapsedMs, isoTime, systemClock, type Clock } from '../clock.ts'
import type { Log } from '../log.ts'

export interface ClockHold {
  sinceMs: number // by the wall clock that jumped
  jumpMs: number // how far the clock is ahead (positive) or behind of what it should say
  leftMs: number // of steady time until it counts as right
}

export interface ClockGuard {
  /** The wall clock, which jumps only when the guard has noticed and the listeners have shifted their times. */
  clock: Clock
  /** When something arrives: never before what arrived earlier, though the clock was set back. */
  arrival(): number
  /** Looks at the clock. Null: what is old by it may be deleted. */
  hold(): ClockHold | null
  /** The clock is right as it is. Returns the hold that this ended. */
  confirm(): ClockHold | null
  /** Called with how far the clock jumped, at once for a jump while no process ran. */
  onJump(listener: (byMs: number) => void): void
  /** Looks at the clock by itself from now on, and keeps what it saw: for the holder of the folder's lock. */
  run(): void
  save(): void
  /** `keeps` false: the folder may not be ours any more, so nothing is written into it. */
  stop(keeps?: boolean): void
}

export interface GuardedTime {
  source: Clock
  /** Milliseconds that grow as long as the machine runs, also between two processes. */
  uptime(): number
  /** Changes with each start of the machine; null when it cannot be known. */
  bootId: string | null
}

export interface GuardOptions {
  time: GuardedTime
  dataDir: string | null // has what was last seen; null: nothing is kept
  log: Pick<Log, 'info' | 'warn' | 'error'>
}

const hourMs = 3_600_000
/** A clock this far off is wrong; less is corrected by NTP every day. */
export const clockToleranceMs = 10 * 60_000
/** The least that waits are shifted by. */
const jumpMsMin = 2_000
/** A machine that was off this long is believed. Longer, it looks like a wrong clock. */
const downtimeMs = 36 * hourMs
const steadyMs = 24 * hourMs
const checkEveryMs = 1_000
const saveEveryMs = 60_000
/** How fast a clock may drift, as a share of the time that passes. */
const driftShare = 0.01

const fileName = 'clock'

/** What was last seen. `expectedMs` is what the wall clock should have said then. */
interface Seen {
  bootId: string | null
  uptimeMs: number
  wallMs: number
  expectedMs: number
  slackMs: number // how much later than expected is believed too: time that a machine was off
  hold: { sinceMs: number; offsetMs: number; steadyMs: number } | null
}

export function systemTime(): GuardedTime {
  const bootId = readText('/proc/sys/kernel/random/boot_id')
  // The kernel's own file: what fakes the clock for a process often fakes its monotonic clock too.
  const text = () => readText('/proc/uptime')
  const uptime = text() === null ? () => performance.now() : () => Number(text()?.split(' ')[0]) * 1_000
  return { source: systemClock, uptime, bootId: text() === null ? null : bootId }
}

/** A clock of a test's own: without `elapsed` it can be set as it likes, and no jump is noticed. */
export function testTime(source: Clock): GuardedTime {
  return { source, uptime: () => elapsedMs(source), bootId: 'test' }
}

export function startClockGuard({ time, dataDir, log }: GuardOptions): ClockGuard {
  const { source, uptime, bootId } = time
  const begun = begin(time, dataDir)
  const seen = begun.seen
  let startJumpMs = begun.jumpMs
  const ticking = tickingClock(source)
  let savedUptimeMs = -Infinity
  let timer: Timer | null = null
  const listeners: ((byMs: number) => void)[] = []

  function jumped(byMs: number): void {
    log.warn('clock_jumped', { byMs: Math.round(byMs), at: isoTime(source.now()) })
    ticking.jump()
    listeners.forEach((listener) => listener(byMs))
  }

  /** Advances what was seen to now. */
  function check(): void {
    const [wallMs, uptimeMs] = [source.now(), uptime()]
    const passedMs = Math.max(0, uptimeMs - seen.uptimeMs)
    const byMs = wallMs - seen.wallMs - passedMs
    seen.expectedMs += passedMs
    Object.assign(seen, { wallMs, uptimeMs })
    const held = seen.hold !== null
    judge(seen, passedMs, log)
    if (Math.abs(byMs) >= jumpMsMin) jumped(byMs)
    ticking.set(wallMs)
    if (timer !== null && (held !== (seen.hold !== null) || uptimeMs - savedUptimeMs >= saveEveryMs)) save()
  }

  function save(): void {
    savedUptimeMs = seen.uptimeMs
    writeSeen(dataDir, { ...seen, bootId }, log)
  }

  check()
  const guard: ClockGuard = {
    clock: ticking.clock,
    arrival: () =>
      ticking.clock.now() + (seen.hold === null ? 0 : Math.max(0, seen.expectedMs - seen.wallMs)),
    hold() {
      check()
      return holdOf(seen)
    },
    confirm() {
      const hold = guard.hold()
      if (hold !== null) accept(seen, 'it was confirmed', log)
      save()
      return hold
    },
    onJump(listener) {
      listeners.push(listener)
      if (startJumpMs !== 0) listener(startJumpMs)
      startJumpMs = 0
    },
    save,
    run() {
      save()
      timer ??= setInterval(check, checkEveryMs)
      timer.unref()
    },
    stop(keeps = true) {
      if (timer !== null) clearInterval(timer)
      if (timer === null || !keeps) return
      check()
      save()
    },
  }
  return guard
}

/** Between two looks it goes on by itself, and a correction of milliseconds never takes it back. */
function tickingClock(source: Clock) {
  let baseMs = source.now()
  let baseElapsedMs = elapsedMs(source)
  let toldMs = 0
  const clock: Clock = {
    now: () => (toldMs = Math.max(toldMs, Math.round(baseMs + elapsedMs(source) - baseElapsedMs))),
    elapsed: () => elapsedMs(source),
  }
  return {
    clock,
    jump: () => void (toldMs = 0),
    set(wallMs: number) {
      baseMs = wallMs
      baseElapsedMs = elapsedMs(source)
    },
  }
}

/** Begins, goes on with or ends a hold. */
function judge(seen: Seen, passedMs: number, log: GuardOptions['log']): void {
  const offMs = seen.wallMs - seen.expectedMs
  if (offMs >= -clockToleranceMs && offMs <= seen.slackMs + clockToleranceMs) {
    if (seen.hold !== null) log.info('clock_hold_ended', { why: 'the clock is back' })
    const driftMs = passedMs * driftShare
    seen.expectedMs += seen.slackMs > 0 ? offMs : Math.min(driftMs, Math.max(-driftMs, offMs))
    Object.assign(seen, { slackMs: 0, hold: null })
    return
  }
  const offsetMs = seen.wallMs - seen.uptimeMs
  if (seen.hold === null) {
    log.error('clock_hold', { offMs: Math.round(offMs), at: isoTime(seen.wallMs) })
    seen.hold = { sinceMs: seen.wallMs, offsetMs, steadyMs: 0 }
  } else if (Math.abs(offsetMs - seen.hold.offsetMs) > clockToleranceMs) {
    Object.assign(seen.hold, { offsetMs, steadyMs: 0 })
  } else seen.hold.steadyMs += passedMs
  if (seen.hold.steadyMs >= steadyMs) accept(seen, 'it was steady for a day', log)
}

function accept(seen: Seen, why: string, log: GuardOptions['log']): void {
  log.info('clock_hold_ended', { why })
  Object.assign(seen, { expectedMs: seen.wallMs, slackMs: 0, hold: null })
}

function holdOf({ hold, wallMs, expectedMs }: Seen): ClockHold | null {
  if (hold === null) return null
  return { sinceMs: hold.sinceMs, jumpMs: wallMs - expectedMs, leftMs: steadyMs - hold.steadyMs }
}

/** Where to go on from: what the last process saw, or what the files of the folder say; and the jump in between. */
function begin(
  { source, uptime, bootId }: GuardedTime,
  dataDir: string | null,
): { seen: Seen; jumpMs: number } {
  const now = { bootId, uptimeMs: uptime(), wallMs: source.now() }
  const kept = dataDir === null ? null : readSeen(dataDir)
  if (kept === null) {
    const lastMs = dataDir === null ? null : lastWriteMs(dataDir)
    const expectedMs = lastMs ?? now.wallMs
    return { seen: { ...now, expectedMs, slackMs: lastMs === null ? 0 : downtimeMs, hold: null }, jumpMs: 0 }
  }
  if (bootId !== null && kept.bootId === bootId && now.uptimeMs >= kept.uptimeMs) {
    // The same boot: the first look sees the jump itself, and nobody listens yet.
    const byMs = now.wallMs - kept.wallMs - (now.uptimeMs - kept.uptimeMs)
    return { seen: kept, jumpMs: Math.abs(byMs) >= jumpMsMin ? byMs : 0 }
  }
  const byMs = now.wallMs - kept.wallMs
  const seen = {
    ...now,
    expectedMs: kept.expectedMs,
    slackMs: kept.slackMs + downtimeMs,
    hold: keptHold(kept, now),
  }
  return { seen, jumpMs: byMs <= -jumpMsMin ? byMs : 0 }
}

/** A hold goes on over a start of the machine; the offset is anew, the steady time is not lost. */
function keptHold({ hold }: Seen, { wallMs, uptimeMs }: Pick<Seen, 'wallMs' | 'uptimeMs'>): Seen['hold'] {
  return hold === null ? null : { ...hold, offsetMs: wallMs - uptimeMs }
}

function writeSeen(dataDir: string | null, seen: Seen, log: GuardOptions['log']): void {
  if (dataDir === null || !existsSync(dataDir)) return
  try {
    writeWhole(join(dataDir, fileName), `${JSON.stringify(seen)}\n`)
  } catch (error) {
    log.warn('clock_not_saved', { message: String(error) }) // a full disk heals; the next minute tries again
  }
}

function readSeen(dataDir: string): Seen | null {
  try {
    const seen = JSON.parse(readFileSync(join(dataDir, fileName), 'utf8')) as Seen
    const { uptimeMs, wallMs, expectedMs, slackMs } = seen
    return [uptimeMs, wallMs, expectedMs, slackMs].every(Number.isFinite) ? seen : null
  } catch {
    return null
  }
}

/** Folders of earlier releases, and those whose file was lost: the newest write of the database. */
function lastWriteMs(dataDir: string): number | null {
  const names = ['sightglass.db', 'sightglass.db-wal', 'audit-heads', 'audit-checkpoints']
  const paths = names.map((name) => join(dataDir, name)).filter((path) => existsSync(path))
  return paths.length === 0 ? null : Math.max(...paths.map((path) => statSync(path).mtimeMs))
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}
