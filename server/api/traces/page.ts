/** Reads one page of events for a query string, with its cursors. */
import { invalidQuery, readLimit, type ParameterKind, type Query } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import { filterParameters, readFilter } from './filter.ts'
import type { EventFilter, EventPage, EventPosition, EventStore } from '../../../db/contract/store.ts'
import type { CursorCipher } from '../../system/encryption.ts'

export const pageParameters: Record<string, ParameterKind> = {
  limit: 'one',
  cursor: 'one',
  ...filterParameters,
}

export interface TracePage extends EventPage {
  nextCursor: string | null
}

/** A page of `orgId`'s events, newest first; throws 400 `invalid_query` that names the wrong parameter. */
export async function readPage(
  services: { events: Pick<EventStore, 'page'>; cursorCipher: CursorCipher },
  orgId: string,
  query: Query,
): Promise<TracePage> {
  const asked = readFilter(query)
  const limit = readLimit(query, limits.tracesPageDefault, limits.tracesPageMax)
  const cursor = query.one('cursor')
  const walk =
    cursor === undefined
      ? { filter: asked, before: null, ceilingSeq: null }
      : decodeCursor(services.cursorCipher, cursor, orgId, asked)
  const { filter, before, ceilingSeq } = walk
  const bytesMax = limits.pageBytesMax
  const page = await services.events.page({ orgId, filter, limit, bytesMax, before, ceilingSeq })
  const next = page.next
  const nextCursor =
    next && encodeCursor(services.cursorCipher, { orgId, filter, before: next, ceilingSeq: page.ceilingSeq })
  return { ...page, nextCursor }
}

/** The contents of a cursor: the position, its filters, and the newest arrival that the walk covers. */
interface Walk {
  orgId: string
  filter: EventFilter
  before: EventPosition
  ceilingSeq: number
}

const purpose = 'traces-cursor'

function encodeCursor(cursorCipher: CursorCipher, { orgId, filter, before, ceilingSeq }: Walk): string {
  return cursorCipher.encrypt(purpose, [orgId, filter, before.occurredAtMs, before.seq, ceilingSeq])
}

/**
 * Decodes a cursor for `orgId`. `given` is the filter of the request: empty or equal to the cursor's own. Throws 400
 * for another filter, another organization or an invalid cursor (contract §6).
 */
function decodeCursor(cursorCipher: CursorCipher, text: string, orgId: string, given: EventFilter): Walk {
  const opened = cursorCipher.decrypt(purpose, text) as [string, EventFilter, number, number, number] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'Invalid cursor.')
  const [, filter, occurredAtMs, seq, ceilingSeq] = opened
  if (Object.keys(given).length > 0 && fingerprint(given) !== fingerprint(filter)) {
    throw invalidQuery(
      'cursor',
      'This cursor was issued for other filters. Send it without filters or with the same ones.',
    )
  }
  return { orgId, filter, before: { occurredAtMs, seq }, ceilingSeq }
}

function fingerprint(filter: EventFilter): string {
  return JSON.stringify(Object.entries(filter).sort(([a], [b]) => (a < b ? -1 : 1)))
}
