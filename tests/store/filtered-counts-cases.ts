/** Conformance of counts under any filter: exact for any events, and clear about what retention deleted. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventRecord } from '../../db/contract/store.ts'
import { makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import type { Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const hourMs = 3_600_000

const event = fc.record({
  class: fc.constantFrom(null, 'crawler', 'dom'),
  vendor: fc.constantFrom(null, 'GPTBot', 'ClaudeBot', '(other)'),
  page: fc.constantFrom(null, '/', '/cart'),
  siteId: fc.constantFrom('shop', 'blog'),
  type: fc.constantFrom('agent.detected', 'agent.missed', 'tool.executed'),
  outcome: fc.constantFrom('success', 'error'),
  minute: fc.integer({ min: 0, max: 400 }),
})
const optionalValues = <T>(...values: T[]) =>
  fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }))
const queries = fc.record({
  vendors: optionalValues('GPTBot', '(other)', '', 'nobody'),
  classes: optionalValues('crawler', 'dom', ''),
  outcomes: optionalValues('error', 'success'),
  types: optionalValues('agent.*', 'tool.executed', 'agent.missed'),
  siteIds: optionalValues('shop', 'nowhere'),
  pages: optionalValues('/', '/cart', '', '/never'),
  edges: fc.uniqueArray(fc.integer({ min: 0, max: 420 }), { minLength: 2, maxLength: 6 }),
})

const takes = (acceptedValues: string[] | null, value: string | null) =>
  acceptedValues === null ||
  acceptedValues.some(
    (pattern) => pattern === (value ?? '') || (pattern === 'agent.*' && value?.startsWith('agent.') === true),
  )

const key = (...parts: unknown[]) => JSON.stringify(parts)

function addTo(counts: Map<string, number>, countKey: string, count = 1): void {
  counts.set(countKey, (counts.get(countKey) ?? 0) + count)
}

const budgetMs = 10_000

export const filteredCountsCases: Cases = {
  async 'any filter, any steps: what counting the events here comes to'({ store }) {
    const property = fc.asyncProperty(
      fc.array(event, { maxLength: 60 }),
      queries,
      async (eventFields, query) => {
        const orgId = makeOrg().id
        const events: EventRecord[] = eventFields.map(({ minute, ...fields }, n) =>
          makeEvent(`e${n}`, { ...fields, occurredAtMs: noon + minute * 60_000 }),
        )
        if (events.length > 0) await store.events.append(makeBatch(orgId, events))
        const edges = query.edges.toSorted((a, b) => a - b).map((minute) => noon + minute * 60_000)
        const { vendors, classes, outcomes, types, siteIds, pages } = query
        const truth = { rows: new Map<string, number>(), page: new Map(), pair: new Map() }
        for (const record of events) {
          const startMs = edges.findLast((edge) => edge <= record.occurredAtMs)
          if (startMs === undefined || startMs === edges.at(-1)) continue
          const passes =
            takes(vendors, record.vendor) &&
            takes(classes, record.class) &&
            takes(outcomes, record.outcome) &&
            takes(types, record.type) &&
            takes(siteIds, record.siteId) &&
            takes(pages, record.page)
          if (!passes) continue
          addTo(truth.rows, key(record.type, record.outcome, startMs))
          if (record.page !== null) addTo(truth.page, key(record.page, record.outcome, startMs))
          if (record.type.startsWith('agent.'))
            addTo(truth.pair, key(record.class ?? '', record.vendor ?? '', record.outcome, startMs))
        }
        const filteredCounts = await store.events.filteredCounts({
          orgId,
          edges,
          budgetMs,
          filter: {
            ...(vendors && { vendors }),
            ...(classes && { classes }),
            ...(outcomes && { outcomes }),
            ...(types && { types }),
            ...(siteIds && { siteIds }),
          },
          ...(pages && { also: [{ by: 'page' as const, values: pages }] }),
          breakdowns: [{ by: 'page' }, { by: 'class', and: 'vendor', types: ['agent.*'] }],
        })
        const [page = [], pair = []] = filteredCounts.breakdowns
        const counts = (rows: [string, number][]) => new Map(rows)
        expect([filteredCounts.complete, filteredCounts.expired]).toEqual([true, 0])
        expect(
          counts(filteredCounts.rows.map((row) => [key(row.type, row.outcome, row.startMs), row.count])),
        ).toEqual(truth.rows)
        expect(counts(page.map((row) => [key(row.value, row.outcome, row.startMs), row.count]))).toEqual(
          truth.page,
        )
        expect(
          counts(pair.map((row) => [key(row.value, row.and, row.outcome, row.startMs), row.count])),
        ).toEqual(truth.pair)
      },
    )
    await fc.assert(property, { numRuns: runs(60) })
  },
  async 'without time nothing is told, and what retention took is said'({ store, orgId }) {
    const events = [0, 1, 2, 3].map((n) =>
      makeEvent(`e${n}`, { vendor: n === 3 ? 'ClaudeBot' : 'GPTBot', occurredAtMs: noon + n * hourMs }),
    )
    await store.events.append(makeBatch(orgId, events))
    const query = { orgId, edges: [noon, noon + 10 * hourMs], breakdowns: [], budgetMs }
    const countsOf = (vendor: string, limits: { budgetMs?: number } = {}) =>
      store.events.filteredCounts({ ...query, filter: { vendors: [vendor] }, ...limits })
    expect(await countsOf('GPTBot', { budgetMs: -1 })).toMatchObject({ rows: [], complete: false })
    const sum = async (vendor: string) => {
      const { rows, expired } = await countsOf(vendor)
      return [rows.reduce((total, { count }) => total + count, 0), expired]
    }
    expect([await sum('GPTBot'), await sum('ClaudeBot')]).toEqual([
      [3, 0],
      [1, 0],
    ])
    await store.events.expire({ orgId, receivedBeforeMs: noon + 100 * hourMs })
    expect([await sum('GPTBot'), await sum('nobody')]).toEqual([
      [0, 3],
      [0, 0],
    ])
  },

  async 'the first hour is that of the oldest event, whether its count is folded or not'({ store }) {
    const orgId = makeOrg().id
    expect(await store.retention.firstHour(orgId)).toBe(null)
    const filler = Array.from({ length: 1_000 }, (_, n) => n)
    for (let batch = 0; batch < 20; batch++) {
      const events = filler.map((n) => makeEvent(`filler_${batch}_${n}`, { occurredAtMs: noon + n }))
      await store.events.append(makeBatch(orgId, events)) // enough to fold counts on the way
    }
    expect(await store.retention.firstHour(orgId)).toBe(noon)
    const late = makeEvent('late', { occurredAtMs: noon - 100 * 24 * hourMs + 1 })
    await store.events.append(makeBatch(orgId, [late]))
    expect(await store.retention.firstHour(orgId)).toBe(noon - 100 * 24 * hourMs)
  },
}
