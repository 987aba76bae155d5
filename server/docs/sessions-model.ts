/** The reference of sessions. */
import { limits } from '../limits.ts'
import { sessionPageModel, sessionStoryModel } from '../api/sessions/model.ts'
import { exampleEvent, exampleTime } from './examples.ts'
import type { Operation } from './operation.ts'
import { cursor, limit } from './parameters-model.ts'
import { traceFilters } from './traces-model.ts'

const session = {
  id: 'sess_1',
  siteIds: ['shop-acme'],
  firstSeenAt: exampleTime,
  lastSeenAt: exampleTime,
  events: 1,
  agent: { class: 'dom', vendor: 'Operator', trust: 'detected' },
  byPillar: { authz: 1 },
  byOutcome: { blocked: 1 },
}
const { q: _search, sessionId: _one, ...filters } = traceFilters
const reads = { method: 'get', key: 'secret', scope: 'traces:read', tag: 'Sessions' } as const

export const sessionOperations: Operation[] = [
  {
    ...reads,
    id: 'listSessions',
    path: '/v1/sessions',
    summary: 'List sessions',
    about:
      'Sessions with an event that matches, by the newest such event; what is counted are all events of the session. A ' +
      'page may come back short with a nextCursor: go on with it.',
    query: { limit: limit(limits.tracesPageDefault, limits.tracesPageMax), cursor, ...filters },
    answers: {
      200: {
        description: 'A page of sessions.',
        schema: sessionPageModel,
        example: { sessions: [session], nextCursor: null },
      },
    },
  },
  {
    ...reads,
    id: 'getSession',
    path: '/v1/sessions/{id}',
    summary: 'One session and its events in order',
    params: { id: { description: 'The id of the session.', example: 'sess_1' } },
    query: { limit: limit(limits.tracesPageMax, limits.tracesPageMax), cursor },
    answers: {
      200: {
        description: 'The session, and its events from the first on.',
        schema: sessionStoryModel,
        example: { session, events: [exampleEvent], nextCursor: null },
      },
    },
  },
]
