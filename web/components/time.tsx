/** Times: relative with the exact time on hover, exact with the relative time on hover, and future times. */
import { now } from '../app/clock.ts'
import { ago, fullTime, utcTime } from '../text/format.ts'

export function Moment({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {ago(ms, now())}
    </time>
  )
}

/** The exact time, with the relative time on hover, for evidence such as the audit log. */
export function Instant({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  const [day, time] = fullTime(ms).split(', ')
  return (
    <time class="instant" dateTime={iso} title={`${ago(ms, now())}\n${utcTime(ms)}`}>
      <span>{day}</span> <span>{time}</span>
    </time>
  )
}

/** A time in the future. */
export function Day({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={utcTime(ms)}>
      {fullTime(ms)}
    </time>
  )
}
