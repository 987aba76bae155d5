/** Turns the text of an ingest request into records, and into what was rejected and why (contract §4). */
import { mediaType } from '../http/media-type.ts'
import { acceptBody } from './accept-body.ts'
import { acceptLines } from './accept-lines.ts'
import type { Accepted } from './rejected.ts'

export type { Accepted }
export type EventsMediaType = 'application/json' | 'application/x-ndjson'

/** The media type of an ingest body; 415 for any other. */
export function eventsMediaType(header: string | null): EventsMediaType {
  return mediaType(header, ['application/json', 'application/x-ndjson'])
}

/**
 * Checks every event of a request. `siteIds` are the sites its key is limited to; [] means all. Throws when the body
 * is no list of 1 to 1,000 events; a bad event is only listed. An id that comes twice is taken twice: the store
 * dedupes.
 */
export function acceptEvents(text: string, type: EventsMediaType, siteIds: readonly string[]): Accepted {
  return type === 'application/x-ndjson' ? acceptLines(text, siteIds) : acceptBody(text, siteIds)
}
