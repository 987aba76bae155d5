/** The reference of traces: the filters, pages and exports of GET /v1/traces. */
import { t } from 'elysia'
import { eventModel } from '../ingest/model.ts'
import { limits } from '../limits.ts'
import { exampleEvent } from './examples.ts'
import type { Operation, Parameter } from './operation.ts'
import { anyOf, cursor, limit, since, until } from './parameters-model.ts'

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
