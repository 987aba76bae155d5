/**
 * The clock, which is read only here so that tests can control it, times as text (RFC 3339 in both directions), and
 * deadlines.
 */

export interface Clock {
  /** Milliseconds since 1970-01-01 UTC. */
  now(): number
  /** Monotonic milliseconds, unaffected by clock changes. Test clocks without it use `now`. */
  elapsed?(): number
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() }

/** Monotonic time for measuring waits: changes of the clock neither lengthen nor end a wait. */
export function elapsedMs(clock: Clock): number {
  return clock.elapsed?.() ?? clock.now()
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the format of every time in responses (contract §1). */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

const yearMsMin = 0 // 1970-01-01T00:00:00Z
const yearMsMax = Date.UTC(2201, 0, 1) // 2200 is the last year
const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const fractionDigitsMax = 9

/**
 * Milliseconds since 1970 UTC, or null when the text is not accepted: `YYYY-MM-DDTHH:MM:SS[.fraction]` with `Z` or
 * ±hh:mm, at most 9 fraction digits (truncated to milliseconds), years 1970 to 2200 in UTC. `t` and `z` may be lower
 * case, as RFC 3339 allows. A leap second (23:59:60 UTC on the last day of June or December) is read as the first
 * second of the next day, as in POSIX.
 */
export function parseTime(text: string): number | null {
  const year = digits(text, 0) * 100 + digits(text, 2)
  const month = digits(text, 5)
  const day = digits(text, 8)
  const hour = digits(text, 11)
  const minute = digits(text, 14)
  const second = digits(text, 17)
  // One sum finds any pair that was not two digits, because such a pair is NaN.
  if (!(year + month + day + hour + minute + second >= 0)) return null
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return null
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return null
  if ((text.charCodeAt(10) | 32) !== 116) return null
  if (year < 1969 || year > 2201) return null
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null
  if (hour > 23 || minute > 59 || second > 60) return null
  const zoneAt = text.charCodeAt(19) === 46 ? fractionEnd(text) : 19
  const offsetMs = zoneOffsetMs(text, zoneAt)
  const fractionMs = zoneAt === 19 ? 0 : milliseconds(text, zoneAt)
  const seconds = daysSince1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
  const ms = seconds * 1_000 + fractionMs - offsetMs
  if (!(ms >= yearMsMin && ms < yearMsMax)) return null
  return second === 60 && !isLeapSecond(ms) ? null : ms
}

/** The two digits at `offset` as a number, NaN when they are not digits. */
function digits(text: string, offset: number): number {
  const tens = text.charCodeAt(offset) - 48
  const unit = text.charCodeAt(offset + 1) - 48
  return tens >= 0 && tens <= 9 && unit >= 0 && unit <= 9 ? tens * 10 + unit : Number.NaN
}

function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month === 2 && isLeap ? 29 : (monthDays[month - 1] ?? 0)
}

/** Six times as fast as Date.UTC. Years start in March here, so that the leap day is the last day of its year. */
function daysSince1970(year: number, month: number, day: number): number {
  const ofYear = month > 2 ? year : year - 1
  const monthsBefore = month > 2 ? month - 3 : month + 9
  const leapDays = Math.floor(ofYear / 4) - Math.floor(ofYear / 100) + Math.floor(ofYear / 400)
  return ofYear * 365 + leapDays + Math.floor((monthsBefore * 153 + 2) / 5) + day - 1 - daysBefore1970
}

/** Days from the first of March of the year 0 to 1970-01-01. */
const daysBefore1970 = 719_468

/** The start of the zone after a fraction; 0 when the fraction is empty, too long or not digits. */
function fractionEnd(text: string): number {
  let offset = 20
  while (offset <= 20 + fractionDigitsMax && isDigit(text.charCodeAt(offset))) offset++
  return offset > 20 && offset <= 20 + fractionDigitsMax ? offset : 0
}

/** The first three digits of a fraction; missing digits are 0. */
function milliseconds(text: string, zoneAt: number): number {
  const digit = (position: number): number => (position < zoneAt ? text.charCodeAt(position) - 48 : 0)
  return digit(20) * 100 + digit(21) * 10 + digit(22)
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** The zone offset at `zoneAt`, which must end the text; NaN when it is invalid. */
function zoneOffsetMs(text: string, zoneAt: number): number {
  const sign = text.charCodeAt(zoneAt)
  if ((sign | 32) === 122) return zoneAt + 1 === text.length ? 0 : Number.NaN
  if ((sign !== 43 && sign !== 45) || zoneAt + 6 !== text.length || text.charCodeAt(zoneAt + 3) !== 58) {
    return Number.NaN
  }
  const hours = digits(text, zoneAt + 1)
  const minutes = digits(text, zoneAt + 4)
  if (!(hours <= 23 && minutes <= 59)) return Number.NaN
  return (hours * 60 + minutes) * (sign === 43 ? 60_000 : -60_000)
}

/** Whether this millisecond is in the first second of a July or January, where a leap second ends up. */
function isLeapSecond(ms: number): boolean {
  const date = new Date(ms)
  const isMidnight = Math.floor(ms / 1000) % 86_400 === 0
  return isMidnight && date.getUTCDate() === 1 && (date.getUTCMonth() === 0 || date.getUTCMonth() === 6)
}

const waitUnitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** `60s` or `5m` in milliseconds; NaN for anything else. */
export function waitMs(text: string): number {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text)
  return match ? Number(match[1]) * waitUnitMs[match[2] as keyof typeof waitUnitMs] : Number.NaN
}

interface Deadline {
  /** Called when the work ended in time; idempotent. */
  end(): void
}

/**
 * Calls `late` once after `ms`, unless the deadline ended before. Deadlines of one length share a timer, because a
 * timer for each of 20,000 requests per second costs as much as checking their events.
 */
export function startDeadline(ms: number, late: () => void): Deadline {
  let add = lines.get(ms)
  if (add === undefined) lines.set(ms, (add = deadlineLine(ms)))
  return add(late)
}

/** By length; there are as many as constants in `limits.ts`. */
const lines = new Map<number, ReturnType<typeof deadlineLine>>()

/** A link of a ring in order of time. It is removed in one step, so that nothing of a finished request stays. */
interface Link extends Deadline {
  before: Link
  after: Link
  dueMs: number
  late: () => void
}

function end(this: Link): void {
  this.before.after = this.after
  this.after.before = this.before
  this.before = this
  this.after = this
}

function deadlineLine(ms: number): (late: () => void) => Deadline {
  const ring = { dueMs: 0, late: () => {}, end } as Link
  ring.before = ring
  ring.after = ring
  let isTimed = false

  function expire(): void {
    const nowMs = performance.now()
    try {
      while (ring.after !== ring && ring.after.dueMs <= nowMs) {
        const first = ring.after
        first.end()
        first.late()
      }
    } finally {
      isTimed = false
      if (ring.after !== ring) wake(Math.max(0, ring.after.dueMs - nowMs))
    }
  }

  function wake(inMs: number): void {
    isTimed = true
    setTimeout(expire, Math.ceil(inMs)).unref()
  }

  return (late) => {
    const link: Link = { before: ring.before, after: ring, dueMs: performance.now() + ms, late, end }
    ring.before.after = link
    ring.before = link
    if (!isTimed) wake(ms)
    return link
  }
}
