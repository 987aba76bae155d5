/** Hours, days and months in a time zone, for the server's counts and the dashboard's charts and pickers. */
import { dayMs, hourMs, secondMs } from '../../db/contract/units.ts'

/** Whether this runtime knows a time zone such as `Europe/Berlin`; never throws. */
export function isZone(name: string): boolean {
  try {
    clockOf(name)
    return true
  } catch {
    return false
  }
}

const clocks = new Map<string, Intl.DateTimeFormat>()

function clockOf(zone: string): Intl.DateTimeFormat {
  const cachedClock = clocks.get(zone)
  if (cachedClock) return cachedClock
  const clock = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  // Names from requests must not fill the memory.
  if (clocks.size > 1_000) clocks.clear()
  clocks.set(zone, clock)
  return clock
}

/** The wall time of the zone at a moment, encoded as if it were UTC. */
export function wallOf(ms: number, zone: string): number {
  if (zone === 'UTC') return ms
  const shown: { [part: string]: number } = {}
  for (const { type, value } of clockOf(zone).formatToParts(ms)) shown[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((ms % secondMs) + secondMs) % secondMs)
}

/** The zone's offset from UTC at a moment. */
export const offsetAt = (ms: number, zone: string): number => wallOf(ms, zone) - ms

/**
 * The first moment with this wall time in the zone. When clocks skip it, the moment as long after the jump as `wall`
 * is into the gap.
 */
export function momentOf(wall: number, zone: string): number {
  if (zone === 'UTC') return wall
  const offsets = [wall - dayMs, wall + dayMs].map((ms) => offsetAt(ms, zone))
  const moments = offsets.map((offset) => wall - offset).filter((ms) => wallOf(ms, zone) === wall)
  return moments.length > 0 ? Math.min(...moments) : wall - Math.min(...offsets)
}

/** Steps of charts. Counts are per UTC hour, so an hour step is a UTC hour in every zone. */
export const steps = {
  hour: { hours: 1, months: 0 },
  threeHours: { hours: 3, months: 0 },
  sixHours: { hours: 6, months: 0 },
  twelveHours: { hours: 12, months: 0 },
  day: { hours: 24, months: 0 },
  week: { hours: 7 * 24, months: 0 },
  month: { hours: 730, months: 1 },
  year: { hours: 8_760, months: 12 },
} as const
export type Step = keyof typeof steps

const firstMonday = 4 * dayMs // 1970-01-05

/** The wall time at which the step that contains `wall` starts; weeks start on Monday. */
export function startOf(wall: number, step: Step): number {
  const { hours, months } = steps[step]
  if (months > 0) {
    const date = new Date(wall)
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - (date.getUTCMonth() % months))
  }
  const from = step === 'week' ? firstMonday : 0
  return from + Math.floor((wall - from) / (hours * hourMs)) * hours * hourMs
}

/** The wall time `times` steps after `wall`; before it when negative. */
export function moved(wall: number, step: Step, times: number): number {
  const { hours, months } = steps[step]
  if (months === 0) return wall + times * hours * hourMs
  const date = new Date(wall)
  const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + times * months)
  const lastDay = 32 - new Date(moved(month, 'day', 31)).getUTCDate()
  const days = Math.min(date.getUTCDate(), lastDay)
  return month + (days - 1) * dayMs + (wall - startOf(wall, 'day'))
}

const hourOf = (ms: number): number => Math.floor(ms / hourMs) * hourMs

/**
 * The starts of the steps that cover a range, and the end of the last. In a zone whose offset is not whole hours they
 * are rounded down to the UTC hour, and `onTheHour` is false.
 */
export function edgesOf(
  sinceMs: number,
  untilMs: number,
  step: Step,
  zone: string,
): { edges: number[]; onTheHour: boolean } {
  const edges: number[] = []
  let onTheHour = [sinceMs, untilMs].every((ms) => offsetAt(ms, zone) % hourMs === 0)
  const add = (ms: number): void => {
    if (edges.length === 0 || ms > edges.at(-1)!) edges.push(ms)
  }
  if (step === 'hour')
    for (let ms = hourOf(sinceMs); ; ms += hourMs) {
      add(ms)
      if (ms >= untilMs) return { edges, onTheHour }
    }
  for (let wall = startOf(wallOf(sinceMs, zone), step); ; wall = moved(wall, step, 1)) {
    const ms = momentOf(wall, zone)
    if (ms % hourMs !== 0) onTheHour = false
    add(hourOf(ms))
    if (hourOf(ms) >= untilMs) break
  }
  // Rounded down to the hour, the first step may end before the range starts.
  while (edges.length > 1 && edges[1]! <= sinceMs) edges.shift()
  return { edges, onTheHour }
}

/**
 * The same without rounding: the first moments of the steps in the zone, so that days begin at its midnight. Steps of
 * an hour are equally long, from the zone's full hour on.
 */
export function exactEdgesOf(sinceMs: number, untilMs: number, step: Step, zone: string): number[] {
  const edges: number[] = []
  const first = startOf(wallOf(sinceMs, zone), step)
  for (let wall = first, ms = momentOf(first, zone); ;) {
    if (edges.length === 0 || ms > edges.at(-1)!) edges.push(ms)
    if (ms >= untilMs) return edges
    wall = moved(wall, step, 1)
    ms = step === 'hour' ? ms + hourMs : momentOf(wall, zone)
  }
}

const units: readonly [ms: number, name: string][] = [
  [365 * dayMs, 'year'],
  [28 * dayMs, 'month'],
  [7 * dayMs - hourMs, 'week'],
  [dayMs - hourMs, 'day'],
  [hourMs, 'hour'],
  [60 * secondMs, 'minute'],
  [secondMs, 'second'],
]

/** "per 3 hours": the step of a chart. Steps at its ends, and beside a change of clocks, have other lengths. */
export function perStep(edges: readonly number[]): string {
  const lengths = edges.slice(1).map((end, step) => end - edges[step]!)
  const usual = lengths.toSorted((a, b) => a - b)[lengths.length >> 1] ?? hourMs
  const [ms, name] = units.find(([minMs]) => usual >= minMs) ?? [secondMs, 'second']
  const times = Math.max(1, Math.round(usual / ms))
  return times === 1 ? `per ${name}` : `per ${times} ${name}s`
}
