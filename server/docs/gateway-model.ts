/** The reference of ingest, and of reading traces, sessions, tools and site memory with their versions. */
import { t } from 'elysia'
import { filterableFields, type FilterableField } from '../../db/contract/event-fields.ts'
import { eventModel, eventsBodyModel, ingestAnswerModel } from '../ingest/model.ts'
import { accessLogOperations } from './access-logs-model.ts'
import {
  memoryAnswerModel,
  memoryBodyModel,
  memoryHistoryModel,
  memoryPageModel,
  memoryVersionModel,
  toolHistoryModel,
  toolPageModel,
  toolsAnswerModel,
  toolsBodyModel,
} from '../api/registry/model.ts'
import {
  anyOf,
  cursor,
  exampleEvent,
  exampleMemory,
  exampleTime,
  exampleTool,
  limit,
  since,
  siteIds,
  until,
  type Operation,
  type Parameter,
} from './operation-model.ts'
import { limits } from '../limits.ts'
import { recordModel } from './record-model.ts'
import { sessionPageModel, sessionStoryModel } from '../api/sessions/routes.ts'

export const ingestOperations: Operation[] = [
  {
    id: 'postEvents',
    method: 'post',
    path: '/v1/sdk/events',
    tag: 'Ingest',
    summary: 'Send events',
    about:
      'Responds when the events are on disk. An event whose id is already stored counts as deduped, so retries are ' +
      'safe. When some events are invalid, the valid ones are stored and the response lists the rest. When all are ' +
      'invalid, the status is 400 and nothing is stored. Accepts JSON, or one event per line as application/x-ndjson, ' +
      'and content-encoding gzip, deflate, br or zstd.',
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
      'Adds and updates tools by site and name. Either all tools are stored or none. A changed descriptor creates a new ' +
      'version; pushing the same list again changes nothing.',
    key: 'ingest',
    query: {
      mode: {
        schema: t.Literal('replace'),
        description: 'replace marks tools of the site as removed when they are not in this list.',
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
    summary: 'Push a site memory snapshot',
    about:
      'Replaces the site memory and stores the previous version. Without a score, the server computes one.',
    key: 'ingest',
    body: { schema: memoryBodyModel, example: { siteId: 'shop-acme', snapshot: exampleMemory, score: 87 } },
    answers: {
      202: { description: 'Stored.', schema: memoryAnswerModel, example: { ok: true, siteId: 'shop-acme' } },
    },
  },
  ...accessLogOperations,
]

/** Only these have a pattern; the rest may be any text. */
const patterns: { [name: string]: string } = {
  type: /^([a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?)?$/.source,
  outcome: /^([a-z][a-z0-9_-]*)?$/.source,
}

function fieldFilter({ name, charsMax, about: description, example }: FilterableField): Parameter {
  const pattern = patterns[name]
  if (pattern === undefined) return anyOf(description, charsMax, example)
  const isType = name === 'type'
  return {
    schema: t.String({ maxLength: isType ? charsMax + 2 : charsMax, pattern }),
    description: isType ? 'An event type, or a prefix such as authz.*.' : description,
    repeats: true,
    example,
  }
}

const fieldFilters = Object.fromEntries(filterableFields.map((field) => [field.name, fieldFilter(field)]))

export const traceFilters: { [name: string]: Parameter } = {
  since,
  until,
  ...fieldFilters,
  agentClass: { ...fieldFilters['class']!, description: 'Alias of class.' },
  network: {
    schema: t.String({ maxLength: limits.networkCharsMax, pattern: /^[0-9a-f.:]+\/(?:24|48)$/.source }),
    description:
      'The network of a contradicted request, while it is stored. Finds the newest 200,000 requests of a network.',
    repeats: true,
    example: '192.0.2.0/24',
  },
  q: {
    schema: t.String({ minLength: 1, maxLength: limits.searchCharsMax }),
    description:
      'Text in any string of the event, case-insensitive. Requires since. A page may be short or empty and still have ' +
      'a nextCursor; continue with it.',
    example: 'verified',
  },
}

const include: Parameter = {
  schema: t.Literal('record'),
  description: 'record adds the record of each event: who says so.',
}

export const traceOperations: Operation[] = [
  {
    id: 'listTraces',
    method: 'get',
    path: '/v1/traces',
    tag: 'Traces',
    summary: 'List or export events',
    about:
      'Newest first by occurredAt. Repeat a filter to match any of several values; an empty value matches events ' +
      'without the field. An occurredAt more than 5 minutes ahead of the arrival counts as the arrival time, in ' +
      'lists, filters and counts. Following nextCursor to the end returns every matching event exactly once, even ' +
      'while new events arrive. ' +
      'With accept: application/x-ndjson, text/csv or application/vnd.apache.parquet, all matches are streamed, without ' +
      'limit and cursor. NDJSON ends with {"_end":{"count":n}}. CSV has the header x-row-count and escapes formulas ' +
      'unless raw=true. Parquet has a column per field and the event as it was sent; a key runs one such export at a ' +
      'time. With include=record the response has the record of each event beside it: how it came in, who gave its ' +
      'verdict and who saw what was judged. CSV and Parquet always have these as columns.',
    key: 'secret',
    scope: 'traces:read',
    query: {
      limit: limit(limits.tracesPageDefault, limits.tracesPageMax),
      cursor,
      ...traceFilters,
      raw: {
        schema: t.Union([t.Literal('true'), t.Literal('false')]),
        description: 'For text/csv: true disables the escaping of formulas.',
      },
      include,
    },
    answers: {
      200: [
        {
          description: 'A page of events, as they were sent. records are in the order of events.',
          schema: t.Object({
            events: t.Array(eventModel),
            records: t.Optional(t.Array(recordModel, { description: 'Only with include=record.' })),
            nextCursor: t.Union([t.String(), t.Null()]),
          }),
          example: { events: [exampleEvent], nextCursor: null },
        },
        {
          description: 'One event per line; with include=record {"event":…,"record":…}.',
          type: 'application/x-ndjson',
          example: `${JSON.stringify(exampleEvent)}\n{"_end":{"count":1}}\n`,
        },
        { description: 'One event per row.', type: 'text/csv' },
        { description: 'One event per row.', type: 'application/vnd.apache.parquet' },
      ],
    },
    errors: ['not_acceptable'],
  },
  {
    id: 'getTrace',
    method: 'get',
    path: '/v1/traces/{id}',
    tag: 'Traces',
    summary: 'Get an event',
    key: 'secret',
    scope: 'traces:read',
    params: { id: { description: 'The event id.', example: 'evt_1' } },
    query: { include },
    answers: {
      200: {
        description: 'The event, as it was sent; with include=record an object with event and record.',
        schema: t.Union([eventModel, t.Object({ event: eventModel, record: recordModel })]),
        example: exampleEvent,
      },
    },
  },
]

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
const sessionReads = { method: 'get', key: 'secret', scope: 'traces:read', tag: 'Sessions' } as const

export const sessionOperations: Operation[] = [
  {
    ...sessionReads,
    id: 'listSessions',
    path: '/v1/sessions',
    summary: 'List sessions',
    about:
      'Sessions with a matching event, newest matching event first. The filters work as in GET /v1/traces. Counts cover all events of a session. A page may be ' +
      'short and still have a nextCursor; continue with it.',
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
    ...sessionReads,
    id: 'getSession',
    path: '/v1/sessions/{id}',
    summary: 'Get a session',
    params: { id: { description: 'The session id.', example: 'sess_1' } },
    query: { limit: limit(limits.tracesPageMax, limits.tracesPageMax), cursor },
    answers: {
      200: {
        description: 'The session and its events, oldest first.',
        schema: sessionStoryModel,
        example: { session, events: [exampleEvent], nextCursor: null },
      },
    },
  },
]

const tool = {
  siteId: 'shop-acme',
  name: 'checkout.pay',
  enabled: true,
  tokens: 120,
  tokensEstimated: false,
  version: 1,
  firstSeenAt: exampleTime,
  changedAt: exampleTime,
  removedAt: null,
  tool: exampleTool,
}
const version = { version: 1, at: exampleTime, score: 87, scoreComputed: false, bytes: 160 }
const memory = { siteId: 'shop-acme', firstSeenAt: exampleTime, ...version, snapshot: exampleMemory }

const siteParam = { description: 'The site id.', example: 'shop-acme' }
const paging = { siteId: siteIds, limit: limit(limits.registryPageDefault, limits.registryPageMax), cursor }
const registryReads = { method: 'get', key: 'secret', scope: 'traces:read', tag: 'Registry' } as const

export const registryOperations: Operation[] = [
  {
    ...registryReads,
    id: 'listTools',
    path: '/v1/tools',
    summary: 'List tools',
    about: 'Sorted by site and name. Each entry has the descriptor as it was sent.',
    query: {
      ...paging,
      removed: {
        schema: t.Union([t.Literal('true'), t.Literal('false')]),
        description: 'true includes removed tools.',
      },
    },
    answers: {
      200: {
        description: 'A page of tools.',
        schema: toolPageModel,
        example: { tools: [tool], nextCursor: null },
      },
    },
  },
  {
    ...registryReads,
    id: 'getTool',
    path: '/v1/tools/{siteId}/{name}',
    summary: 'Get a tool and its versions',
    params: { siteId: siteParam, name: { description: 'The tool name.', example: 'checkout.pay' } },
    answers: {
      200: {
        description:
          'The tool and its versions, newest first, each with the differences from the previous one.',
        schema: toolHistoryModel,
        example: {
          tool,
          versions: [{ version: 1, at: exampleTime, change: 'added', differences: [], tool: exampleTool }],
        },
      },
    },
  },
  {
    ...registryReads,
    id: 'listMemory',
    path: '/v1/memory',
    summary: 'List site memory',
    query: paging,
    answers: {
      200: {
        description: 'A page of sites with their newest snapshot.',
        schema: memoryPageModel,
        example: { memory: [memory], nextCursor: null },
      },
    },
  },
  {
    ...registryReads,
    id: 'getMemory',
    path: '/v1/memory/{siteId}',
    summary: 'Get the memory of a site',
    params: { siteId: siteParam },
    answers: {
      200: {
        description: 'The newest snapshot, and the list of versions.',
        schema: memoryHistoryModel,
        example: { memory, versions: [version] },
      },
    },
  },
  {
    ...registryReads,
    id: 'getMemoryVersion',
    path: '/v1/memory/{siteId}/versions/{version}',
    summary: 'Get a version of the memory of a site',
    params: { siteId: siteParam, version: { description: 'The version number, from 1.', example: '1' } },
    answers: {
      200: {
        description: 'The snapshot, and the differences from the previous version.',
        schema: memoryVersionModel,
        example: { memory, differences: [] },
      },
    },
  },
]
