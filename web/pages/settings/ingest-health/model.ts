/** What the ingest-health page makes of the answer: a column for every hour, and what somebody should look at. */
import { duration } from '../../../text/format.ts'
import type { IngestHealth, IngestKey } from '../../../api/ingest-api.ts'

const hourMs = 3_600_000

export const shares = ['accepted', 'deduped', 'rejected'] as const
export type Share = (typeof shares)[number]

export interface HourColumn {
  startMs: number
  accepted: number
  deduped: number
  rejected: number
}

/** Every hour from the first asked for to the running one, all keys together; an hour without requests is all zeros. */
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

/** What is odd about a key that still works, in a few words; empty when nothing is. */
export function oddities(key: IngestKey): string[] {
  const { clock } = key
  if (key.state !== 'active') return []
  return [
    ...(key.seenInBrowserAt === null ? [] : ['seen in a browser']),
    ...(clock === null || clock.state === 'fine' ? [] : [`clock ${duration(clock.offMs)} ${clock.state}`]),
    ...(key.neverUsed ? ['never used'] : []),
  ]
}

export const advice: { [start: string]: string } = {
  seen: 'It is public: replace it under SDK ingest keys.',
  clock:
    'Times of its events are wrong, or they wait long before they are sent: set the sender’s clock by NTP.',
  never: 'Revoke it when nobody will use it.',
}
