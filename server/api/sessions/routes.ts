/** GET /v1/sessions and GET /v1/sessions/{id}, and their dashboard twins: the events of one agent, summarized. */
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { jsonText } from '../../http/response.ts'
import { encodeCursor, readCursor, readLimit, readQuery, type ParameterKind } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import { filterParameters, readFilter } from '../traces/filter.ts'
import { isoTime } from '../../clock.ts'
import type { EventFilter, EventPosition, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { CursorCipher } from '../../system/encryption.ts'
import type { Session } from '../../../db/contract/sessions.ts'

export interface SessionRoutesServices {
  store: Store
  guard: KeyGuard
  signIns: SignIns
  cursorCipher: CursorCipher
}

export function sessionRoutes(services: SessionRoutesServices) {
  const gateway = async (request: Request) => (await services.guard.gateway(request, 'traces:read')).orgId
  const dashboard = async (request: Request) => (await services.signIns.require(request)).org.id
  return new Elysia()
    .get('/v1/sessions', async ({ request }) => list(services, request, await gateway(request)))
    .get('/v1/sessions/:id', async ({ request, params }) =>
      story(services, request, await gateway(request), params.id),
    )
    .get('/api/sessions', async ({ request }) => list(services, request, await dashboard(request)))
    .get('/api/sessions/:id', async ({ request, params }) =>
      story(services, request, await dashboard(request), params.id),
    )
}

const { q: _search, sessionId: _one, ...sessionFilters } = filterParameters
const listParameters: Record<string, ParameterKind> = { ...sessionFilters, limit: 'one', cursor: 'one' }

/** The position of a walk, and the newest arrival it covers. */
type Position = EventPosition & { ceilingSeq: number }

async function list(
  { store, cursorCipher }: SessionRoutesServices,
  request: Request,
  orgId: string,
): Promise<Response> {
  const query = readQuery(request, listParameters)
  const limit = readLimit(query, limits.tracesPageDefault, limits.tracesPageMax)
  const asked = readFilter(query)
  const isAsked = Object.keys(asked).length > 0
  const cursor = readCursor<EventFilter, Position>(
    cursorCipher,
    'sessions-cursor',
    orgId,
    query,
    isAsked ? asked : null,
  )
  const filter = cursor?.filters ?? asked
  const page = await store.sessions.page({
    orgId,
    filter,
    limit,
    bytesMax: limits.pageBytesMax,
    before: cursor?.position ?? null,
    ceilingSeq: cursor?.position.ceilingSeq ?? null,
    eventsMax: limits.sessionEventsMax,
    budgetMs: limits.sessionPageMs,
  })
  const { next, ceilingSeq } = page
  const nextCursor =
    next && encodeCursor(cursorCipher, 'sessions-cursor', orgId, filter, { ...next, ceilingSeq })
  return jsonText(JSON.stringify({ sessions: page.sessions.map(sessionView), nextCursor }))
}

async function story(
  { store, cursorCipher }: SessionRoutesServices,
  request: Request,
  orgId: string,
  id: string,
): Promise<Response> {
  const query = readQuery(request, { limit: 'one', cursor: 'one' })
  const limit = readLimit(query, limits.tracesPageMax, limits.tracesPageMax)
  const cursor = readCursor<string, Position>(cursorCipher, 'session-cursor', orgId, query, id)
  const found = await store.sessions.story({
    orgId,
    sessionId: id,
    after: cursor?.position ?? null,
    ceilingSeq: cursor?.position.ceilingSeq ?? null,
    limit,
    bytesMax: limits.pageBytesMax,
    eventsMax: limits.sessionEventsMax,
  })
  if (found === null) throw new AppError('not_found', 'No session has this id.')
  const { session, events, next, ceilingSeq } = found
  const nextCursor = next && encodeCursor(cursorCipher, 'session-cursor', orgId, id, { ...next, ceilingSeq })
  const texts = events.map(({ json }) => json).join(',')
  const told = JSON.stringify(sessionView(session))
  return jsonText(`{"session":${told},"events":[${texts}],"nextCursor":${JSON.stringify(nextCursor)}}`)
}

/** A session in responses. */
function sessionView(session: Session) {
  const { id, siteIds, firstSeenAtMs, lastSeenAtMs, events, byPillar, byOutcome, isCut } = session
  return {
    id,
    siteIds,
    firstSeenAt: isoTime(firstSeenAtMs),
    lastSeenAt: isoTime(lastSeenAtMs),
    events,
    agent: { class: session.class, vendor: session.vendor, trust: session.trust },
    byPillar,
    byOutcome,
    ...(isCut ? { truncated: true } : {}),
  }
}

export type SessionView = ReturnType<typeof sessionView>
