/** Conformance of reading events: every filter against a naive model, and walks that return each event once. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventFilter, EventPosition, EventRecord, Store } from '../../db/contract/store.ts'
import { makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import type { Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

/** Walks to the end in pages of `limit` and returns the texts; `between` runs after each page. */
async function walk(
  store: Store,
  query: { orgId: string; filter: EventFilter; limit: number; bytesMax?: number },
  onPage: () => Promise<void> = async () => {},
): Promise<string[]> {
  const texts: string[] = []
  let position: EventPosition | null = null
  let ceilingSeq: number | null = null
  do {
    const page: Awaited<ReturnType<Store['events']['page']>> = await store.events.page({
      ...query,
      before: position,
      ceilingSeq,
    })
    if (position !== null) expect(page.events.length).toBeGreaterThan(0) // `next` never leads to an empty page
    texts.push(...page.events.map(({ json }) => json))
    position = page.next
    ceilingSeq = page.ceilingSeq
    await onPage()
  } while (position !== null)
  return texts
}

/** The texts of the matching events, newest first by (occurredAt, arrival), computed naively. */
function model(events: EventRecord[], matches: (event: EventRecord) => boolean): string[] {
  return events
    .map((event, arrival) => ({ event, arrival }))
    .filter(({ event }) => matches(event))
    .toSorted((a, b) => b.event.occurredAtMs - a.event.occurredAtMs || b.arrival - a.arrival)
    .map(({ event }) => event.json)
}

const listMembers = {
  outcomes: 'outcome',
  classes: 'class',
  vendors: 'vendor',
  names: 'name',
  purposes: 'purpose',
  robots: 'robots',
  trusts: 'trust',
  verdicts: 'verdict',
  siteIds: 'siteId',
  sessionIds: 'sessionId',
  tools: 'tool',
  protocols: 'protocol',
  decisions: 'decision',
  subjects: 'subject',
} as const

function modelMatches(filter: EventFilter, event: EventRecord): boolean {
  if (filter.sinceMs !== undefined && event.occurredAtMs < filter.sinceMs) return false
  if (filter.untilMs !== undefined && event.occurredAtMs >= filter.untilMs) return false
  const typeFits = (pattern: string) =>
    pattern.endsWith('.*') ? event.type.startsWith(pattern.slice(0, -1)) : event.type === pattern
  if (filter.types !== undefined && filter.types.length > 0 && !filter.types.some(typeFits)) return false
  return (Object.keys(listMembers) as (keyof typeof listMembers)[]).every((list) => {
    const acceptedValues = filter[list]
    if (acceptedValues === undefined || acceptedValues.length === 0) return true
    const value = event[listMembers[list]]
    return acceptedValues.some((candidate) => (candidate === '' ? value === null : value === candidate))
  })
}

const types = ['authz.evaluated', 'authz.policies_set', 'authzx.other', 'auth.identity_presented', 'authz']
const values = ['a', 'A', "o'b", 'x%', 'ü']

/** Events in which every value of every field, and its absence, occurs with every time. */
function variety(count: number): EventRecord[] {
  return Array.from({ length: count }, (_, n) => {
    const pick = (step: number) => values[Math.floor(n / step) % values.length] ?? 'a'
    const optional = (step: number) => (Math.floor(n / step) % 6 === 5 ? null : pick(step))
    return makeEvent(`e${n}`, {
      occurredAtMs: noon + (n % 4),
      type: types[n % types.length] ?? 'authz',
      outcome: pick(1),
      siteId: pick(2),
      sessionId: pick(3),
      class: optional(1),
      vendor: optional(2),
      name: optional(8),
      purpose: optional(9),
      robots: optional(10),
      trust: optional(3),
      verdict: optional(10),
      tool: optional(4),
      protocol: optional(5),
      decision: optional(7),
      subject: optional(11),
    })
  })
}

function singleFilters(): EventFilter[] {
  const lists = (Object.keys(listMembers) as (keyof typeof listMembers)[]).flatMap((list) => [
    { [list]: ['a'] },
    { [list]: ["o'b", 'x%'] },
    { [list]: [''] },
    { [list]: ['', 'ü'] },
    { [list]: ['nowhere'] },
  ])
  const byType = [['authz.*'], ['authz'], ['auth.identity_presented', 'authzx.*'], ['*'], ['.*']]
  const byTime = [{ sinceMs: noon + 1 }, { untilMs: noon + 3 }, { sinceMs: noon + 2, untilMs: noon + 2 }]
  return [{}, { types: [] }, ...lists, ...byType.map((patterns) => ({ types: patterns })), ...byTime]
}

export const filterCases: Cases = {
  async 'every filter alone agrees with the model, in pages and in the tail'({ store, orgId }) {
    const events = variety(240)
    await store.events.append(makeBatch(orgId, events))
    for (const filter of singleFilters()) {
      const matches = (event: EventRecord) => modelMatches(filter, event)
      expect(await walk(store, { orgId, filter, limit: 50 })).toEqual(model(events, matches))
      const tail = await store.events.tail({ orgId, filter, afterSeq: 0, limit: 1_000 })
      expect(tail.events.map(({ json }) => json)).toEqual(events.filter(matches).map(({ json }) => json))
    }
  },
  async 'filters in pairs agree with the model'({ store, orgId }) {
    const events = variety(240)
    await store.events.append(makeBatch(orgId, events))
    const singles = singleFilters()
    const anyFilter = fc.constantFrom(...singles)
    await fc.assert(
      fc.asyncProperty(anyFilter, anyFilter, fc.integer({ min: 1, max: 200 }), async (a, b, limit) => {
        const filter = { ...a, ...b }
        const expected = model(events, (event) => modelMatches(filter, event))
        expect(await walk(store, { orgId, filter, limit })).toEqual(expected)
      }),
      { numRuns: runs(150) },
    )
  },
  async 'pages that end by the length of their texts lose no event and hold at least one'({ store, orgId }) {
    const events = variety(60)
    await store.events.append(makeBatch(orgId, events))
    const [longest = 0] = events.map(({ json }) => Buffer.byteLength(json)).toSorted((a, b) => b - a)
    for (const filter of [{}, { outcomes: [events[0]!.outcome] }, { sinceMs: 0, text: 'e' }]) {
      const expected = await walk(store, { orgId, filter, limit: 50 })
      for (const bytesMax of [1, longest, 3 * longest]) {
        const query = { orgId, filter, limit: 50, bytesMax }
        expect(await walk(store, query)).toEqual(expected)
        const page = await store.events.page({ ...query, before: null, ceilingSeq: null })
        const bytes = page.events.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)
        expect(page.events.length === 1 || bytes <= bytesMax + ('text' in filter ? longest : 0)).toBe(true)
        if (bytesMax === 1) expect(page.events.length).toBe(1)
      }
    }
  },
}

export const walkCases: Cases = {
  async 'a walk gives every event once, whatever arrives meanwhile and however equal the times are'({
    store,
  }) {
    const batch = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { minLength: 1, maxLength: 5 }),
        fc.array(batch, { maxLength: 6 }),
        fc.integer({ min: 1, max: 9 }),
        async (early, late, limit) => {
          const orgId = makeOrg().id
          let madeCount = 0
          const make = (offsets: number[]) =>
            offsets.map((offset) => makeEvent(`e${madeCount++}`, { occurredAtMs: noon + offset }))
          const events: EventRecord[] = []
          for (const offsets of early) {
            const newEvents = make(offsets)
            events.push(...newEvents)
            await store.events.append(makeBatch(orgId, newEvents))
          }
          const arriving = late.map(make)
          const appends: Promise<unknown>[] = []
          const walked = await walk(store, { orgId, filter: {}, limit }, async () => {
            const next = arriving.shift()
            if (next !== undefined) appends.push(store.events.append(makeBatch(orgId, next)))
            if (appends.length % 2 === 0) await Promise.all(appends) // some land before the next page, some during it
          })
          await Promise.all(appends)
          expect(walked).toEqual(model(events, () => true))
        },
      ),
      { numRuns: runs(60) },
    )
  },
  async 'next is null exactly when nothing is left'({ store, orgId }) {
    await store.events.append(makeBatch(orgId, variety(10)))
    const query = { orgId, filter: {}, before: null, ceilingSeq: null }
    expect((await store.events.page({ ...query, limit: 10 })).next).toBeNull()
    const nine = await store.events.page({ ...query, limit: 9 })
    expect(nine.next).not.toBeNull()
    const remainingPage = await store.events.page({
      ...query,
      limit: 9,
      before: nine.next,
      ceilingSeq: nine.ceilingSeq,
    })
    expect(remainingPage.events.length).toBe(1)
    expect(remainingPage.next).toBeNull()
  },
  async 'an empty organization has an empty page and an empty overview'({ store, orgId }) {
    const page = await store.events.page({ orgId, filter: {}, limit: 5, before: null, ceilingSeq: null })
    expect(page).toEqual({ events: [], next: null, ceilingSeq: 0 })
    expect(await store.events.overview(orgId)).toEqual({ total: 0, byType: {} })
    expect(await store.events.lastSeq(orgId)).toBe(0)
  },
}
