/** Appends cross the threads unchanged, except that the id and the session of an event are sent once. */
import { expect, test } from 'bun:test'
import { doors } from '../../contract/provenance.ts'
import fc from 'fast-check'
import { joinText, type SentEvent } from '../../rules/event-record.ts'
import type { AccessLines, AppendResult, EventBatch, EventRecord, RailedEvent } from '../../contract/store.ts'
import {
  packAnswer,
  packAppend,
  packBatches,
  packOutcomes,
  unpackAnswer,
  unpackBatches,
  unpackOutcomes,
  unpackRequest,
  type AppendOutcome,
} from './protocol.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 20 })
const optional = fc.option(text)
const fields: fc.Arbitrary<EventRecord> = fc.record({
  id: text,
  siteId: text,
  sessionId: text,
  occurredAtMs: fc.integer({ min: 0, max: 7_258_118_400_000 }),
  type: text,
  outcome: text,
  tool: optional,
  durationMs: fc.option(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true })),
  class: optional,
  vendor: optional,
  name: optional,
  purpose: optional,
  robots: optional,
  trust: optional,
  verdict: optional,
  protocol: optional,
  subject: optional,
  page: optional,
  decision: optional,
  ruleId: optional,
  reason: optional,
  judgedBy: optional,
  observedBy: optional,
  evidence: optional,
  network: optional,
  json: fc.json(),
})
const order = fc.constantFrom('any JSON', 'id first', 'session first')
const event = fc.tuple(fields, order).map(([record, format]): EventRecord => {
  const { id, sessionId, json: json } = record
  if (format === 'any JSON') return record
  return {
    ...record,
    json: JSON.stringify(
      format === 'id first' ? { id, sessionId, more: json } : { sessionId, more: json, id },
    ),
  }
})
const scope = fc.record({
  scope: text,
  mapped: fc.integer(),
  modelCalls: fc.nat(),
  leftOut: fc.nat(),
  refused: fc.nat(),
})
const count = fc.record(
  {
    rejected: fc.nat(),
    aheadMaxMs: fc.nat(),
    behindMinMs: fc.option(fc.nat()),
    keptSinceMs: fc.nat(),
    scopes: fc.array(scope, { minLength: 1, maxLength: 3 }),
  },
  { requiredKeys: ['rejected', 'aheadMaxMs', 'behindMinMs', 'keptSinceMs'] },
)
const access: fc.Arbitrary<AccessLines> = fc.record(
  {
    siteId: text,
    source: text,
    path: text,
    format: text,
    from: fc.nat(),
    to: fc.nat(),
    tail: text,
    requests: fc.array(fc.option(fc.nat())),
    counts: fc.array(
      fc.record({
        kind: fc.constantFrom('person', 'asset', 'bot'),
        hourMs: fc.nat(),
        requests: fc.nat(),
        bytes: fc.nat(),
      }),
    ),
    sums: fc.record({ lines: fc.nat(), people: fc.nat(), excluded: fc.nat(), bad: fc.nat() }),
    newestMs: fc.option(fc.nat()),
    isDrain: fc.boolean(),
  },
  {
    requiredKeys: [
      'siteId',
      'source',
      'path',
      'format',
      'from',
      'to',
      'tail',
      'requests',
      'counts',
      'sums',
      'newestMs',
    ],
  },
)
const batch: fc.Arbitrary<EventBatch> = fc.record(
  {
    orgId: text,
    keyId: text,
    door: fc.constantFrom(...doors),
    receivedAtMs: fc.integer({ min: 0 }),
    events: fc.array(event, { maxLength: 5 }),
    count,
    access,
  },
  { requiredKeys: ['orgId', 'keyId', 'door', 'receivedAtMs', 'events'] },
)

const batches = fc.array(batch, { minLength: 1, maxLength: 4 })

/** With the texts of its events as they were sent. */
function whole(arrived: EventBatch): EventBatch {
  const events = arrived.events.map(({ idAt, sessionAt, json: text, ...event }: SentEvent) => {
    const split = { text, idAt: idAt!, sessionAt: sessionAt! }
    return { ...event, json: joinText(split, JSON.stringify(event.id), JSON.stringify(event.sessionId)) }
  })
  return { ...arrived, events }
}

test('any batches arrive as they were sent, however they are divided into parcels', () => {
  fc.assert(
    fc.property(fc.array(batches, { minLength: 1, maxLength: 3 }), fc.nat(), (parcels, id) => {
      const { request, parts } = unpackRequest(packAppend(id, parcels.map(packBatches)))
      expect(request.slice(0, 2)).toEqual([id, 'append'])
      // JSON has no negative zero, and a duration needs none.
      const plain = JSON.parse(JSON.stringify(parcels.flat())) as EventBatch[]
      expect(unpackBatches(request[2], parts).map(whole)).toEqual(plain)
    }),
  )
})

test('a message that lost an event is rejected, not stored in part', () => {
  const sample = fc.sample(batch, { numRuns: 1, seed: 1 })
  const { request, parts } = unpackRequest(packAppend(1, [packBatches(sample)]))
  for (let lost = 0; lost < parts.length; lost++)
    expect(() => unpackBatches(request[2], parts.toSpliced(lost, 1))).toThrow('an append is incomplete')
})

const stored = fc.record({
  seq: fc.nat(),
  occurredAtMs: fc.nat(),
  receivedAtMs: fc.nat(),
  json: fc.json(), // never contains the separator, because JSON escapes it
})

test('a page of events arrives as it was answered, an empty one too, and any other result', () => {
  fc.assert(
    fc.property(fc.array(stored, { maxLength: 5 }), fc.nat(), fc.jsonValue(), (events, id, value) => {
      const page = { events, next: null, ceilingSeq: 7 }
      expect(unpackAnswer(packAnswer(id, 'events.page', page))).toEqual([id, page])
      const plain = JSON.parse(JSON.stringify(value)) as unknown
      expect(unpackAnswer(packAnswer(id, 'events.byId', value))).toEqual([id, plain])
    }),
  )
  expect(unpackAnswer(packAnswer(1, 'audit.append', undefined))).toEqual([1, null])
  const metrics = { total: 2, rowsJson: '[{"type":"a\\u001e"}]' }
  expect(unpackAnswer(packAnswer(1, 'events.metricsText', metrics))).toEqual([1, metrics])
})

test('an answer that lost an event, or its rows, is rejected', () => {
  const events = fc.sample(stored, { numRuns: 2, seed: 1 })
  const message = packAnswer(1, 'events.tail', { events, lastSeq: 9 })
  expect(() => unpackAnswer(message.slice(0, message.lastIndexOf('\u001e')))).toThrow(
    'an answer is incomplete',
  )
  const metrics = packAnswer(1, 'events.metricsText', { total: 1, rowsJson: '[]' })
  expect(() => unpackAnswer(metrics.slice(0, metrics.lastIndexOf('\u001e')))).toThrow(
    'an answer is incomplete',
  )
})

const outcome: fc.Arbitrary<AppendOutcome> = fc.oneof(
  fc.record({
    accepted: fc.nat(),
    deduped: fc.constantFrom(0, 0, 3),
    rejected: fc.constant<RailedEvent[]>([]),
  }),
  fc.record({
    accepted: fc.nat(),
    deduped: fc.nat(),
    rejected: fc.array(
      fc.record({ index: fc.nat(), member: fc.constant('siteId' as const), id: text, json: text }),
    ),
    access: fc.constant({ state: 'known' as const } as AppendResult['access']),
  }) as fc.Arbitrary<AppendResult>,
  fc.record({ kind: fc.constant('internal' as const), message: text }),
)

test('any outcomes of batches arrive as they were, mostly as one number', () => {
  fc.assert(
    fc.property(fc.array(outcome), (outcomes) => {
      const packedText = JSON.stringify(packOutcomes(outcomes))
      expect(unpackOutcomes(JSON.parse(packedText))).toEqual(outcomes)
    }),
  )
  expect(packOutcomes([{ accepted: 100, deduped: 0, rejected: [] }])).toEqual([100])
})
