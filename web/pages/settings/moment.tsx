/** A time as people say it, with the exact one on hover. */
import { now } from '../../clock.ts'
import { ago, fullTime, utcTime } from '../../format.ts'

export function Moment({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {ago(ms, now())}
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
