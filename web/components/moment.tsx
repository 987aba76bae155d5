/** A time as people say it, with the exact one on hover. */
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

/** The exact time, with how long ago on hover: for what is evidence. */
export function Instant({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  const [day, time] = fullTime(ms).split(', ')
  return (
    <time class="instant" dateTime={iso} title={`${ago(ms, now())}\n${utcTime(ms)}`}>
      <span>{day}</span> <span>{time}</span>
    </time>
  )
}

/** A time to come. */
export function Day({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={utcTime(ms)}>
      {fullTime(ms)}
    </time>
  )
}
