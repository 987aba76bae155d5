/** Conformance of Explore: every measure by every kind of field against counting the events here, and its bounds. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import {
  exploreMeasures,
  type Explored,
  type ExploreMeasure,
  type ExploreQuery,
} from '../../db/contract/explore.ts'
import type { EventFieldName } from '../../db/contract/event-fields.ts'
import type { EventRecord } from '../../db/contract/store.ts'
import { makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import { failure, type Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const minuteMs = 60_000
const budgetMs = 60_000

type Value = string | number | boolean | null | Value[] | { [name: string]: Value }

const leaf = fc.constantFrom<Value>(
  'pro',
  'free',
  '',
  'ünï "quoted" \\ text',
  '7',
  'with "metadata":{"plan":"x"} inside',
  7,
  0,
  -1.5,
  1e21,
  true,
  false,
  null,
  [1, 'a'],
  {},
)
const metadata = fc.option(
  fc.record(
    {
      plan: leaf,
      cart: fc.oneof(leaf, fc.record({ size: leaf, 'a.b': leaf }, { requiredKeys: [] })),
      'cart.size': leaf,
      id: fc.constantFrom('e0', 'e1', 'other'),
      metadata: fc.constantFrom<Value>({ plan: 'nested' }, 'plain'),
      bytes: fc.constantFrom<Value>(0, 5, 10, -3, 1.5, '9'),
      tokens: fc.constantFrom<Value>(3, { input: 2 }, { input: 1, output: 4 }, { output: null }, 'many'),
    },
    { requiredKeys: [] },
  ),
)
export const exploredEvent = fc.record({
  vendor: fc.constantFrom(null, 'GPTBot', 'ClaudeBot', 'Bytespider'),
  purpose: fc.constantFrom(null, 'training', 'user'),
  page: fc.constantFrom(null, '/', '/cart'),
  subject: fc.constantFrom(null, 'ada', 'alan'),
  sessionId: fc.constantFrom('s1', 's2', 's3'),
  outcome: fc.constantFrom('success', 'blocked', 'error'),
  siteId: fc.constantFrom('shop', 'blog'),
  type: fc.constantFrom('agent.detected', 'tool.executed'),
  durationMs: fc.constantFrom(null, 0, 3, 250, 8_000),
  minute: fc.integer({ min: -30, max: 300 }),
  isFirst: fc.boolean(), // where the metadata is in the text
  metadata,
})
type Made = Parameters<Parameters<typeof exploredEvent.map>[0]>[0]

export function recordOf({ minute, isFirst, metadata: found, ...fields }: Made, n: number): EventRecord {
  const id = `e${n}`
  const { sessionId, outcome } = fields
  const decoy = { agent: { metadata: { plan: 'decoy' }, id }, error: 'the text "metadata":{"plan":"fake"}' }
  const whole = isFirst
    ? { metadata: found, id, sessionId, ...decoy, outcome }
    : { ...decoy, sessionId, id, outcome, metadata: found }
  return makeEvent(id, { ...fields, occurredAtMs: noon + minute * minuteMs, json: JSON.stringify(whole) })
}

const listOf = (...values: string[]) =>
  fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }), { nil: undefined })
const fieldNames: EventFieldName[] = [
  'vendor',
  'purpose',
  'page',
  'subject',
  'sessionId',
  'outcome',
  'siteId',
  'type',
]
export const paths = ['plan', 'cart', 'cart.size', 'cart.a.b', 'id', 'metadata.plan', 'nothing', 'a..b']
const asked = fc.record({
  measure: fc.constantFrom<ExploreMeasure>(...exploreMeasures),
  by: fc.oneof(
    fc.constant(null),
    fc.constantFrom(...fieldNames),
    fc.constantFrom(...paths.map((path) => ({ metadata: path }))),
  ),
  vendors: listOf('GPTBot', '', 'nobody'),
  types: listOf('agent.*', 'tool.executed'),
  siteIds: listOf('shop', 'nowhere'),
  outcomes: listOf('error', 'success'),
  pages: listOf('/cart', ''),
  plans: listOf('pro', '', '7'),
  text: fc.option(fc.constantFrom('PRO', 'ünï "QUOTED"', 'fake', 'e1', 's2', 'plain', 'metadata'), {
    nil: undefined,
  }),
  isHourly: fc.boolean(),
  edges: fc.uniqueArray(fc.integer({ min: -1, max: 5 }), { minLength: 2, maxLength: 5 }),
  rowsMax: fc.constantFrom(1, 2, 50),
})

/** The first of the names that a path may mean, the longest first. */
function memberOf(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const object = value as { [name: string]: unknown }
  if (Object.hasOwn(object, path)) return object[path]
  const dots = [...path].flatMap((char, at) => (char === '.' ? [at] : [])).reverse()
  for (const dot of dots) {
    const found = memberOf(object[path.slice(0, dot)], path.slice(dot + 1))
    if (Object.hasOwn(object, path.slice(0, dot)) && found !== undefined) return found
  }
  return undefined
}

export function memberText(one: EventRecord, path: string): string | null {
  const found = memberOf((JSON.parse(one.json) as { metadata?: unknown }).metadata, path)
  if (found === undefined || found === null || found === '') return null
  return typeof found === 'string' ? found : JSON.stringify(found)
}

const valueOf = (one: EventRecord, by: ExploreQuery['by']): string | null =>
  by === null
    ? 'all'
    : typeof by === 'object'
      ? memberText(one, by.metadata)
      : by === 'key' || by === 'door'
        ? null
        : one[by]

const whole = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null

function tokensOf(found: unknown): number | null {
  const [input, output] = ['input', 'output'].map((name) => whole(memberOf(found, name)))
  return whole(found) ?? (input == null && output == null ? null : (input ?? 0) + (output ?? 0))
}

/** What is measured of an event; null: nothing. */
function measured(one: EventRecord, measure: ExploreMeasure): string | number | null {
  const { metadata: found } = JSON.parse(one.json) as { metadata?: { [name: string]: unknown } | null }
  if (measure === 'events') return 1
  if (measure === 'errors') return one.outcome === 'error' ? 1 : null
  if (measure === 'sessions') return one.sessionId
  if (measure === 'subjects') return one.subject
  if (measure === 'bytes') return whole(found?.['bytes'])
  return measure === 'tokens' ? tokensOf(found?.['tokens']) : one.durationMs
}

function numberOf(amounts: (string | number)[], measure: ExploreMeasure): number | null {
  if (measure === 'sessions' || measure === 'subjects') return new Set(amounts).size
  const share = { p50: 0.5, p95: 0.95, p99: 0.99 }[measure as string]
  if (share === undefined) return (amounts as number[]).reduce((sum, one) => sum + one, 0)
  return (amounts as number[]).toSorted((a, b) => a - b)[Math.ceil(share * amounts.length) - 1] ?? null
}

const takes = (wanted: string[] | undefined, value: string | null) =>
  wanted?.some((one) => one === (value ?? '') || (one === 'agent.*' && value === 'agent.detected')) ?? true

/** In any string value, ignoring case. */
function hasText(value: unknown, text: string): boolean {
  if (typeof value === 'string') return value.toUpperCase().includes(text.toUpperCase())
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some((inner) => hasText(inner, text))
}

/** Durations within the promised error; everything else equal. */
function isNear(found: number | null, expected: number | null): boolean {
  if (found === null || expected === null) return found === expected
  return Math.abs(found - expected) <= Math.max(0.01, expected * 0.021)
}

interface Numbers {
  events: number
  total: number | null
  steps: (number | null)[]
}

function expectNumbers(found: Numbers, events: EventRecord[], query: ExploreQuery): void {
  const { edges, measure } = query
  const amounts = events.map((one) => measured(one, measure)!)
  expect(found.events).toBe(events.length)
  const expected = [
    numberOf(amounts, measure),
    ...edges.slice(1).map((end, step) =>
      numberOf(
        amounts.filter((_, at) => events[at]!.occurredAtMs >= edges[step]! && events[at]!.occurredAtMs < end),
        measure,
      ),
    ),
  ]
  const numbers = [found.total, ...found.steps]
  if (measure.startsWith('p'))
    expect(numbers.map((one, at) => isNear(one, expected[at]!))).not.toContain(false)
  else expect(numbers).toEqual(expected)
}

function expectExplored(found: Explored, matching: EventRecord[], query: ExploreQuery): void {
  const groups = Map.groupBy(matching, (one) => valueOf(one, query.by))
  expect([found.complete, found.isCut, found.expired]).toEqual([true, false, 0])
  expectNumbers(found.all, matching, query)
  if (query.by === null) {
    expect([found.rows, found.missing, found.other]).toEqual([[], null, null])
    return
  }
  for (const row of found.rows) expectNumbers(row, groups.get(row.value) ?? [], query)
  const lacking = groups.get(null) ?? []
  if (lacking.length > 0) expectNumbers(found.missing!, lacking, query)
  else expect(found.missing).toBe(null)
  const shown = new Set(found.rows.map(({ value }) => value))
  // Sums of zero have no row.
  const sizeOf = (events: EventRecord[]) =>
    query.measure.startsWith('p')
      ? events.length
      : numberOf(
          events.map((one) => measured(one, query.measure)!),
          query.measure,
        )!
  const left = [...groups].filter(
    ([value, events]) => value !== null && !shown.has(value) && sizeOf(events) > 0,
  )
  expect(found.rows.length).toBe(Math.min(query.rowsMax, found.rows.length + left.length))
  const least = Math.min(...found.rows.map(({ value }) => sizeOf(groups.get(value)!)))
  for (const [, events] of left) expect(sizeOf(events)).toBeLessThanOrEqual(least)
  const others = matching.filter((one) => left.some(([value]) => value === valueOf(one, query.by)))
  expect(found.other?.values ?? 0).toBe(left.length)
  if (left.length > 0) expectNumbers(found.other!, others, query)
}

const defined = <T extends object>(lists: T) =>
  Object.fromEntries(Object.entries(lists).filter(([, list]) => list !== undefined))

export const exploreCases: Cases = {
  async 'any measure by any field or member under any filter: what counting the events comes to'({ store }) {
    const property = fc.asyncProperty(
      fc.array(exploredEvent, { maxLength: 60 }),
      fc.array(asked, { minLength: 4, maxLength: 12 }),
      async (made, questions) => {
        const orgId = makeOrg().id
        const events = made.map(recordOf)
        if (events.length > 0) await store.events.append(makeBatch(orgId, events))
        for (const {
          measure,
          by,
          vendors,
          types,
          siteIds,
          outcomes,
          pages,
          plans,
          text,
          ...more
        } of questions) {
          const unit = more.isHourly ? 60 * minuteMs : 47 * minuteMs
          const edges = more.edges.toSorted((a, b) => a - b).map((at) => noon + at * unit)
          const query: ExploreQuery = {
            orgId,
            measure,
            by,
            edges,
            rowsMax: more.rowsMax,
            budgetMs,
            filter: defined({ vendors, types, siteIds, outcomes, text }),
            ...(pages && { also: [{ by: 'page' as const, values: pages }] }),
            ...(plans && { metadata: [{ path: 'plan', values: plans }] }),
          }
          const matching = events.filter(
            (one) =>
              takes(vendors, one.vendor) &&
              takes(types, one.type) &&
              takes(siteIds, one.siteId) &&
              takes(outcomes, one.outcome) &&
              takes(pages, one.page) &&
              takes(plans, memberText(one, 'plan')) &&
              (text === undefined || hasText(JSON.parse(one.json), text)) &&
              one.occurredAtMs >= edges[0]! &&
              one.occurredAtMs < edges.at(-1)! &&
              measured(one, measure) !== null,
          )
          expectExplored(await store.events.explore(query), matching, query)
        }
      },
    )
    await fc.assert(property, { numRuns: runs(40) })
  },

  async 'without time there are no numbers, and an organization without events has none'({ store, orgId }) {
    const query: ExploreQuery = {
      orgId,
      filter: {},
      measure: 'events',
      by: { metadata: 'plan' },
      rowsMax: 10,
      budgetMs: -1,
      edges: [noon - minuteMs, noon + minuteMs],
    }
    const none = { events: 0, total: 0, steps: [0], error: 0 }
    const nothing = { rows: [], missing: null, other: null, all: none, isCut: false, expired: 0 }
    expect(await store.events.explore(query)).toEqual({ ...nothing, complete: true })
    await store.events.append(makeBatch(orgId, [makeEvent('e1')]))
    expect(await store.events.explore(query)).toEqual({ ...nothing, complete: false })
    const found = await store.events.explore({ ...query, budgetMs })
    expect(found.missing).toEqual({ ...none, events: 1, total: 1, steps: [1] })
  },

  async 'values beyond the limit count as others, and that is said'({ store, orgId }) {
    const long = 'x'.repeat(2_001)
    const events = [long, long, 'short'].map((plan, n) =>
      makeEvent(`e${n}`, { json: JSON.stringify({ id: `e${n}`, metadata: { plan } }) }),
    )
    await store.events.append(makeBatch(orgId, events))
    const { rows, other, isCut } = await store.events.explore({
      orgId,
      filter: {},
      measure: 'events',
      by: { metadata: 'plan' },
      rowsMax: 10,
      budgetMs,
      edges: [noon - minuteMs, noon + minuteMs],
    })
    expect([rows.map(({ value, total }) => [value, total]), other?.total, isCut]).toEqual([
      [['short', 1]],
      2,
      true,
    ])
  },

  async 'reports its progress, and ends when the caller asks'({ store, orgId }) {
    const pad = 'y'.repeat(20_000)
    for (let batch = 0; batch < 12; batch++) {
      const events = Array.from({ length: 100 }, (_, n) => {
        const id = `e${batch}_${n}`
        return makeEvent(id, { json: JSON.stringify({ id, metadata: { plan: `p${n % 3}`, pad } }) })
      })
      await store.events.append(makeBatch(orgId, events))
    }
    const query: ExploreQuery = {
      orgId,
      filter: {},
      measure: 'events',
      by: { metadata: 'plan' },
      rowsMax: 10,
      budgetMs,
      edges: [noon - minuteMs, noon + minuteMs],
    }
    const shares: number[] = []
    const found = await store.events.explore(query, { onProgress: (share) => void shares.push(share) })
    expect(found.all.total).toBe(1_200)
    expect(shares.length).toBeGreaterThan(0)
    expect(shares.every((share, at) => share >= (shares[at - 1] ?? 0) && share <= 1)).toBe(true)
    const stop = new AbortController()
    const running = store.events.explore(query, { signal: stop.signal, onProgress: () => stop.abort() })
    const waiting = store.events.explore(query, { signal: stop.signal })
    const ended = await Promise.all([running, waiting].map(failure))
    expect(ended.map(({ kind }) => kind)).toEqual(['cancelled', 'cancelled'])
    expect((await failure(store.events.explore(query, { signal: stop.signal }))).kind).toBe('cancelled')
    expect((await store.events.explore(query)).all.total).toBe(1_200)
  },
}
