/** The reference of the ingest endpoints: events, tools, memory. */
import { t } from 'elysia'
import { eventsBodyModel, ingestAnswerModel } from '../ingest/model.ts'
import { memoryAnswerModel, memoryBodyModel } from '../api/site-memory/model.ts'
import { toolsAnswerModel, toolsBodyModel } from '../api/tools/model.ts'
import { exampleEvent, exampleMemory, exampleTool } from './examples.ts'
import type { Operation } from './operation.ts'

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
