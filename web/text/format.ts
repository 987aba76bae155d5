/** Formats numbers and times for the whole dashboard. Times are in the chosen zone, tooltips in UTC. */
import { offsetAt } from '../../server/text/time-zone.ts'
import { now, zone } from '../app/clock.ts'
import { dayMs, hourMs, minuteMs } from '../../db/contract/units.ts'

const integer = new Intl.NumberFormat('en-GB')
const compact = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 })

/** 12418 → "12,418" */
export function count(n: number): string {
  return integer.format(n)
}

/** 12418 → "12.4k", where space is short. */
export function compactCount(n: number): string {
  return compact.format(n).toLowerCase()
}

/** "1 event", "12,418 events" */
export function counted(n: number, singular: string, plural = `${singular}s`): string {
  return `${count(n)} ${n === 1 ? singular : plural}`
}

type Part =
  'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'fractionalSecond' | 'timeZoneName' | 'weekday'

const formatters = new Map<string, Intl.DateTimeFormat>()

function parts(ms: number, timeZone = zone.value): { [part in Part]: string } {
  let formatter = formatters.get(timeZone)
  if (!formatter) {
    formatter = new Intl.DateTimeFormat('en-GB', {
      year: 'numeric',
      month: 'short',
      day: 'numeric',
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      fractionalSecondDigits: 3,
      timeZoneName: 'short',
      hourCycle: 'h23',
      timeZone,
    })
    formatters.set(timeZone, formatter)
  }
  const partTexts: { [type: string]: string } = {}
  for (const { type, value } of formatter.formatToParts(ms)) partTexts[type] = value
  return partTexts as { [part in Part]: string }
}

/**
 * The time of an event in a list: "14:02:11.482" today, "23 Jun 14:02:11" this year, "23 Jun 2025 14:02" earlier.
 * `timeZone` defaults to the chosen zone, here and below.
 */
export function eventTime(ms: number, nowMs: number, timeZone?: string): string {
  const dateParts = parts(ms, timeZone)
  const today = parts(nowMs, timeZone)
  if (dateParts.year !== today.year)
    return `${dateParts.day} ${dateParts.month} ${dateParts.year} ${dateParts.hour}:${dateParts.minute}`
  const time = `${dateParts.hour}:${dateParts.minute}:${dateParts.second}`
  if (dateParts.month !== today.month || dateParts.day !== today.day)
    return `${dateParts.day} ${dateParts.month} ${time}`
  return `${time}.${dateParts.fractionalSecond}`
}

/** "23 Jun 14:02", for filters; with seconds unless they are zero. */
export function shortTime(ms: number, timeZone?: string): string {
  const dateParts = parts(ms, timeZone)
  const seconds =
    dateParts.second === '00' && dateParts.fractionalSecond === '000' ? '' : `:${dateParts.second}`
  return `${dateParts.day} ${dateParts.month} ${dateParts.hour}:${dateParts.minute}${seconds}`
}

/** "Tue 23 Jun 2026, 14:02:11.482 CEST" */
export function fullTime(ms: number, timeZone?: string): string {
  const dateParts = parts(ms, timeZone)
  const time = `${dateParts.hour}:${dateParts.minute}:${dateParts.second}.${dateParts.fractionalSecond}`
  return `${dateParts.weekday} ${dateParts.day} ${dateParts.month} ${dateParts.year}, ${time} ${dateParts.timeZoneName}`
}

/** "2026-06-23 12:00:00.000 UTC", for tooltips. */
export function utcTime(ms: number): string {
  const dateParts = parts(ms, 'UTC')
  const month =
    `${'JanFebMarAprMayJunJulAugSepOctNovDec'.indexOf(dateParts.month.slice(0, 3)) / 3 + 1}`.padStart(2, '0')
  const date = `${dateParts.year}-${month}-${dateParts.day.padStart(2, '0')}`
  return `${date} ${dateParts.hour}:${dateParts.minute}:${dateParts.second}.${dateParts.fractionalSecond} UTC`
}

/** "23 Jun 2026" */
function day(ms: number, timeZone?: string): string {
  const dateParts = parts(ms, timeZone)
  return `${dateParts.day} ${dateParts.month} ${dateParts.year}`
}

const pad = (n: number, digits = 2): string => `${n}`.padStart(digits, '0')

/** "23 Jun 2026, 14:00 CEST", for tables and limits. */
export function minuteTime(ms: number, timeZone?: string): string {
  return `${day(ms, timeZone)}, ${clockTime(ms, timeZone)} ${zoneMark(ms, timeZone)}`
}

/** As the server writes them, at the end of a sentence or before its next word. */
const isoTimes = /(?<= )\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g

/** Sentences whose times are the server's. Others may quote a name that looks like a time. */
const timed = /^(?:Alert: )?(?:Every delivery to|Deliveries to|No events for) /

/** A sentence of the server for a page: its times in the chosen zone, and "12 %" never broken across lines. */
export function localSentence(sentence: string, timeZone?: string): string {
  const local = (iso: string): string => {
    const ms = Date.parse(iso)
    return Number.isNaN(ms) ? iso : minuteTime(ms, timeZone)
  }
  return (timed.test(sentence) ? sentence.replace(isoTimes, local) : sentence).replace(/(\d) %/g, '$1\u00a0%')
}

/** "2026-06-23T14:00:00.000+02:00", for files: local time with its offset, unambiguous when clocks change. */
export function isoWithOffset(ms: number, timeZone = zone.value): string {
  const offset = Math.round(offsetAt(ms, timeZone) / minuteMs)
  const hours = Math.floor(Math.abs(offset) / 60)
  const minutes = Math.abs(offset) % 60
  const wall = new Date(ms + offset * minuteMs).toISOString().slice(0, -1)
  return offset === 0 ? `${wall}Z` : `${wall}${offset < 0 ? '-' : '+'}${pad(hours)}:${pad(minutes)}`
}

/** "Fri 14 Nov", with the year unless it is the current one. */
export function dayName(ms: number, timeZone?: string, nowMs = now()): string {
  const dateParts = parts(ms, timeZone)
  const year = dateParts.year === parts(nowMs, timeZone).year ? '' : ` ${dateParts.year}`
  return `${dateParts.weekday} ${dateParts.day} ${dateParts.month}${year}`
}

/** "14:00" */
export function clockTime(ms: number, timeZone?: string): string {
  const dateParts = parts(ms, timeZone)
  return `${dateParts.hour}:${dateParts.minute}`
}

/** "Fri 14 Nov, 01:00" */
export function hourTime(ms: number, timeZone?: string, nowMs = now()): string {
  return `${dayName(ms, timeZone, nowMs)}, ${clockTime(ms, timeZone)}`
}

const monthNames = new Map<string, Intl.DateTimeFormat>()

/** "November 2026" */
export function monthName(ms: number, timeZone = zone.value): string {
  const cachedFormatter = monthNames.get(timeZone)
  const formatter =
    cachedFormatter ?? new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone })
  monthNames.set(timeZone, formatter)
  return formatter.format(ms)
}

/** "CET" or "GMT+5:30": the name of the zone at a moment. */
export function zoneMark(ms: number, timeZone?: string): string {
  return parts(ms, timeZone).timeZoneName
}

/** "just now", "2 min ago", "3 h ago", "5 days ago", then the date. */
export function ago(ms: number, nowMs: number, timeZone?: string): string {
  const since = nowMs - ms
  if (since < minuteMs) return 'just now'
  if (since < hourMs) return `${Math.floor(since / minuteMs)} min ago`
  if (since < dayMs) return `${Math.floor(since / hourMs)} h ago`
  if (since < 14 * dayMs) return `${counted(Math.floor(since / dayMs), 'day')} ago`
  return day(ms, timeZone)
}

/** A duration in a readable unit: "0.4 ms", "84 ms", "1.2 s", "3 min", "2 h", "5 d". */
export function duration(ms: number): string {
  if (ms < 10 && !Number.isInteger(ms)) return `${ms.toFixed(1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < hourMs) return `${Math.round(ms / minuteMs)} min`
  if (ms < 2 * dayMs) return `${Math.round(ms / hourMs)} h`
  return `${count(Math.round(ms / dayMs))} d`
}

/** A measured duration with at least two digits: "1.3 min" where `duration` has "1 min". */
export function exactDuration(ms: number): string {
  if (ms < 59_950 || ms >= 2 * dayMs) return duration(ms)
  return ms < 59.95 * minuteMs ? `${(ms / minuteMs).toFixed(1)} min` : `${(ms / hourMs).toFixed(1)} h`
}

const byteUnits = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const

/** 1500 → "1.5 kB". 1 kB is 1,000 bytes, and 1 MB is 10⁶ (contract §19). */
export function bytesText(bytes: number): string {
  let amount = bytes
  let unit = 0
  // Otherwise 999.5 kB would round to 1000 kB.
  while (amount >= 999.5 && unit < byteUnits.length - 1) {
    amount /= 1_000
    unit += 1
  }
  const shown = unit === 0 || amount >= 99.95 ? integer.format(Math.round(amount)) : amount.toFixed(1)
  return `${shown} ${bytes === 1 ? 'byte' : byteUnits[unit]}`
}
