/** The reference of sending access logs. */
import { t } from 'elysia'
import { accessAnswerModel, accessPositionModel } from '../access/routes.ts'
import { limits } from '../limits.ts'
import type { Operation, Parameter } from './operation-model.ts'

const text = (maxLength: number, description: string, example?: string): Parameter => {
  return { schema: t.String({ maxLength }), description, ...(example === undefined ? {} : { example }) }
}

const bytes = (description: string): Parameter => {
  return { schema: t.String({ pattern: /^\d{1,15}$/.source }), description }
}

const site = {
  siteId: {
    schema: t.String({ minLength: 1, maxLength: limits.idCharsMax }),
    description: 'The site of the log.',
    example: 'shop-acme',
    required: true as const,
  },
}

const source = text(
  80,
  'Identity of the log: the same after it was renamed, compressed or copied.',
  'web1-access',
)

/** What only readers of files send. */
const reader: { [name: string]: Parameter } = {
  path: text(1_024, 'A readable description of where the log is.'),
  epoch: text(
    80,
    'The epoch of the last position. A request with a different epoch is refused with 503, and the reader asks again.',
  ),
  reader: text(
    80,
    'Name of the reader. A log that another reader claimed less than 15 s ago is refused with 409.',
  ),
}

const exampleLine =
  '203.0.113.9 - - [23/Jun/2026:12:00:00 +0000] "GET /pricing HTTP/1.1" 200 512 "-" ' +
  '"Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"'

export const accessLogOperations: Operation[] = [
  {
    id: 'postAccessLogs',
    method: 'post',
    path: '/v1/sdk/access-logs',
    tag: 'Ingest',
    summary: 'Send lines of an access log',
    about:
      'Whole lines as text/plain or application/x-ndjson, compressed or not. Requests by agents become events, other ' +
      'requests are counted. Responds when both are on disk. With source and offset each line is stored once, also ' +
      'when a request is repeated; a request that does not begin where the log was read to is refused with 409, which ' +
      'has the position. Without them a repeated body is known for 7 days.',
    key: 'ingest',
    query: {
      ...site,
      format: text(200, 'A format by name, or a format string. By default it is recognized.', 'combined'),
      source,
      offset: { ...bytes('Offset of the first line in the log. Required with source.'), example: '0' },
      end: bytes('Of a line above 64 KiB, of which the body has the beginning: the offset after it.'),
      tail: text(80, 'Hash of the end of such a line.'),
      heading: text(2_000, 'The line #Fields of a W3C log, when it is before these lines.'),
      warm: text(10, 'true: the lines are stored already, and only continue running sessions.'),
      keepQuery: text(2_000, 'Query parameters to store with the page, separated by commas.'),
      keepAddresses: text(10, 'true: the network of each agent is stored.'),
      trustedProxy: text(2_000, 'Proxies whose X-Forwarded-For in the log is trusted, separated by commas.'),
      ...reader,
    },
    body: {
      schema: t.String(),
      example: exampleLine,
      type: 'text/plain',
      otherTypes: ['application/x-ndjson'],
    },
    answers: {
      202: {
        description: 'Stored.',
        schema: accessAnswerModel,
        example: {
          ok: true,
          lines: 1,
          stored: 1,
          deduped: 0,
          people: 0,
          excluded: 0,
          bad: 0,
          errors: [],
          state: 'stored',
          position: 150,
          tail: '9f86d081884c7d65',
        },
      },
    },
    errors: ['conflict'],
  },
  {
    id: 'getAccessLogPosition',
    method: 'get',
    path: '/v1/sdk/access-logs',
    tag: 'Ingest',
    summary: 'Get the position of an access log',
    about: 'Where a reader of the log continues. With reader it claims the log for 15 s.',
    key: 'ingest',
    query: {
      ...site,
      source,
      behindBytes: bytes('A readable description of how far behind the reader is.'),
      problem: text(500, 'A readable description of why the log cannot be read.'),
      ...reader,
    },
    answers: {
      200: {
        description: 'The position.',
        schema: accessPositionModel,
        example: { position: 150, tail: '9f86d081884c7d65', epoch: 'vQ3', isWarm: true },
      },
    },
    errors: ['conflict'],
  },
]
