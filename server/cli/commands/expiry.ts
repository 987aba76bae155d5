/** Reads when a key ends: a span from now, a day, or a full time; always in the future. */
import { UsageError } from '../../errors.ts'

const spanMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }
const yearsMax = 100

/** `90d`, `12h`, `2027-01-31` (its first moment, UTC) or `2027-01-31T18:00:00Z`; milliseconds since 1970. */
export function readExpiry(text: string, nowMs: number): number {
  const atMs = fromSpan(text, nowMs) ?? fromTime(text)
  if (atMs === null) {
    throw new UsageError(`"${text}" is not a time like 90d, 12h, 2027-01-31 or 2027-01-31T18:00:00Z`)
  }
  if (atMs <= nowMs) throw new UsageError(`${text} is not in the future`)
  if (atMs > nowMs + yearsMax * 366 * 86_400_000)
    throw new UsageError(`${text} is more than ${yearsMax} years away`)
  return atMs
}

/** `90d` or `12h` in milliseconds, or null. */
export function readSpan(text: string): number | null {
  const match = /^(\d{1,6})([mhdw])$/.exec(text)
  return match ? Number(match[1]) * spanMs[match[2]!]! : null
}

function fromSpan(text: string, nowMs: number): number | null {
  const ms = readSpan(text)
  return ms === null ? null : nowMs + ms
}

function fromTime(text: string): number | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2}))?$/.exec(
    text,
  )
  if (!match) return null
  const [, year, month, day] = match
  // Date.parse lets 31 February through as 3 March; a day that does not exist is a typing error here.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  const atMs = Date.parse(text)
  return Number(day) <= daysInMonth && !Number.isNaN(atMs) ? atMs : null
}
