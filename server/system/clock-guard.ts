/**
 * Compares the wall clock with the machine's uptime, so that a clock jump neither deletes nor delays anything.
 *
 * Retention, pruning and expiry call `hold()` before they delete. After a jump they pause until the clock is correct,
 * an operator confirms it, or it has been steady for 24 hours. Stored due times (webhook retries) are shifted by the
 * jump at the moment when `clock` adopts the new time.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../../db/rules/durable-files.ts'
import { elapsedMs, isoTime, systemClock, type Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { hourMs } from '../../db/contract/units.ts'

export interface ClockHold {
  sinceMs: number // wall-clock time after the jump
  jumpMs: number // how far the clock is ahead (positive) or behind
  leftMs: number // of steady time until the clock is trusted again
}

export interface ClockGuard {
  /** The wall clock. It jumps only after the guard has noticed and the listeners have shifted their times. */
  clock: Clock
  /** The arrival time of an event; never decreases, even if the clock is set back. */
  arrival(): number
  /** Checks the clock. Null: deletion by age is allowed. */
  hold(): ClockHold | null
  /** Confirms the current clock. Returns the hold that this ended. */
  confirm(): ClockHold | null
  /** Registers a callback for jumps; called immediately for a jump while no process ran. */
  onJump(listener: (byMs: number) => void): void
  /** Starts checking and saving the clock, for the holder of the folder's lock. */
  run(): void
  save(): void
  /** With `saves` false nothing is written, because the folder may no longer be ours. */
  stop(saves?: boolean): void
}

export interface GuardedTime {
  source: Clock
  /** Milliseconds since the machine started, comparable between processes. */
  uptime(): number
  /** Changes with every boot; null when unknown. */
  bootId: string | null
}

interface GuardOptions {
  time: GuardedTime
  dataDir: string | null // stores the last observation; null: none
  /** The database's newest write: believed without a saved observation (earlier releases, lost file). */
  lastWriteMs?: number | null
  log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** A clock that is further off is wrong; NTP corrects smaller offsets every day. */
export const clockToleranceMs = 10 * 60_000
/** The smallest jump that shifts waits. */
const jumpMsMin = 2_000
/** The longest downtime that is believed; beyond it the clock is probably wrong. */
const downtimeMs = 36 * hourMs
const steadyMs = 24 * hourMs
const checkEveryMs = 1_000
const saveEveryMs = 60_000
/** The maximum drift of a clock, as a share of the elapsed time. */
const driftShare = 0.01

const fileName = 'clock'

/** The last observation. `expectedMs` is the correct wall-clock time at that moment. */
interface Observation {
  bootId: string | null
  uptimeMs: number
  wallMs: number
  expectedMs: number
  slackMs: number // how much later than expected is plausible, because the machine may have been off
  hold: { sinceMs: number; offsetMs: number; steadyMs: number } | null
}

export function systemTime(): GuardedTime {
  const bootId = readText('/proc/sys/kernel/random/boot_id')
  // From the kernel: tools that fake a process's clock often fake its monotonic clock too.
  const text = () => readText('/proc/uptime')
  const uptime = text() === null ? () => performance.now() : () => Number(text()?.split(' ')[0]) * 1_000
  return { source: systemClock, uptime, bootId: text() === null ? null : bootId }
}

/** The clock of a test. Without `elapsed` it can be set freely and no jump is detected. */
export function testTime(source: Clock): GuardedTime {
  return { source, uptime: () => elapsedMs(source), bootId: 'test' }
}

export function startClockGuard({ time, dataDir, lastWriteMs = null, log }: GuardOptions): ClockGuard {
  const { source, uptime, bootId } = time
  const startState = begin(time, dataDir, lastWriteMs)
  const observation = startState.seen
  let startJumpMs = startState.jumpMs
  const ticking = tickingClock(source)
  let savedUptimeMs = -Infinity
  let timer: Timer | null = null
  const listeners: ((byMs: number) => void)[] = []

  function jumped(byMs: number): void {
    log.warn('clock_jumped', { byMs: Math.round(byMs), at: isoTime(source.now()) })
    ticking.jump()
    listeners.forEach((listener) => listener(byMs))
  }

  /** Advances the observation to now. */
  function check(): void {
    const wallMs = source.now()
    const uptimeMs = uptime()
    const passedMs = Math.max(0, uptimeMs - observation.uptimeMs)
    const byMs = wallMs - observation.wallMs - passedMs
    observation.expectedMs += passedMs
    Object.assign(observation, { wallMs, uptimeMs })
    const wasHeld = observation.hold !== null
    updateHold(observation, passedMs, log)
    if (Math.abs(byMs) >= jumpMsMin) jumped(byMs)
    ticking.set(wallMs)
    if (
      timer !== null &&
      (wasHeld !== (observation.hold !== null) || uptimeMs - savedUptimeMs >= saveEveryMs)
    )
      save()
  }

  function save(): void {
    savedUptimeMs = observation.uptimeMs
    writeObservation(dataDir, { ...observation, bootId }, log)
  }

  check()
  const guard: ClockGuard = {
    clock: ticking.clock,
    arrival: () =>
      ticking.clock.now() +
      (observation.hold === null ? 0 : Math.max(0, observation.expectedMs - observation.wallMs)),
    hold() {
      check()
      return holdOf(observation)
    },
    confirm() {
      const hold = guard.hold()
      if (hold !== null) accept(observation, 'confirmed by an operator', log)
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
    stop(saves = true) {
      if (timer !== null) clearInterval(timer)
      if (timer === null || !saves) return
      check()
      save()
    },
  }
  return guard
}

/** Advances on its own between two checks, and never decreases on a correction of milliseconds. */
function tickingClock(source: Clock) {
  let baseMs = source.now()
  let baseElapsedMs = elapsedMs(source)
  let newestMs = 0
  const clock: Clock = {
    now: () => (newestMs = Math.max(newestMs, Math.round(baseMs + elapsedMs(source) - baseElapsedMs))),
    elapsed: () => elapsedMs(source),
  }
  return {
    clock,
    jump: () => void (newestMs = 0),
    set(wallMs: number) {
      baseMs = wallMs
      baseElapsedMs = elapsedMs(source)
    },
  }
}

/** Starts, continues or ends a hold. */
function updateHold(observation: Observation, passedMs: number, log: GuardOptions['log']): void {
  const offMs = observation.wallMs - observation.expectedMs
  if (offMs >= -clockToleranceMs && offMs <= observation.slackMs + clockToleranceMs) {
    if (observation.hold !== null) log.info('clock_hold_ended', { why: 'the clock is correct again' })
    const driftMs = passedMs * driftShare
    observation.expectedMs += observation.slackMs > 0 ? offMs : Math.min(driftMs, Math.max(-driftMs, offMs))
    Object.assign(observation, { slackMs: 0, hold: null })
    return
  }
  const offsetMs = observation.wallMs - observation.uptimeMs
  if (observation.hold === null) {
    log.error('clock_hold', { offMs: Math.round(offMs), at: isoTime(observation.wallMs) })
    observation.hold = { sinceMs: observation.wallMs, offsetMs, steadyMs: 0 }
  } else if (Math.abs(offsetMs - observation.hold.offsetMs) > clockToleranceMs) {
    Object.assign(observation.hold, { offsetMs, steadyMs: 0 })
  } else observation.hold.steadyMs += passedMs
  if (observation.hold.steadyMs >= steadyMs) accept(observation, 'steady for 24 hours', log)
}

function accept(observation: Observation, reason: string, log: GuardOptions['log']): void {
  log.info('clock_hold_ended', { why: reason })
  Object.assign(observation, { expectedMs: observation.wallMs, slackMs: 0, hold: null })
}

function holdOf({ hold, wallMs, expectedMs }: Observation): ClockHold | null {
  if (hold === null) return null
  return { sinceMs: hold.sinceMs, jumpMs: wallMs - expectedMs, leftMs: steadyMs - hold.steadyMs }
}

/** The starting point: the last process's observation or newest write, and the jump since then. */
function begin(
  { source, uptime, bootId }: GuardedTime,
  dataDir: string | null,
  lastMs: number | null,
): { seen: Observation; jumpMs: number } {
  const now = { bootId, uptimeMs: uptime(), wallMs: source.now() }
  const last = dataDir === null ? null : readObservation(dataDir)
  if (last === null) {
    const expectedMs = lastMs ?? now.wallMs
    return { seen: { ...now, expectedMs, slackMs: lastMs === null ? 0 : downtimeMs, hold: null }, jumpMs: 0 }
  }
  if (bootId !== null && last.bootId === bootId && now.uptimeMs >= last.uptimeMs) {
    // Same boot: the first check detects the jump, because no listener is registered yet.
    const byMs = now.wallMs - last.wallMs - (now.uptimeMs - last.uptimeMs)
    return { seen: last, jumpMs: Math.abs(byMs) >= jumpMsMin ? byMs : 0 }
  }
  const byMs = now.wallMs - last.wallMs
  const observation = {
    ...now,
    expectedMs: last.expectedMs,
    slackMs: last.slackMs + downtimeMs,
    hold: continuedHold(last, now),
  }
  return { seen: observation, jumpMs: byMs <= -jumpMsMin ? byMs : 0 }
}

/** Continues a hold after a reboot: the offset is measured again, the steady time continues. */
function continuedHold(
  { hold }: Observation,
  { wallMs, uptimeMs }: Pick<Observation, 'wallMs' | 'uptimeMs'>,
): Observation['hold'] {
  return hold === null ? null : { ...hold, offsetMs: wallMs - uptimeMs }
}

function writeObservation(dataDir: string | null, observation: Observation, log: GuardOptions['log']): void {
  if (dataDir === null || !existsSync(dataDir)) return
  try {
    writeWhole(join(dataDir, fileName), `${JSON.stringify(observation)}\n`)
  } catch (error) {
    log.warn('clock_not_saved', { message: String(error) }) // a full disk may recover; retried in a minute
  }
}

function readObservation(dataDir: string): Observation | null {
  try {
    const observation = JSON.parse(readFileSync(join(dataDir, fileName), 'utf8')) as Observation
    const { uptimeMs, wallMs, expectedMs, slackMs } = observation
    return [uptimeMs, wallMs, expectedMs, slackMs].every(Number.isFinite) ? observation : null
  } catch {
    return null
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}
