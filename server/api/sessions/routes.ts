/** GET /v1/sessions and GET /v1/sessions/{id}, and their dashboard twins: the events of one agent, summarized. */
import { Elysia, t } from 'elysia'
import { AppError } from '../../errors.ts'
import { jsonText } from '../../http/response.ts'
import { encodeCursor, readCursor, readLimit, readQuery, type ParameterKind } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import { filterParameters, readFilter } from '../traces/filter.ts'
import { isoTime } from '../../clock.ts'
import { integer, nullable, time } from '../../http/field-models.ts'
import { eventModel } from '../../ingest/model.ts'
import type { EventFilter, EventPosition, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { Session } from '../../../db/contract/sessions.ts'

interface SessionRoutesServices {
  store: Store
  guard: KeyGuard
  signIns: SignIns
  cursorCipher: Cipher
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
  const requestFilter = readFilter(query)
  const cursor = readCursor<EventFilter, Position>(
    cursorCipher,
    'sessions-cursor',
    orgId,
    query,
    Object.keys(requestFilter).length > 0 ? requestFilter : null,
  )
  const filter = cursor?.filters ?? requestFilter
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
  const sessionStory = await store.sessions.story({
    orgId,
    sessionId: id,
    after: cursor?.position ?? null,
    ceilingSeq: cursor?.position.ceilingSeq ?? null,
    limit,
    bytesMax: limits.pageBytesMax,
    eventsMax: limits.sessionEventsMax,
  })
  if (sessionStory === null) throw new AppError('not_found', 'No session has this id.')
  const { session, events, next, ceilingSeq } = sessionStory
  const nextCursor = next && encodeCursor(cursorCipher, 'session-cursor', orgId, id, { ...next, ceilingSeq })
  const texts = events.map(({ json }) => json).join(',')
  const view = JSON.stringify(sessionView(session))
  return jsonText(`{"session":${view},"events":[${texts}],"nextCursor":${JSON.stringify(nextCursor)}}`)
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

/** The wire schemas of sessions: the events of one agent from its first to its last. */
const counts = t.Record(t.String(), integer({ minimum: 0 }))

export const sessionModel = t.Object({
  id: t.String(),
  siteIds: t.Array(t.String()),
  firstSeenAt: time(),
  lastSeenAt: time(),
  events: integer({ minimum: 1 }),
  agent: t.Object(
    { class: nullable(t.String()), vendor: nullable(t.String()), trust: nullable(t.String()) },
    { description: 'The agent, with the highest trust it reached.' },
  ),
  byPillar: t.Record(t.String(), integer({ minimum: 0 }), {
    description: 'Events per first word of the type.',
  }),
  byOutcome: counts,
  truncated: t.Optional(
    t.Literal(true, {
      description: `The session has more events; only the newest ${limits.sessionEventsMax} were counted.`,
    }),
  ),
})

const nextCursor = nullable(t.String())

export const sessionPageModel = t.Object({ sessions: t.Array(sessionModel), nextCursor })
export const sessionStoryModel = t.Object({
  session: sessionModel,
  events: t.Array(eventModel, { description: 'Oldest first.' }),
  nextCursor,
})
