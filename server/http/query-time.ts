/** Reads `since` and `until`: RFC 3339, also a bare date, and a space where `+` was not escaped (contract §1). */
import { parseTime } from '../text/time.ts'
import { invalidQuery } from './query.ts'

/** UTC milliseconds; throws 400 `invalid_query` naming the parameter. A bare date is its first millisecond in UTC. */
export function parseQueryTime(name: string, text: string): number {
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(text)
    ? `${text}T00:00:00Z`
    : text.replace(/ (?=\d{2}:\d{2}$)/, '+')
  const ms = parseTime(whole)
  if (ms === null) {
    throw invalidQuery(
      name,
      `${name} must be a time such as 2026-06-23T12:00:00Z, or a date such as 2026-06-23`,
    )
  }
  return ms
}
