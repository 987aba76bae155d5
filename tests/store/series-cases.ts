/** Conformance of measures over time: exact for any filter, from rollups and from columns, and within their budget. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventRecord, SeriesGroup, SeriesQuery } from '../../db/contract/store.ts'
import { makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import type { Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const hourMs = 3_600_000
const budgetMs = 10_000

const event = fc.record({
  vendor: fc.constantFrom(null, 'OpenAI', 'Anthropic'),
  name: fc.constantFrom(null, 'GPTBot', 'ClaudeBot'),
  tool: fc.constantFrom(null, 'pay', 'search'),
  siteId: fc.constantFrom('shop', 'blog'),
  type: fc.constantFrom('agent.detected', 'agent.requested', 'tool.executed'),
  outcome: fc.constantFrom('success', 'error', 'blocked'),
  sessionId: fc.constantFrom('s1', 's2', 's3'),
  durationMs: fc.constantFrom(null, 1, 100),
  minute: fc.integer({ min: 0, max: 400 }),
  judged: fc.constantFrom(
    { verdict: null, judgedBy: null, observedBy: null },
    ...['verified', 'contradicted', 'trusted'].map((verdict) => ({
      verdict,
      judgedBy: 'sender' as const,
      observedBy: null,
    })),
    ...['verified', 'contradicted'].map((verdict) => ({
      verdict,
      judgedBy: 'appliance' as const,
      observedBy: 'appliance',
    })),
    { verdict: 'verified', judgedBy: null, observedBy: null }, // stored before judges were recorded
  ),
})
const optionalValues = <T>(...values: T[]) =>
  fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }))
const filters = fc.record({
  vendors: optionalValues('OpenAI', '', 'nobody'),
  names: optionalValues('GPTBot', 'ClaudeBot'),
  tools: optionalValues('pay', ''),
  outcomes: optionalValues('error', 'blocked'),
  types: optionalValues('agent.*', 'tool.executed'),
  siteIds: optionalValues('shop'),
  verdicts: optionalValues('verified', 'contradicted', 'trusted'),
  judges: optionalValues('appliance', 'sender', 'unknown'),
})
type Wanted = { [list: string]: string[] | null }
const queryArbitrary = fc.record({
  filter: filters,
  part: fc.option(filters),
  by: fc.constantFrom<SeriesQuery['by']>(null, 'vendor', 'name', 'tool', 'siteId', 'type', 'outcome'),
  value: fc.constantFrom<SeriesQuery['value'] | null>(null, null, 'sessions', 'tokens'),
  hourly: fc.boolean(),
  edges: fc.uniqueArray(fc.integer({ min: 0, max: 420 }), { minLength: 2, maxLength: 6 }),
})

const fieldOf: { [list: string]: keyof EventRecord } = {
  vendors: 'vendor',
  names: 'name',
  tools: 'tool',
  outcomes: 'outcome',
  types: 'type',
  siteIds: 'siteId',
  verdicts: 'verdict',
  judges: 'judgedBy',
}

function passes(record: EventRecord, criteria: Wanted): boolean {
  return Object.entries(criteria).every(([list, values]) => {
    const isUnknown = list === 'judges' && record.verdict !== null && record.judgedBy === null
    const value = isUnknown ? 'unknown' : String(record[fieldOf[list]!] ?? '')
    return (
      values === null ||
      values.some((text) => text === value || (text === 'agent.*' && value.startsWith('agent.')))
    )
  })
}

const only = (criteria: Wanted) =>
  Object.fromEntries(
    Object.entries(criteria).filter(([, values]) => values !== null),
  ) as SeriesQuery['filter']

export const seriesCases: Cases = {
  async 'any measure, filter, group and steps: what counting the events here comes to'({ store }) {
    const property = fc.asyncProperty(
      fc.array(event, { maxLength: 50 }),
      queryArbitrary,
      async (eventFields, query) => {
        const orgId = makeOrg().id
        const events = eventFields.map(({ minute, judged, ...fields }, n) => {
          const eventMembers = { ...fields, ...judged }
          const json = JSON.stringify({
            id: `e${n}`,
            sessionId: eventMembers.sessionId,
            metadata: { tokens: { input: n, output: 1 } },
          })
          return makeEvent(`e${n}`, { ...eventMembers, occurredAtMs: noon + minute * 60_000, json })
        })
        if (events.length > 0) await store.events.append(makeBatch(orgId, events))
        const sorted = query.edges.toSorted((a, b) => a - b)
        const edges = sorted.map((minute) => noon + (query.hourly ? minute * 60 : minute) * 60_000)
        const truth = new Map<
          string,
          { events: number[]; part: number[]; values: (Set<string> | number)[] }
        >()
        const steps = edges.length - 1
        for (const [n, record] of events.entries()) {
          const step = edges.findLastIndex((edge) => edge <= record.occurredAtMs)
          const { by: field } = query
          const group = field === null ? '' : field === 'key' || field === 'door' ? null : record[field]
          if (step < 0 || step >= steps || group === null || !passes(record, query.filter)) continue
          const zeros = () => Array.from({ length: steps }, () => 0)
          const values = Array.from({ length: steps }, () =>
            query.value === 'sessions' ? new Set<string>() : 0,
          )
          const groupCounts = truth.get(group) ?? { events: zeros(), part: zeros(), values }
          truth.set(group, groupCounts)
          groupCounts.events[step]!++
          if (query.part && passes(record, query.part)) groupCounts.part[step]!++
          const value = groupCounts.values[step]!
          if (typeof value === 'number') groupCounts.values[step] = value + n + 1
          else value.add(record.sessionId)
        }
        const series = await store.events.series({
          orgId,
          edges,
          budgetMs,
          by: query.by,
          groupsMax: 100,
          filter: only(query.filter),
          ...(query.part && { part: { filter: only(query.part) } }),
          ...(query.value && { value: query.value }),
        })
        expect(series.sinceMs).toBeLessThanOrEqual(edges[0]!)
        const expected = [...truth].map(([group, { events, part, values }]): SeriesGroup => ({
          group,
          events,
          part: query.part ? part : [],
          values: query.value ? values.map((value) => (typeof value === 'number' ? value : value.size)) : [],
        }))
        const byName = (groups: SeriesGroup[]) => groups.toSorted((a, b) => (a.group! < b.group! ? -1 : 1))
        const namedGroups =
          query.by === null ? series.groups.filter(({ events }) => events.some((n) => n > 0)) : series.groups
        expect(byName(namedGroups)).toEqual(byName(expected))
      },
    )
    await fc.assert(property, { numRuns: runs(80) })
  },

  async 'verdicts by judge are counted from rollups'({ store }) {
    const orgId = makeOrg().id
    const judges = ['appliance', 'sender', null] as const
    const events = Array.from({ length: 90 }, (_, n) =>
      makeEvent(`e${n}`, {
        verdict: n % 2 === 0 ? 'verified' : 'contradicted',
        judgedBy: judges[n % 3]!,
        occurredAtMs: noon + n * 60_000,
        type: n % 5 === 0 ? 'agent.detected' : 'agent.requested',
      }),
    )
    await store.events.append(makeBatch(orgId, events))
    const types = ['agent.requested']
    const countOf = async (judgesOf: string[], range: object) => {
      const edges = [noon, noon + 2 * hourMs]
      const query = { orgId, edges, budgetMs, by: null, groupsMax: 1, filter: { types } }
      const part = { filter: { verdicts: ['verified'], judges: judgesOf } }
      const { groups, rollups } = await store.events.series({ ...query, part, ...range })
      return { rollups, part: groups[0]!.part[0] }
    }
    for (const judgesOf of [['appliance', 'unknown'], ['sender'], ['unknown'], ['appliance', 'sender']]) {
      const truth = events.filter(
        (record) =>
          types.includes(record.type) &&
          record.verdict === 'verified' &&
          judgesOf.includes(record.judgedBy ?? 'unknown'),
      )
      expect([judgesOf, await countOf(judgesOf, {})]).toEqual([
        judgesOf,
        { rollups: true, part: truth.length },
      ])
      // Another clause that no rollup combines: the same from columns.
      const also = [{ by: 'page', values: [''] }]
      expect(await countOf(judgesOf, { also })).toEqual({ rollups: false, part: truth.length })
    }
  },

  async 'durations of tools are the same from rollups and from columns'({ store }) {
    const orgId = makeOrg().id
    const events = Array.from({ length: 200 }, (_, n) =>
      makeEvent(`e${n}`, { tool: n % 2 ? 'pay' : 'search', durationMs: n, occurredAtMs: noon + n * 60_000 }),
    )
    await store.events.append(makeBatch(orgId, events))
    const query = { orgId, filter: {}, value: 'p95' as const, by: 'tool' as const, groupsMax: 9, budgetMs }
    const whole = await store.events.series({ ...query, edges: [noon, noon + 4 * hourMs] })
    expect([whole.rollups, whole.groups.map(({ group }) => group).sort()]).toEqual([true, ['pay', 'search']])
    for (const {
      events: [count],
      values: [p95],
    } of whole.groups) {
      expect(count).toBe(100)
      expect(Math.abs(p95! - 189)).toBeLessThan(6)
    }
    const also = [{ by: 'page' as const, values: [''] }]
    const columns = await store.events.series({ ...query, also, edges: [noon, noon + 4 * hourMs] })
    expect([columns.rollups, columns.groups]).toEqual([false, whole.groups])
  },

  async 'counts that are folded into rollups are those of the columns'({ store }) {
    const orgId = makeOrg().id
    const pick = <T>(values: T[], n: number): T => values[n % values.length]!
    for (let batch = 0; batch < 18; batch++) {
      const events = Array.from({ length: 1_000 }, (_, index) => {
        const n = batch * 1_000 + index
        const fields = {
          vendor: pick(['OpenAI', 'Anthropic', null], n),
          name: pick(['GPTBot', null, 'ClaudeBot', null, null], n),
          tool: pick(['pay', null, 'search'], n >> 2),
          outcome: pick(['success', 'error', 'blocked'], n >> 1),
          durationMs: n % 50,
        }
        return makeEvent(`e${n}`, { ...fields, occurredAtMs: noon + n * 1_000 })
      })
      await store.events.append(makeBatch(orgId, events))
    }
    const edges = Array.from({ length: 12 }, (_, n) => noon + n * 0.5 * hourMs)
    const vendors = { vendors: ['OpenAI'] }
    const queries: Partial<SeriesQuery>[] = [
      { filter: { outcomes: ['error'] } },
      { filter: vendors, part: { filter: { outcomes: ['blocked'] } } },
      { by: 'vendor', part: { filter: { outcomes: ['blocked'] } } },
      { by: 'name', filter: vendors },
      { by: 'outcome', filter: { names: ['GPTBot'] }, part: { filter: vendors } },
      { by: 'tool', value: 'p95', filter: { outcomes: ['error', 'success'] } },
    ]
    for (const query of queries) {
      const whole = { orgId, filter: {}, by: null, groupsMax: 9, budgetMs, edges, ...query }
      const folded = await store.events.series({ ...whole, edges: edges.filter((_, n) => n % 2 === 0) })
      const columns = await store.events.series({ ...whole, also: [{ by: 'page', values: [''] }], edges })
      expect([folded.rollups, columns.rollups]).toEqual([true, false])
      const halved = (numbers: number[]) =>
        numbers.filter((_, n) => n % 2 === 0).map((n, index) => n + numbers[index * 2 + 1]!)
      const inHours = columns.groups.map(({ group, events, part }) => [
        group,
        halved(events.slice(0, 10)),
        halved(part.slice(0, 10)),
      ])
      expect(folded.groups.map(({ group, events, part }) => [group, events, part])).toEqual(inHours)
      const mixed = await store.events.series({ ...whole, edges: [edges[1]!, edges[8]!] })
      const sum = (numbers: number[]) => numbers.slice(1, 8).reduce((a, b) => a + b, 0)
      const sums = columns.groups.map(({ group, events }) => [group, sum(events)])
      expect([mixed.rollups, mixed.groups.map(({ group, events: [n] }) => [group, n])]).toEqual([true, sums])
    }
  },

  async 'groups beyond the maximum and steps beyond the budget are left out, and the answer says so'({
    store,
  }) {
    const orgId = makeOrg().id
    const events = Array.from({ length: 60 }, (_, n) =>
      makeEvent(`e${n}`, { vendor: `v${n % 10}`, tool: 't', occurredAtMs: noon + n * 60_000 }),
    )
    await store.events.append(makeBatch(orgId, events))
    const query = { orgId, filter: {}, by: 'vendor' as const, groupsMax: 3, budgetMs }
    const edges = [noon, noon + hourMs]
    expect((await store.events.series({ ...query, edges })).groups).toHaveLength(3)
    const late = await store.events.series({ ...query, filter: { tools: ['t'] }, edges, budgetMs: -1 })
    expect([late.sinceMs, late.rollups]).toEqual([edges[1]!, false])
    const emptySeries = await store.events.series({ ...query, orgId: 'org_none', by: null, edges })
    expect(emptySeries.groups).toEqual([{ group: '', events: [0], part: [], values: [] }])
  },
}
