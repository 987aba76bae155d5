/** Range, site and comparison in the URL: reading, changing and labelling them, and carrying them to the next page. */
import { startOf, wallOf } from '../../server/text/time-zone.ts'
import { isoTime, now, zone } from '../app/clock.ts'
import { clockTime, counted, dayName, hourTime, monthName, zoneMark } from '../text/format.ts'
import { navigate, place, withQuery } from '../app/router.ts'
import type { PeriodView } from '../api/api.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

export const runningRanges = {
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
  '12m': 'Last 12 months',
  all: 'All time',
} as const
export type RunningRange = keyof typeof runningRanges

interface RangeChoice {
  range: RunningRange | null // null: from `since` to `until`
  since: string | null
  until: string | null
  siteIds: string[]
  compare: boolean
}

const rangeFields = ['range', 'since', 'until', 'siteId', 'compare'] as const

export function choiceOf(query: URLSearchParams): RangeChoice {
  const since = query.get('since')
  const name = query.get('range')
  const range = name !== null && Object.hasOwn(runningRanges, name) ? (name as RunningRange) : '7d'
  return {
    range: since === null ? range : null,
    since,
    until: since === null ? null : query.get('until'),
    siteIds: query.getAll('siteId').filter((siteId) => siteId !== ''),
    compare: query.get('compare') !== 'off',
  }
}

/** The query of the URL for this choice, without defaults. */
export function addressOf(choice: RangeChoice): { [field: string]: string[] } {
  return {
    range: choice.range === null || choice.range === '7d' ? [] : [choice.range],
    since: choice.range === null && choice.since !== null ? [choice.since] : [],
    until: choice.range === null && choice.until !== null ? [choice.until] : [],
    siteId: choice.siteIds,
    compare: choice.compare ? [] : ['off'],
  }
}

/** The range, site and comparison fields of a URL. */
export function rangePart(search: string): string {
  const params = new URLSearchParams(search)
  const part = new URLSearchParams()
  for (const name of rangeFields) for (const value of params.getAll(name)) part.append(name, value)
  return part.toString()
}

/** The parameters of a request. The comparison is always requested, even when hidden. */
export function rangeParams(choice: RangeChoice, timeZone = zone.value): URLSearchParams {
  const params = new URLSearchParams()
  if (choice.range !== null) params.set('range', choice.range)
  if (choice.since !== null) params.set('since', choice.since)
  if (choice.until !== null) params.set('until', choice.until)
  for (const siteId of choice.siteIds) params.append('siteId', siteId)
  if (timeZone !== 'UTC') params.set('zone', timeZone)
  return params
}

const isMidnight = (ms: number, timeZone: string): boolean => wallOf(ms, timeZone) % dayMs === 0

/** One or more steps of a chart: "14:00 to 15:00", "Fri 14 Nov, 06:00 to 12:00", "Fri 14 Nov" or "November 2026". */
export function stepName(startMs: number, endMs: number, timeZone = zone.value, nowMs = now()): string {
  const marked = zoneMark(startMs, timeZone) === zoneMark(endMs, timeZone) ? '' : zoneMark(endMs, timeZone)
  if (!isMidnight(startMs, timeZone) || !isMidnight(endMs, timeZone)) {
    // When clocks change within the range, both ends name their zone.
    const start = `${hourTime(startMs, timeZone, nowMs)}${marked && ` ${zoneMark(startMs, timeZone)}`}`
    const sameDay = dayName(startMs, timeZone, nowMs) === dayName(endMs - 1, timeZone, nowMs)
    const midnight = sameDay && isMidnight(endMs, timeZone)
    const end = midnight ? '24:00' : (sameDay ? clockTime : hourTime)(endMs, timeZone)
    return `${start} to ${end}${marked && ` ${marked}`}`
  }
  const first = wallOf(startMs, timeZone)
  const last = wallOf(endMs, timeZone) - dayMs
  if (first === last) return dayName(startMs, timeZone, nowMs)
  if (first === startOf(first, 'month') && last + dayMs === startOf(last + dayMs, 'month')) {
    const name = monthName(startMs, timeZone)
    return startOf(last, 'month') === first ? name : `${name} to ${monthName(endMs - 1, timeZone)}`
  }
  return `${dayName(startMs, timeZone, nowMs)} to ${dayName(endMs - 1, timeZone, nowMs)}`
}

const lengths = {
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
  '12m': '12 months',
  all: 'all time',
} as const

/** The length of a period: "30 days" or "5 hours". */
export function lengthName(period: Pick<PeriodView, 'range' | 'since' | 'until'>): string {
  if (period.range !== 'custom') return lengths[period.range]
  const hours = Math.round((Date.parse(period.until) - Date.parse(period.since)) / hourMs)
  // Days have 23 or 25 hours when clocks change.
  const isDays = hours >= 47 && [0, 1, 23].includes(hours % 24)
  return isDays ? counted(Math.round(hours / 24), 'day') : counted(hours, 'hour')
}

const rangeHours: { readonly [range in RunningRange]: number } = {
  '24h': 24,
  '7d': 7 * 24,
  '30d': 30 * 24,
  '90d': 90 * 24,
  '12m': 365 * 24,
  all: Number.POSITIVE_INFINITY,
}

/** Suggestions for an empty range: the next longer one, and all time. */
export function longerRanges({
  range,
  since,
  until,
}: Pick<PeriodView, 'range' | 'since' | 'until'>): RunningRange[] {
  const hours = range === 'custom' ? (Date.parse(until) - Date.parse(since)) / hourMs : rangeHours[range]
  const longer = (Object.keys(runningRanges) as RunningRange[]).filter(
    (candidate) => rangeHours[candidate] > hours,
  )
  return [...new Set([...longer.slice(0, 1), ...longer.slice(-1)])]
}

/** True if a previous period exists and the reader compares with it. */
export function compares(period: Pick<PeriodView, 'before'>, choice: Pick<RangeChoice, 'compare'>): boolean {
  return choice.compare && period.before.since !== period.before.until
}

/** "in the last 7 days", to follow a number. */
export function rangeWords(period: PeriodView): string {
  if (period.range === 'all') return 'across all time'
  if (period.range !== 'custom') return `in the ${runningRanges[period.range].toLowerCase()}`
  const { since, until } = period
  return `from ${hourTime(Date.parse(since), period.zone)} to ${hourTime(Date.parse(until), period.zone)}`
}

/** The period as a sentence, for the line above the numbers. */
export function periodSentence(period: PeriodView, compare: boolean): string {
  const since = Date.parse(period.since)
  const until = Date.parse(period.until)
  const nowMs = Date.parse(period.now)
  const running = until > nowMs && since <= nowMs
  const end = running ? 'now' : hourTime(until, period.zone, nowMs)
  const earlier =
    period.range === '12m' ? 'the same hours 12 months earlier' : `the ${lengthName(period)} before`
  const compared = compares(period, { compare }) ? `, compared with ${earlier}` : ''
  return `${hourTime(since, period.zone, nowMs)} to ${end}, ${period.zone}${compared}.${limitsOf(period, compare)}`
}

/** The limitations of the numbers of this period; '' without any. */
function limitsOf(period: PeriodView, compare: boolean): string {
  const old = Date.parse(period.since) < Date.parse(period.now) - countsRetentionDays * dayMs
  const notes = [
    (old || period.range === 'all') && `Counts are stored for ${countsRetentionDays} days.`,
    compare &&
      !compares(period, { compare }) &&
      (period.range === 'all'
        ? 'No earlier period to compare with.'
        : `No comparison: counts older than ${countsRetentionDays} days are deleted.`),
    !period.onTheHour && utcHours(period),
  ]
  return notes.flatMap((note) => (note === false ? [] : [` ${note}`])).join('')
}

/** In zones with an offset that is not whole hours, hours and days begin inside the counted hours. */
function utcHours({ edges, zone: timeZone }: PeriodView): string {
  const minutes =
    edges.map((ms) => clockTime(ms, timeZone).slice(3)).find((minute) => minute !== '00') ?? '00'
  return `Counts use UTC hours: in ${timeZone}, hours start at :${minutes} and days at 23:${minutes}.`
}

/** Changes the range, the site or the comparison. Each change adds a history entry. */
export function chooseRange(change: Partial<RangeChoice>): void {
  const currentPlace = place.peek()
  const choice = { ...choiceOf(new URLSearchParams(currentPlace.search)), ...change }
  navigate(currentPlace.path + withQuery(currentPlace.search, addressOf(choice)))
}

/** Applies a range selected in a chart. */
export function chooseTimes(sinceMs: number, untilMs: number): void {
  chooseRange({ range: null, since: isoTime(sinceMs), until: isoTime(untilMs) })
}

let last = ''

/** The range fields of the last page of counts. */
export const lastRange = (): string => last

export function rememberRange(part: string): void {
  last = part
}

/** The parameters of a page opened by its plain link. */
export function nextPageParams(): URLSearchParams {
  return rangeParams(choiceOf(new URLSearchParams(last)))
}
