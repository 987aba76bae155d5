/** Prepares the ingest-health answer for the page: one column per hour, and the issues of each key. */
import { duration } from '../../../text/format.ts'
import type { IngestHealth, IngestKey } from '../../../api/ingest-api.ts'

const hourMs = 3_600_000

export const shares = ['accepted', 'deduped', 'rejected'] as const
export type Share = (typeof shares)[number]

export const shareLabels: { [share in Share]: string } = {
  accepted: 'accepted',
  deduped: 'deduplicated',
  rejected: 'rejected',
}

export interface HourColumn {
  startMs: number
  accepted: number
  deduped: number
  rejected: number
}

/** Every hour from the start of the range to now, summed over all keys. Hours without requests are zero. */
export function hourColumns(
  { since, hours }: Pick<IngestHealth, 'since' | 'hours'>,
  now: number,
): HourColumn[] {
  const startMs = Date.parse(since)
  // The server's clock may be ahead of the reader's.
  const newestMs = Math.max(now, ...hours.map(({ hour }) => Date.parse(hour)))
  const count = Math.max(1, Math.floor((newestMs - startMs) / hourMs) + 1)
  const columns = Array.from({ length: count }, (_, n) => {
    return { startMs: startMs + n * hourMs, accepted: 0, deduped: 0, rejected: 0 }
  })
  for (const one of hours) {
    const column = columns[(Date.parse(one.hour) - startMs) / hourMs]
    if (column) for (const share of shares) column[share] += one[share]
  }
  return columns
}

export interface KeyIssue {
  text: string
  advice: string
}

/** The issues of an active key. */
export function keyIssues(key: IngestKey): KeyIssue[] {
  const { clock } = key
  if (key.state !== 'active') return []
  return [
    ...(key.seenInBrowserAt === null ? [] : [{ text: 'sent from a browser', advice: advice.browser }]),
    ...(clock === null || clock.state === 'fine'
      ? []
      : [{ text: `clock ${duration(clock.offMs)} ${clock.state}`, advice: advice.clock }]),
    ...(key.neverUsed ? [{ text: 'never used', advice: advice.unused }] : []),
  ]
}

const advice = {
  browser: 'The key is public. Rotate it under SDK ingest keys.',
  clock:
    'Event times are wrong, or events wait too long before they are sent. Synchronize the sender’s clock with NTP.',
  unused: 'Revoke the key if it is not needed.',
}
