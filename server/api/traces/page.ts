/** One page of events for a query: limit, cursor and filters read, the store asked, the next cursor sealed. */
import type { EventPage, EventStore } from '../../../db/contract/store.ts'
import { readLimit } from '../../http/paging.ts'
import type { ParameterKind, Query } from '../../http/query.ts'
import type { Seal } from '../../http/cursor-cipher.ts'
import { limits } from '../../limits.ts'
import { closeCursor, openCursor } from './cursor.ts'
import { filterParameters, readFilter } from './filter.ts'

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
