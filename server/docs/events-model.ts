/** The reference of the ingest endpoints: events, tools, memory. */
import { t } from 'elysia'
import { eventModel, eventsBodyModel, ingestAnswerModel } from '../ingest/model.ts'
import { memoryAnswerModel, memoryBodyModel } from '../api/site-memory/model.ts'
import { toolsAnswerModel, toolsBodyModel } from '../api/tools/model.ts'
import { exampleEvent, exampleMemory, exampleTime, exampleTool } from './examples.ts'
import { limits } from '../limits.ts'
import { anyOf, cursor, limit, since, until } from './operation-model.ts'
import { sessionPageModel, sessionStoryModel } from '../api/sessions/model.ts'
import type { Operation, Parameter } from './operation-model.ts'

export const ingestOperations: Operation[] = [
  {
    id: 'postEvents',
    method: 'post',
    path: '/v1/sdk/events',
    tag: 'Ingest',
    summary: 'Send trace events',
    about:
      'The answer comes when the events are on disk. An id that is known already counts as deduped, so sending again ' +
      'is safe. When some events are bad the good ones are stored and the answer lists the rest; when all are, it is ' +
      '400 and nothing is stored. Also takes one event a line as application/x-ndjson, and gzip, deflate, br or zstd.',
    key: 'ingest',
    body: {
      schema: eventsBodyModel,
      example: { events: [exampleEvent] },
      otherTypes: ['application/x-ndjson'],
    },
    answers: {
      202: {
        description: 'Stored.',
        schema: ingestAnswerModel,
        example: { ok: true, accepted: 1, deduped: 0 },
      },
    },
  },
  {
    id: 'postTools',
    method: 'post',
    path: '/v1/sdk/tools',
    tag: 'Ingest',
    summary: 'Push a tool registry',
    about:
      'Adds and changes tools by site and name; the same list again changes nothing. All or nothing. A changed ' +
      'descriptor makes a new version.',
    key: 'ingest',
    query: {
      mode: {
        schema: t.Literal('replace'),
        description: 'replace: tools of the site that are not in this list are marked removed.',
      },
    },
    body: { schema: toolsBodyModel, example: { siteId: 'shop-acme', tools: [exampleTool] } },
    answers: { 202: { description: 'Stored.', schema: toolsAnswerModel, example: { ok: true, tools: 1 } } },
  },
  {
    id: 'postMemory',
    method: 'post',
    path: '/v1/sdk/memory',
    tag: 'Ingest',
    summary: 'Push a site-memory snapshot',
    about: 'Replaces what is known of the site; versions are kept. Without a score one is computed.',
    key: 'ingest',
    body: { schema: memoryBodyModel, example: { siteId: 'shop-acme', snapshot: exampleMemory, score: 87 } },
    answers: {
      202: { description: 'Stored.', schema: memoryAnswerModel, example: { ok: true, siteId: 'shop-acme' } },
    },
  },
]

/** The reference of traces: the filters, pages and exports of GET /v1/traces. */
export const traceFilters: { [name: string]: Parameter } = {
  since,
  until,
  type: {
    schema: t.String({
      maxLength: limits.typeCharsMax + 2,
      pattern: /^([a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?)?$/.source,
    }),
    description: 'A kind of event, or a prefix such as authz.*. Repeat it for any of.',
    repeats: true,
    example: 'authz.*',
  },
  agentClass: anyOf('The class of the agent.', limits.classCharsMax, 'dom'),
  class: anyOf('The same as agentClass.', limits.classCharsMax, 'dom'),
  vendor: anyOf("The agent's vendor.", limits.vendorCharsMax, 'Operator'),
  name: anyOf('The name of the bot, agent.name.', limits.nameCharsMax, 'GPTBot'),
  purpose: anyOf(
    'What it came for, agent.purpose; known: training, search, assistant, user.',
    limits.purposeCharsMax,
    'training',
  ),
  trust: anyOf('The trust in its identity.', limits.trustCharsMax, 'detected'),
  outcome: {
    schema: t.String({ maxLength: limits.outcomeCharsMax, pattern: /^([a-z][a-z0-9_-]*)?$/.source }),
    description: 'How it ended. Repeat it for any of.',
    repeats: true,
    example: 'blocked',
  },
  siteId: anyOf('The site.', limits.idCharsMax, 'shop-acme'),
  sessionId: anyOf('The session.', limits.idCharsMax, 'sess_1'),
  tool: anyOf('The tool.', limits.toolCharsMax, 'checkout.pay'),
  protocol: anyOf('How identity was proved.', limits.protocolCharsMax, 'web-bot-auth'),
  decision: anyOf(
    'policy.decision; without it an evaluation that was blocked counts as deny, a success as allow.',
    limits.decisionCharsMax,
    'deny',
  ),
  subject: anyOf('The verified identity.', limits.subjectCharsMax, ''),
  q: {
    schema: t.String({ minLength: 1, maxLength: limits.searchCharsMax }),
    description:
      'A part of any text in the event, whatever its case. Needs since. A page may come back short, even empty, with ' +
      'a nextCursor: go on with it.',
    example: 'verified',
  },
}

export const traceOperations: Operation[] = [
  {
    id: 'listTraces',
    method: 'get',
    path: '/v1/traces',
    tag: 'Traces',
    summary: 'List or export events',
    about:
      'Newest first by occurredAt; one that is more than 5 minutes ahead of its arrival counts as the arrival time, in ' +
      'lists, filters and counts alike. Walking to the end by cursor gives every matching event exactly once, even ' +
      'while new ones arrive. ' +
      'With accept: application/x-ndjson or text/csv all matches are streamed, without limit and cursor: NDJSON ends ' +
      'with {"_end":{"count":n}}, CSV says its rows in the header x-row-count and disarms formulas unless raw=true.',
    key: 'secret',
    scope: 'traces:read',
    query: {
      limit: limit(limits.tracesPageDefault, limits.tracesPageMax),
      cursor,
      ...traceFilters,
      raw: {
        schema: t.Union([t.Literal('true'), t.Literal('false')]),
        description: 'With text/csv only: true leaves formulas as they are.',
      },
    },
    answers: {
      200: [
        {
          description: 'A page of events as they were sent.',
          schema: t.Object({ events: t.Array(eventModel), nextCursor: t.Union([t.String(), t.Null()]) }),
          example: { events: [exampleEvent], nextCursor: null },
        },
        {
          description: 'One event a line.',
          type: 'application/x-ndjson',
          example: `${JSON.stringify(exampleEvent)}\n{"_end":{"count":1}}\n`,
        },
        { description: 'A table.', type: 'text/csv' },
      ],
    },
    errors: ['not_acceptable'],
  },
  {
    id: 'getTrace',
    method: 'get',
    path: '/v1/traces/{id}',
    tag: 'Traces',
    summary: 'One event as it was sent',
    key: 'secret',
    scope: 'traces:read',
    params: { id: { description: 'The id of the event.', example: 'evt_1' } },
    answers: { 200: { description: 'The event.', schema: eventModel, example: exampleEvent } },
  },
]

/** The reference of sessions. */
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
