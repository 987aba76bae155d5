/** Reads the URL of a delivery and finds the kind of sink that serves it. */
import { file } from './file.ts'
import { http } from './http.ts'
import { RefusedUrl, type Sink, type SinkOptions } from './sink.ts'
import { syslog } from './syslog.ts'

/** Every kind of destination. */
const sinks: readonly Sink[] = [file, http, syslog]

interface Destination {
  sink: Sink
  target: unknown // what `sink.parse` returned
}

const urlCharsMax = 2_048

/** Throws `RefusedUrl`. Addresses are checked by `Sink.check` and again when the delivery is sent. */
export function parseDestination(text: string, options: SinkOptions): Destination {
  if (text.length > urlCharsMax) throw new RefusedUrl(`it is longer than ${urlCharsMax} characters`)
  // The URL parser drops line breaks and tabs, so the URL that was checked would differ from the stored text.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) throw new RefusedUrl('it contains a control character')
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) throw new RefusedUrl('it is not a URL')
  if (url.username !== '' || url.password !== '') throw new RefusedUrl('it contains a user name or password')
  if (url.hash !== '' || text.includes('#')) throw new RefusedUrl('it contains a fragment')
  const sink = sinks.find(({ schemes }) => schemes.includes(url.protocol))
  if (sink === undefined) throw new RefusedUrl(`the scheme ${url.protocol} is not supported`)
  return { sink, target: sink.parse(url, text, options) }
}

export function isHttp({ sink }: Destination): boolean {
  return sink === http
}

/**
 * Limits concurrent sends of deliveries without an endpoint: one lane per organization and origin. A lane shared by all
 * organizations would let one with a long queue delay the others.
 */
export function laneOf(orgId: string, url: string): string {
  return `${orgId} ${new URL(url).origin}`
}
