/** The reference of GET /v1/explore. */
import { t } from 'elysia'
import { integer } from '../http/field-models.ts'
import { limits } from '../limits.ts'
import { exploreModel } from '../api/explore/routes.ts'
import { exploreStepNames } from '../api/explore/query.ts'
import { exploreMeasures } from '../../db/contract/explore.ts'
import { since, siteIds, until, type Operation } from './operation-model.ts'

const exampleExplored = {
  measure: 'events',
  by: 'metadata.protocol',
  zone: 'UTC',
  edges: ['2026-06-23T00:00:00.000Z', '2026-06-24T00:00:00.000Z'],
  rows: [{ value: 'web-bot-auth', events: 4, total: 4, steps: [4], error: 0 }],
  missing: { events: 2, total: 2, steps: [2], error: 0 },
  other: null,
  all: { events: 6, total: 6, steps: [6], error: 0 },
  truncated: false,
  expired: 0,
}

export const exploreOperation: Operation = {
  id: 'explore',
  method: 'get',
  path: '/v1/explore',
  tag: 'Metrics',
  summary: 'Explore a measure by any field',
  about:
    'Measures the stored events by the values of one field, exactly between since and until. Sums and events are ' +
    'exact. Numbers of distinct values are exact until there are many. Quantiles are within 2 %. Whole hours without filters ' +
    'by other fields take milliseconds. A text search reads every event. With accept: application/x-ndjson, ' +
    'lines with progress (0 to 1) come first, and the last line has result or error. Closing the connection ends ' +
    'the query. text/csv has a row per value.',
  key: 'secret',
  scope: 'traces:read',
  query: {
    measure: {
      schema: t.Union(
        exploreMeasures.map((measure) => t.Literal(measure)),
        { default: 'events' },
      ),
      description:
        'errors: events with the outcome error. sessions, subjects: distinct values. p50, p95, p99: of durationMs. ' +
        'bytes, tokens: sums of metadata.bytes, and of metadata.tokens or its input and output.',
      example: 'events',
    },
    by: {
      schema: t.String({ maxLength: limits.explorePathCharsMax + 'metadata.'.length }),
      description:
        'A filter of GET /v1/traces, ruleId, reason, page, or a path such as metadata.cart.currency. A dot separates ' +
        'fields or belongs to a name. Without it, all events together.',
      example: 'metadata.protocol',
    },
    filter: {
      schema: t.String(),
      description:
        'NAME:VALUE with a name as in by. Repeat it to match any of several values of one name; an empty value ' +
        'matches events without the field.',
      repeats: true,
      example: 'type:authz.*',
    },
    q: {
      schema: t.String({ minLength: 1, maxLength: limits.searchCharsMax }),
      description: 'Only events with this text in any string value, ignoring case.',
      example: 'timed out',
    },
    rows: {
      schema: integer({ minimum: 1, maximum: limits.exploreRowsMax, default: limits.exploreRowsDefault }),
      description: 'How many values have a row of their own.',
      example: '10',
    },
    since: { ...since, description: 'From this time. Default: the last 30 days.' },
    until: { ...until, description: 'Before this time.' },
    step: {
      schema: t.Union(exploreStepNames.map((name) => t.Literal(name))),
      description: `Splits the range into at most ${limits.exploreStepsMax} steps. Without it, one step.`,
      example: 'day',
    },
    zone: {
      schema: t.String({ default: 'UTC' }),
      description: 'The IANA time zone of the steps.',
      example: 'Europe/Berlin',
    },
    siteId: siteIds,
  },
  answers: {
    200: [
      { description: 'The numbers.', schema: exploreModel, example: exampleExplored },
      {
        description: 'Progress, then the result.',
        type: 'application/x-ndjson',
        example: `{"progress":0.4}\n${JSON.stringify({ result: exampleExplored })}\n`,
      },
      { description: 'A row per value.', type: 'text/csv' },
    ],
  },
  errors: ['not_acceptable'],
}
