/** One page of events for a query: limit, cursor and filters read, the store asked, the next cursor sealed. */
import { invalidQuery, readLimit, type ParameterKind, type Query } from '../../http/query.ts'
import { limits } from '../../limits.ts'
import { filterParameters, readFilter } from './filter.ts'
import type { EventFilter, EventPage, EventPosition, EventStore } from '../../../db/contract/store.ts'
import type { Seal } from '../../http/cursor-cipher.ts'

export const pageParameters: Record<string, ParameterKind> = {
  limit: 'one',
  cursor: 'one',
  ...filterParameters,
}

export interface TracePage extends EventPage {
  nextCursor: string | null
}

/** Reads a page of `orgId`'s events, newest first; throws 400 `invalid_query` naming a wrong parameter. */
export async function readPage(
  parts: { events: Pick<EventStore, 'page'>; seal: Seal },
  orgId: string,
  query: Query,
): Promise<TracePage> {
  const asked = readFilter(query)
  const limit = readLimit(query, limits.tracesPageDefault, limits.tracesPageMax)
  const cursor = query.one('cursor')
  const walk =
    cursor === undefined
      ? { filter: asked, before: null, ceilingSeq: null }
      : openCursor(parts.seal, cursor, orgId, asked)
  const { filter, before, ceilingSeq } = walk
  const bytesMax = limits.pageBytesMax
  const page = await parts.events.page({ orgId, filter, limit, bytesMax, before, ceilingSeq })
  const next = page.next
  const nextCursor =
    next && closeCursor(parts.seal, { orgId, filter, before: next, ceilingSeq: page.ceilingSeq })
  return { ...page, nextCursor }
}

/**
 * The opaque cursor of GET /v1/traces: where the walk stands, with its filters and the ceiling of arrivals it covers.
 */
interface Walk {
  orgId: string
  filter: EventFilter
  before: EventPosition
  ceilingSeq: number
}

const purpose = 'traces-cursor'

function closeCursor(seal: Seal, { orgId, filter, before, ceilingSeq }: Walk): string {
  return seal.close(purpose, [orgId, filter, before.occurredAtMs, before.seq, ceilingSeq])
}

/**
 * Opens a cursor for `orgId`. `asked` is the filter given beside it: empty goes on with the cursor's own, an equal one
 * too; another one, another organization or a text that is not ours is 400 (contract §6).
 */
function openCursor(seal: Seal, text: string, orgId: string, asked: EventFilter): Walk {
  const opened = seal.open(purpose, text) as [string, EventFilter, number, number, number] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'This cursor is not one of ours.')
  const [, filter, occurredAtMs, seq, ceilingSeq] = opened
  if (Object.keys(asked).length > 0 && fingerprint(asked) !== fingerprint(filter)) {
    throw invalidQuery(
      'cursor',
      'This cursor belongs to a walk with other filters; send it alone or with the same ones.',
    )
  }
  return { orgId, filter, before: { occurredAtMs, seq }, ceilingSeq }
}

function fingerprint(filter: EventFilter): string {
  return JSON.stringify(Object.entries(filter).sort(([a], [b]) => (a < b ? -1 : 1)))
}
