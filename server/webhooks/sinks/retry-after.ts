/** Reads when a receiver wants the next attempt: seconds, or a date in each of the three forms of HTTP. */
import { limits } from '../../limits.ts'

/**
 * A `Retry-After` header as at most one hour; null when it is invalid. Fractions and quotes are not valid HTTP, but
 * receivers send them; fractions are rounded up. Negative numbers are ignored.
 */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  const text = (header?.trim() ?? '').replace(/^"(.*)"$/, '$1').trim()
  if (/^\d+(?:\.\d+)?$/.test(text))
    return Math.min(Math.ceil(Number(text) * 1_000), limits.webhookRetryAfterMsMax)
  const atMs = parseHttpDate(text, nowMs)
  return atMs === null ? null : Math.min(Math.max(0, atMs - nowMs), limits.webhookRetryAfterMsMax)
}

const time = '(?<time>\\d{2}:\\d{2}:\\d{2})'
const forms = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^[A-Z][a-z]{2}, (?<day>\\d{2}) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${time} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT, of RFC 850
  new RegExp(`^[A-Z][a-z]{5,8}, (?<day>\\d{2})-(?<month>[A-Z][a-z]{2})-(?<year>\\d{2}) ${time} GMT$`),
  // Sun Nov  6 08:49:37 1994, of asctime in C
  new RegExp(`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${time} (?<year>\\d{4})$`),
]

/** `Date.parse` accepts far more than HTTP dates, and reads some of them in local time. */
function parseHttpDate(text: string, nowMs: number): number | null {
  for (const form of forms) {
    const { day = '', month = '', year = '', time: clock = '' } = form.exec(text)?.groups ?? {}
    if (day === '') continue
    const atMs = Date.parse(`${day.trim().padStart(2, '0')} ${month} ${fullYear(year, nowMs)} ${clock} GMT`)
    return Number.isNaN(atMs) ? null : atMs
  }
  return null
}

/** A year of two digits that would lie more than 50 years ahead is one of the past (RFC 9110 §5.6.7). */
function fullYear(year: string, nowMs: number): number {
  if (year.length === 4) return Number(year)
  const thisYear = new Date(nowMs).getUTCFullYear()
  const ofCentury = thisYear - (thisYear % 100) + Number(year)
  return ofCentury > thisYear + 50 ? ofCentury - 100 : ofCentury
}
