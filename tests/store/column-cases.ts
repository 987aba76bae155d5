/** Conformance of the queries over columns: histograms, newest values and new values, against naive models. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventRecord, TopField } from '../../db/contract/store.ts'
import { makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import type { Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const minuteMs = 60_000
const budgetMs = 60_000

const event = fc.record({
  vendor: fc.constantFrom(null, 'GPTBot', 'ClaudeBot', 'Bytespider'),
  page: fc.constantFrom(null, '/', '/cart'),
  subject: fc.constantFrom(null, 'ada', 'alan'),
  sessionId: fc.constantFrom('s1', 's2', 's3'),
  outcome: fc.constantFrom('success', 'blocked', 'error'),
  siteId: fc.constantFrom('shop', 'blog'),
  error: fc.constantFrom(null, 'expired', 'no signature'),
  userAgent: fc.constantFrom(null, '', 'curl/8.1', 'Mozilla/5.0'),
  evidence: fc.constantFrom(undefined, null, '', { method: 'address', networks: 17 }),
  metadata: fc.constantFrom(
    undefined,
    null,
    {},
    { status: 200, bytes: 7 },
    { status: 404, bytes: -1 },
    { status: '200' },
  ),
  minute: fc.integer({ min: 0, max: 300 }),
})
type Made = Parameters<Parameters<typeof event.map>[0]>[0]

function recordOf({ minute, error, userAgent, evidence, metadata, ...fields }: Made, n: number): EventRecord {
  const id = `e${n}`
  const agent = { userAgent, evidence, note: `a text of ${fields.outcome}` }
  const json = JSON.stringify({ id, agent, error, metadata })
  return makeEvent(id, { ...fields, occurredAtMs: noon + minute * minuteMs, json })
}

const listOf = (...values: string[]) =>
  fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }), { nil: undefined })
const filterMade = fc.record({
  vendors: listOf('GPTBot', 'ClaudeBot', '', 'nobody'),
  siteIds: listOf('shop', 'blog'),
  subjects: listOf('ada', 'nobody', ''),
})

function matches(filter: { [list: string]: string[] | undefined }, record: EventRecord): boolean {
  const has = (list: string[] | undefined, value: string | null) => list?.includes(value ?? '') ?? true
  return (
    has(filter['vendors'], record.vendor) &&
    has(filter['siteIds'], record.siteId) &&
    has(filter['subjects'], record.subject)
  )
}

const defined = <T extends object>(filter: T) =>
  Object.fromEntries(Object.entries(filter).filter(([, list]) => list !== undefined))

function countBy(keys: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

export const histogramCases: Cases = {
  async 'counts what a naive walk counts, under any filter, time range, steps and text'({ store }) {
    const text = fc.option(fc.constantFrom('TEXT of bl', 'curl', 'nowhere'), { nil: undefined })
    const edgesMade = fc.uniqueArray(fc.integer({ min: -10, max: 320 }), { minLength: 2, maxLength: 6 })
    const rangeMade = fc.record({ sinceMs: fc.integer({ min: 0, max: 300 }) })
    const property = fc.asyncProperty(
      fc.array(event, { maxLength: 60 }),
      filterMade,
      text,
      edgesMade,
      fc.option(rangeMade),
      async (eventFields, filter, part, minutes, range) => {
        const orgId = makeOrg().id
        const events = eventFields.map(recordOf)
        if (events.length > 0) await store.events.append(makeBatch(orgId, events))
        const edges = minutes.toSorted((a, b) => a - b).map((minute) => noon + minute * minuteMs)
        const sinceMs = range === null ? edges[0]! : noon + range.sinceMs * minuteMs
        const histogram = await store.events.histogram({
          orgId,
          edges,
          budgetMs,
          filter: { ...defined({ ...filter, text: part }), ...(range && { sinceMs }) },
        })
        const expected = events
          .filter((record) => matches(filter, record) && record.occurredAtMs >= Math.max(sinceMs, edges[0]!))
          .filter((record) => record.occurredAtMs < edges.at(-1)!)
          .filter(({ json }) => part === undefined || json.toUpperCase().includes(part.toUpperCase()))
          .map((record) => `${record.outcome} ${edges.findLast((edge) => edge <= record.occurredAtMs)!}`)
        expect(histogram.exactSinceMs).toBe(edges[0]!)
        expect(new Map(histogram.rows.map((row) => [`${row.outcome} ${row.startMs}`, row.count]))).toEqual(
          countBy(expected),
        )
      },
    )
    await fc.assert(property, { numRuns: runs(60) })
  },

  async 'without a budget nothing is counted, and the whole range is named as not exact'({ store, orgId }) {
    const edges = [noon - minuteMs, noon + minuteMs]
    await store.events.append(makeBatch(orgId, [makeEvent('e1')]))
    const query = { orgId, filter: {}, edges }
    expect(await store.events.histogram({ ...query, budgetMs: -1 })).toEqual({
      rows: [],
      exactSinceMs: noon + 1,
    })
    expect(await store.events.histogram({ ...query, budgetMs })).toEqual({
      rows: [{ outcome: 'success', startMs: noon - minuteMs, count: 1 }],
      exactSinceMs: noon - minuteMs,
    })
  },
}

interface ParsedEvent {
  agent: { userAgent: string; evidence?: unknown }
  error: string
  metadata?: { status?: unknown; bytes?: number } | null
}

const bytesOf = (record: EventRecord): number =>
  Math.max(0, (JSON.parse(record.json) as ParsedEvent).metadata?.bytes ?? 0)

const fieldOf = (record: EventRecord, field: TopField): string | null => {
  if (field === 'key' || field === 'door') return null
  if (field !== 'userAgent' && field !== 'error' && field !== 'evidence' && field !== 'status')
    return record[field]
  const { agent, error, metadata } = JSON.parse(record.json) as ParsedEvent
  if (field === 'status') return typeof metadata?.status === 'number' ? `${metadata.status}` : null
  if (field === 'evidence') return agent.evidence == null ? null : JSON.stringify(agent.evidence)
  return (field === 'error' ? error : agent.userAgent) || null
}

const groupsMade = fc.array(
  fc.uniqueArray(
    fc.constantFrom<TopField>(
      'vendor',
      'page',
      'subject',
      'sessionId',
      'outcome',
      'error',
      'userAgent',
      'evidence',
      'status',
    ),
    { minLength: 1, maxLength: 3 },
  ),
  { minLength: 1, maxLength: 3 },
)

export const topCases: Cases = {
  async 'groups the newest matching events as a naive model does, by any fields'({ store }) {
    const eventsMax = fc.integer({ min: 1, max: 70 })
    const property = fc.asyncProperty(
      fc.array(event, { maxLength: 60 }),
      filterMade,
      groupsMade,
      eventsMax,
      fc.boolean(),
      async (eventFields, filter, fields, max, onlyCart) => {
        const orgId = makeOrg().id
        const events = eventFields.map(recordOf)
        if (events.length > 0) await store.events.append(makeBatch(orgId, events))
        const matching = events
          .filter((record) => matches(filter, record) && (!onlyCart || record.page === '/cart'))
          .map((record, seq) => ({ one: record, seq }))
          .sort((a, b) => b.one.occurredAtMs - a.one.occurredAtMs || b.seq - a.seq)
          .map(({ one: record }) => record)
        const newest = matching.slice(0, max)
        const top = await store.events.top({
          orgId,
          eventsMax: max,
          budgetMs,
          filter: defined(filter),
          ...(onlyCart && { also: [{ by: 'page' as const, values: ['/cart'] }] }),
          groups: fields.map((groupFields) => ({
            by: groupFields,
            max: 1_000,
            ...(onlyCart && { sum: 'bytes' as const }),
          })),
        })
        expect([top.events, top.complete]).toEqual([newest.length, matching.length <= max])
        expect([top.newestMs, top.oldestMs]).toEqual([
          newest[0]?.occurredAtMs ?? null,
          newest.at(-1)?.occurredAtMs ?? null,
        ])
        for (const [index, groupFields] of fields.entries()) {
          const keyOf = (record: EventRecord) =>
            JSON.stringify(groupFields.map((field) => fieldOf(record, field)))
          const { rows, distinct } = top.groups[index]!
          const counts = countBy(newest.map(keyOf))
          expect(distinct).toBe(counts.size)
          expect(new Map(rows.map(({ values, count }) => [JSON.stringify(values), count]))).toEqual(counts)
          expect(rows.map(({ count }) => count)).toEqual([...counts.values()].sort((a, b) => b - a))
          for (const { values, lastMs, sum } of rows) {
            const groupEvents = newest.filter((record) => keyOf(record) === JSON.stringify(values))
            expect(sum).toBe(
              onlyCart ? groupEvents.reduce((total, record) => total + bytesOf(record), 0) : undefined,
            )
            const last = newest.find((record) => keyOf(record) === JSON.stringify(values))
            expect(lastMs).toBe(last!.occurredAtMs)
          }
        }
      },
    )
    await fc.assert(property, { numRuns: runs(60) })
  },

  async 'returns at most the groups asked for, the most frequent first'({ store, orgId }) {
    const vendors = ['a', 'b', 'b', 'c', 'c', 'c']
    await store.events.append(
      makeBatch(
        orgId,
        vendors.map((vendor, n) => makeEvent(`e${n}`, { vendor })),
      ),
    )
    const query = { orgId, filter: {}, eventsMax: 100, budgetMs }
    const { groups } = await store.events.top({ ...query, groups: [{ by: ['vendor'], max: 2 }] })
    expect(groups).toEqual([
      {
        distinct: 3,
        rows: [
          { values: ['c'], count: 3, lastMs: noon },
          { values: ['b'], count: 2, lastMs: noon },
        ],
      },
    ])
  },

  async 'answers an organization without events'({ store, orgId }) {
    const query = {
      orgId,
      filter: {},
      eventsMax: 10,
      budgetMs,
      groups: [{ by: ['vendor' as const], max: 5 }],
    }
    expect(await store.events.top(query)).toEqual({
      events: 0,
      complete: true,
      newestMs: null,
      oldestMs: null,
      groups: [{ distinct: 0, rows: [] }],
    })
  },
}

export const newValuesCases: Cases = {
  async 'finds the values that no earlier arrival had, in any range, whoever sent them'({ store }) {
    const keyed = fc.record({ made: event, isHistory: fc.boolean() })
    const property = fc.asyncProperty(
      fc.array(keyed, { maxLength: 40 }),
      fc.nat(40),
      fc.nat(40),
      fc.constantFrom('vendor', 'subject'),
      async (arrivals, from, length, field) => {
        const orgId = makeOrg().id
        const events = arrivals.map(({ made: eventFields }, n) => recordOf(eventFields, n))
        for (const [n, record] of events.entries()) {
          const keyId = arrivals[n]!.isHistory ? 'key_history' : 'key_test'
          await store.events.append({ ...makeBatch(orgId, [record]), keyId })
        }
        const knownValues = new Set<string>()
        const expected: { value: string; seq: number }[] = []
        for (const [n, record] of events.entries()) {
          const seq = n + 1
          const value = field === 'vendor' ? record.vendor : record.subject
          if (value === null || knownValues.has(value) || seq > from + length) continue
          knownValues.add(value)
          if (seq > from && !arrivals[n]!.isHistory) expected.push({ value, seq })
        }
        const { values } = await store.events.newValues({
          orgId,
          field: field as 'vendor',
          max: 100,
          arrivals: { afterSeq: from, untilSeq: from + length, exceptKeys: ['key_history'] },
        })
        expect(values.map(({ value, seq }) => ({ value, seq }))).toEqual(expected)
      },
    )
    await fc.assert(property, { numRuns: runs(40) })
  },

  async 'stops at the number asked for, and forgets values whose events retention deleted'({ store, orgId }) {
    const events = ['a', 'b', 'c'].map((vendor, n) => makeEvent(`e${n}`, { vendor }))
    await store.events.append(makeBatch(orgId, events))
    const arrivals = { afterSeq: 0, untilSeq: 3 }
    const query = { orgId, field: 'vendor' as const, arrivals }
    const first = await store.events.newValues({ ...query, max: 2 })
    expect(first.values.map(({ value }) => value)).toEqual(['a', 'b'])
    expect(first.values[0]!.receivedAtMs).toBe(noon + 1)
    await store.events.expire({ orgId, receivedBeforeMs: noon + 100 * minuteMs })
    await store.events.append(makeBatch(orgId, [makeEvent('e9', { vendor: 'a' })]))
    const later = { ...query, arrivals: { afterSeq: 3, untilSeq: 4 }, max: 10 }
    expect((await store.events.newValues(later)).values.map(({ value }) => value)).toEqual(['a'])
  },
}
