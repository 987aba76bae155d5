/** A chart of events per hour: accepted, deduplicated and rejected, stacked. The table below has the numbers. */
import { count, minuteTime } from '../../../text/format.ts'
import { now } from '../../../app/clock.ts'
import type { IngestHealth } from '../../../api/operate-api.ts'
import { hourMs } from '../../../../db/contract/units.ts'

const colours: { [share in Share]: string } = {
  accepted: 'allow',
  deduped: 'class-other',
  rejected: 'error',
}

const height = 100
const gap = 0.15 // of a column

export function IngestHours({ health }: { health: IngestHealth }) {
  const columns = hourColumns(health, now())
  const highest = Math.max(
    1,
    ...columns.map((column) => shares.reduce((sum, share) => sum + column[share], 0)),
  )
  const totals = shares.map((share) => `${count(health.totals[share])} ${shareLabels[share]}`)
  return (
    <figure class="panel ingest-hours">
      <figcaption>
        Events per hour since {minuteTime(Date.parse(health.since))}. Highest: {count(highest)}.
        <ul class="legend">
          {shares.map((share) => (
            <li key={share}>
              <i class="series-mark" style={{ background: `var(--${colours[share]})` }} />
              {shareLabels[share]}
            </li>
          ))}
        </ul>
      </figcaption>
      <svg
        viewBox={`0 0 ${columns.length} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Events per hour: ${totals.join(', ')}`}
      >
        {columns.map((column, n) => {
          let stackHeight = 0
          return shares.map((share) => {
            const tall = (column[share] / highest) * height
            stackHeight += tall
            return tall === 0 ? null : (
              <rect
                key={`${n} ${share}`}
                x={n + gap / 2}
                y={height - stackHeight}
                width={1 - gap}
                height={tall}
                style={{ fill: `var(--${colours[share]})` }}
              />
            )
          })
        })}
      </svg>
    </figure>
  )
}

export const shares = ['accepted', 'deduped', 'rejected'] as const
type Share = (typeof shares)[number]

const shareLabels: { [share in Share]: string } = {
  accepted: 'accepted',
  deduped: 'deduplicated',
  rejected: 'rejected',
}

interface HourColumn {
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
  for (const hourCounts of hours) {
    const column = columns[(Date.parse(hourCounts.hour) - startMs) / hourMs]
    if (column) for (const share of shares) column[share] += hourCounts[share]
  }
  return columns
}
