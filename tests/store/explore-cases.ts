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

export function recordOf(
  { minute, isFirst, metadata: metadataFields, ...fields }: Made,
  n: number,
): EventRecord {
  const id = `e${n}`
  const { sessionId, outcome } = fields
  const decoy = { agent: { metadata: { plan: 'decoy' }, id }, error: 'the text "metadata":{"plan":"fake"}' }
  const whole = isFirst
    ? { metadata: metadataFields, id, sessionId, ...decoy, outcome }
    : { ...decoy, sessionId, id, outcome, metadata: metadataFields }
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
const queries = fc.record({
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
  const dots = [...path].flatMap((char, index) => (char === '.' ? [index] : [])).reverse()
  for (const dot of dots) {
    const member = memberOf(object[path.slice(0, dot)], path.slice(dot + 1))
    if (Object.hasOwn(object, path.slice(0, dot)) && member !== undefined) return member
  }
  return undefined
}

export function memberText(event: EventRecord, path: string): string | null {
  const member = memberOf((JSON.parse(event.json) as { metadata?: unknown }).metadata, path)
  if (member === undefined || member === null || member === '') return null
  return typeof member === 'string' ? member : JSON.stringify(member)
}

const valueOf = (event: EventRecord, group: ExploreQuery['by']): string | null =>
  group === null
    ? 'all'
    : typeof group === 'object'
      ? memberText(event, group.metadata)
      : group === 'key' || group === 'door'
        ? null
        : event[group]

const whole = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null

function tokensOf(tokens: unknown): number | null {
  const [input, output] = ['input', 'output'].map((name) => whole(memberOf(tokens, name)))
  return whole(tokens) ?? (input == null && output == null ? null : (input ?? 0) + (output ?? 0))
}

/** What is measured of an event; null: nothing. */
function measured(event: EventRecord, measure: ExploreMeasure): string | number | null {
  const { metadata: eventMetadata } = JSON.parse(event.json) as {
    metadata?: { [name: string]: unknown } | null
  }
  if (measure === 'events') return 1
  if (measure === 'errors') return event.outcome === 'error' ? 1 : null
  if (measure === 'sessions') return event.sessionId
  if (measure === 'subjects') return event.subject
  if (measure === 'bytes') return whole(eventMetadata?.['bytes'])
  return measure === 'tokens' ? tokensOf(eventMetadata?.['tokens']) : event.durationMs
}

function numberOf(amounts: (string | number)[], measure: ExploreMeasure): number | null {
  if (measure === 'sessions' || measure === 'subjects') return new Set(amounts).size
  const share = { p50: 0.5, p95: 0.95, p99: 0.99 }[measure as string]
  if (share === undefined) return (amounts as number[]).reduce((sum, amount) => sum + amount, 0)
  return (amounts as number[]).toSorted((a, b) => a - b)[Math.ceil(share * amounts.length) - 1] ?? null
}

const takes = (acceptedValues: string[] | undefined, value: string | null) =>
  acceptedValues?.some(
    (pattern) => pattern === (value ?? '') || (pattern === 'agent.*' && value === 'agent.detected'),
  ) ?? true

/** In any string value, ignoring case. */
function hasText(value: unknown, text: string): boolean {
  if (typeof value === 'string') return value.toUpperCase().includes(text.toUpperCase())
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some((inner) => hasText(inner, text))
}

/** Durations within the promised error; everything else equal. */
function isNear(actualValue: number | null, expected: number | null): boolean {
  if (actualValue === null || expected === null) return actualValue === expected
  return Math.abs(actualValue - expected) <= Math.max(0.01, expected * 0.021)
}

interface Numbers {
  events: number
  total: number | null
  steps: (number | null)[]
}

function expectNumbers(actualNumbers: Numbers, events: EventRecord[], query: ExploreQuery): void {
  const { edges, measure } = query
  const amounts = events.map((event) => measured(event, measure)!)
  expect(actualNumbers.events).toBe(events.length)
  const expected = [
    numberOf(amounts, measure),
    ...edges.slice(1).map((end, step) =>
      numberOf(
        amounts.filter(
          (_, index) => events[index]!.occurredAtMs >= edges[step]! && events[index]!.occurredAtMs < end,
        ),
        measure,
      ),
    ),
  ]
  const numbers = [actualNumbers.total, ...actualNumbers.steps]
  if (measure.startsWith('p'))
    expect(numbers.map((number, index) => isNear(number, expected[index]!))).not.toContain(false)
  else expect(numbers).toEqual(expected)
}

function expectExplored(exploration: Explored, matching: EventRecord[], query: ExploreQuery): void {
  const groups = Map.groupBy(matching, (event) => valueOf(event, query.by))
  expect([exploration.complete, exploration.isCut, exploration.expired]).toEqual([true, false, 0])
  expectNumbers(exploration.all, matching, query)
  if (query.by === null) {
    expect([exploration.rows, exploration.missing, exploration.other]).toEqual([[], null, null])
    return
  }
  for (const row of exploration.rows) expectNumbers(row, groups.get(row.value) ?? [], query)
  const lacking = groups.get(null) ?? []
  if (lacking.length > 0) expectNumbers(exploration.missing!, lacking, query)
  else expect(exploration.missing).toBe(null)
  const shown = new Set(exploration.rows.map(({ value }) => value))
  // Sums of zero have no row.
  const sizeOf = (events: EventRecord[]) =>
    query.measure.startsWith('p')
      ? events.length
      : numberOf(
          events.map((event) => measured(event, query.measure)!),
          query.measure,
        )!
  const remainingGroups = [...groups].filter(
    ([value, events]) => value !== null && !shown.has(value) && sizeOf(events) > 0,
  )
  expect(exploration.rows.length).toBe(
    Math.min(query.rowsMax, exploration.rows.length + remainingGroups.length),
  )
  const smallestSize = Math.min(...exploration.rows.map(({ value }) => sizeOf(groups.get(value)!)))
  for (const [, events] of remainingGroups) expect(sizeOf(events)).toBeLessThanOrEqual(smallestSize)
  const otherEvents = matching.filter((event) =>
    remainingGroups.some(([value]) => value === valueOf(event, query.by)),
  )
  expect(exploration.other?.values ?? 0).toBe(remainingGroups.length)
  if (remainingGroups.length > 0) expectNumbers(exploration.other!, otherEvents, query)
}

const defined = <T extends object>(lists: T) =>
  Object.fromEntries(Object.entries(lists).filter(([, list]) => list !== undefined))

export const exploreCases: Cases = {
  async 'any measure by any field or member under any filter: what counting the events comes to'({ store }) {
    const property = fc.asyncProperty(
      fc.array(exploredEvent, { maxLength: 60 }),
      fc.array(queries, { minLength: 4, maxLength: 12 }),
      async (eventFields, questions) => {
        const orgId = makeOrg().id
        const events = eventFields.map(recordOf)
        if (events.length > 0) await store.events.append(makeBatch(orgId, events))
        for (const {
          measure,
          by: group,
          vendors,
          types,
          siteIds,
          outcomes,
          pages,
          plans,
          text,
          ...options
        } of questions) {
          const unit = options.isHourly ? 60 * minuteMs : 47 * minuteMs
          const edges = options.edges.toSorted((a, b) => a - b).map((edge) => noon + edge * unit)
          const query: ExploreQuery = {
            orgId,
            measure,
            by: group,
            edges,
            rowsMax: options.rowsMax,
            budgetMs,
            filter: defined({ vendors, types, siteIds, outcomes, text }),
            ...(pages && { also: [{ by: 'page' as const, values: pages }] }),
            ...(plans && { metadata: [{ path: 'plan', values: plans }] }),
          }
          const matching = events.filter(
            (event) =>
              takes(vendors, event.vendor) &&
              takes(types, event.type) &&
              takes(siteIds, event.siteId) &&
              takes(outcomes, event.outcome) &&
              takes(pages, event.page) &&
              takes(plans, memberText(event, 'plan')) &&
              (text === undefined || hasText(JSON.parse(event.json), text)) &&
              event.occurredAtMs >= edges[0]! &&
              event.occurredAtMs < edges.at(-1)! &&
              measured(event, measure) !== null,
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
    const zeros = { events: 0, total: 0, steps: [0], error: 0 }
    const emptyAnswer = { rows: [], missing: null, other: null, all: zeros, isCut: false, expired: 0 }
    expect(await store.events.explore(query)).toEqual({ ...emptyAnswer, complete: true })
    await store.events.append(makeBatch(orgId, [makeEvent('e1')]))
    expect(await store.events.explore(query)).toEqual({ ...emptyAnswer, complete: false })
    const exploration = await store.events.explore({ ...query, budgetMs })
    expect(exploration.missing).toEqual({ ...zeros, events: 1, total: 1, steps: [1] })
  },

  async 'values beyond the limit count as others, and that is said'({ store, orgId }) {
    const long = 'x'.repeat(2_001)
    const events = [long, long, 'short'].map((plan, n) =>
      makeEvent(`e${n}`, { json: JSON.stringify({ id: `e${n}`, metadata: { plan } }) }),
    )
    await store.events.append(makeBatch(orgId, events))
    const {
      rows,
      other: otherGroup,
      isCut,
    } = await store.events.explore({
      orgId,
      filter: {},
      measure: 'events',
      by: { metadata: 'plan' },
      rowsMax: 10,
      budgetMs,
      edges: [noon - minuteMs, noon + minuteMs],
    })
    expect([rows.map(({ value, total }) => [value, total]), otherGroup?.total, isCut]).toEqual([
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
    const exploration = await store.events.explore(query, { onProgress: (share) => void shares.push(share) })
    expect(exploration.all.total).toBe(1_200)
    expect(shares.length).toBeGreaterThan(0)
    expect(shares.every((share, index) => share >= (shares[index - 1] ?? 0) && share <= 1)).toBe(true)
    const stop = new AbortController()
    const running = store.events.explore(query, { signal: stop.signal, onProgress: () => stop.abort() })
    const waiting = store.events.explore(query, { signal: stop.signal })
    const ended = await Promise.all([running, waiting].map(failure))
    expect(ended.map(({ kind }) => kind)).toEqual(['cancelled', 'cancelled'])
    expect((await failure(store.events.explore(query, { signal: stop.signal }))).kind).toBe('cancelled')
    expect((await store.events.explore(query)).all.total).toBe(1_200)
  },
}
