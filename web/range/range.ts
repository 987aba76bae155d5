/** The range, the site and the comparison as they stand in the address, and what they are called. */
import type { PeriodView } from '../api.ts'
import { counted } from '../format.ts'

export const runningRanges = { '24h': 'Last 24 hours', '7d': 'Last 7 days', '30d': 'Last 30 days' } as const
export type RunningRange = keyof typeof runningRanges

export interface RangeChoice {
  range: RunningRange | null // null: from `since` to `until`
  since: string | null
  until: string | null
  siteIds: string[]
  compare: boolean
}

const members = ['range', 'since', 'until', 'siteId', 'compare'] as const

export function choiceOf(query: URLSearchParams): RangeChoice {
  const since = query.get('since')
  const wanted = query.get('range')
  const range = wanted !== null && Object.hasOwn(runningRanges, wanted) ? (wanted as RunningRange) : '7d'
  return {
    range: since === null ? range : null,
    since,
    until: since === null ? null : query.get('until'),
    siteIds: query.getAll('siteId').filter((siteId) => siteId !== ''),
    compare: query.get('compare') !== 'off',
  }
}

/** The members of the address that say this choice; what is the default is left out. */
export function addressOf(choice: RangeChoice): { [member: string]: string[] } {
  return {
    range: choice.range === null || choice.range === '7d' ? [] : [choice.range],
    since: choice.range === null && choice.since !== null ? [choice.since] : [],
    until: choice.range === null && choice.until !== null ? [choice.until] : [],
    siteId: choice.siteIds,
    compare: choice.compare ? [] : ['off'],
  }
}

/** Only the part of an address that says range, site and comparison. */
export function rangePart(search: string): string {
  const all = new URLSearchParams(search)
  const part = new URLSearchParams()
  for (const name of members) for (const value of all.getAll(name)) part.append(name, value)
  return part.toString()
}

/** What the server is asked. The comparison is always counted: showing it or not is the reader's. */
export function askedOf(choice: RangeChoice): URLSearchParams {
  const params = new URLSearchParams()
  if (choice.range !== null) params.set('range', choice.range)
  if (choice.since !== null) params.set('since', choice.since)
  if (choice.until !== null) params.set('until', choice.until)
  for (const siteId of choice.siteIds) params.append('siteId', siteId)
  return params
}

const hourMs = 3_600_000
const dayNames = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
})

/** "Fri 14 Nov", in UTC. */
export function utcDay(ms: number): string {
  return dayNames.format(ms).replace(',', '')
}

/** "Fri 14 Nov, 01:00", in UTC. */
export function utcHour(ms: number): string {
  return `${utcDay(ms)}, ${new Date(ms).toISOString().slice(11, 16)}`
}

/** "14:00 to 15:00", "Fri 14 Nov, 06:00 to 12:00" or "Fri 14 Nov": one step of a chart. */
export function stepName(startMs: number, stepMs: number): string {
  if (stepMs === 24 * hourMs) return utcDay(startMs)
  const end = new Date(startMs + stepMs).toISOString().slice(11, 16)
  return `${utcHour(startMs)} to ${end === '00:00' ? '24:00' : end}`
}

const lengths = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' } as const

/** "30 days" or "5 hours": how long a period is. */
export function lengthName(period: Pick<PeriodView, 'range' | 'since' | 'until'>): string {
  if (period.range !== 'custom') return lengths[period.range]
  const hours = Math.round((Date.parse(period.until) - Date.parse(period.since)) / hourMs)
  return hours >= 48 && hours % 24 === 0 ? counted(hours / 24, 'day') : counted(hours, 'hour')
}

/** "in the last 7 days", to be put behind a number. */
export function rangeWords(period: PeriodView): string {
  if (period.range !== 'custom') return `in the ${runningRanges[period.range].toLowerCase()}`
  return `from ${utcHour(Date.parse(period.since))} to ${utcHour(Date.parse(period.until))} UTC`
}

/** The whole period in a sentence, for the line above the numbers. */
export function periodSentence(period: PeriodView, compare: boolean): string {
  const since = Date.parse(period.since)
  const until = Date.parse(period.until)
  const running = until > Date.parse(period.now) && since <= Date.parse(period.now)
  const end = running ? 'now' : utcHour(until)
  const earlier =
    period.range === 'custom'
      ? `the ${lengthName(period)} before`
      : `the same hours ${lengthName(period)} earlier`
  return `${utcHour(since)} to ${end}, UTC${compare ? `, compared with ${earlier}` : ''}.`
}
