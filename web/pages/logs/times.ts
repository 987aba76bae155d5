/** The time ranges of Logs, and which of them are longer than the current one. */
import { isoTime, now } from '../../app/clock.ts'

const hourMs = 3_600_000

export interface TimeRange {
  name: string
  hours: number | null // null: all time
}

export const timeRanges: readonly TimeRange[] = [
  { name: 'Any time', hours: null },
  { name: 'Last hour', hours: 1 },
  { name: 'Last 24 hours', hours: 24 },
  { name: 'Last 7 days', hours: 24 * 7 },
  { name: 'Last 30 days', hours: 24 * 30 },
  { name: 'Last 90 days', hours: 24 * 90 },
]

/** On the hour, because counts are stored per hour. */
export function sinceOf(hours: number): string {
  return isoTime(Math.floor((now() - hours * hourMs) / hourMs) * hourMs)
}

/** Earlier than any stored event, because a search requires a start. */
export const sinceEver = '2000-01-01'

/**
 * Suggestions for an empty result: the next longer ranges, and all time. `since` is null without a start; then
 * no range is longer.
 */
export function longerTimes(
  since: string | null,
  until: string | null,
  hasText: boolean,
): { name: string; since: string[] }[] {
  if (since === null && until === null) return []
  const sinceMs = since === null ? Number.POSITIVE_INFINITY : Date.parse(since)
  const longer = timeRanges.flatMap(({ name, hours }) => {
    if (hours === null || Date.parse(sinceOf(hours)) >= sinceMs) return []
    return [{ name, since: [sinceOf(hours)] }]
  })
  const isAll = since === sinceEver && until === null
  return [...longer.slice(0, 2), ...(isAll ? [] : [{ name: 'Any time', since: hasText ? [sinceEver] : [] }])]
}
