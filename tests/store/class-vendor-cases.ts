/** Conformance of counts by class and vendor together: exact for any events, retained like metrics. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { Store } from '../../db/contract/store.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import type { Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const hourMs = 3_600_000

const event = fc.record({
  class: fc.constantFrom(null, 'crawler', 'dom', 'webmcp', 'other'),
  vendor: fc.constantFrom(null, 'GPTBot', 'ClaudeBot', '(other)', 'missing'),
  siteId: fc.constantFrom('shop', 'blog'),
  type: fc.constantFrom('agent.detected', 'agent.missed', 'tool.executed'),
  outcome: fc.constantFrom('success', 'error'),
  hour: fc.integer({ min: 0, max: 4 }),
})

interface Asked {
  from: number // hours after noon
  until: number | null
  siteIds: string[] | undefined
  types: string[] | undefined
}

const nameOf = (name: string | null) => (name === null ? 'missing' : { name })

const queries: fc.Arbitrary<Asked> = fc.record({
  from: fc.integer({ min: 0, max: 4 }),
  until: fc.option(fc.integer({ min: 0, max: 5 })),
  siteIds: fc.constantFrom<string[] | undefined>(undefined, ['shop'], ['nowhere']),
  types: fc.constantFrom<string[] | undefined>(undefined, ['agent.detected'], ['agent.*', 'tool.executed']),
})

/** Compares the store's counts of some events with counts made here. */
async function expectCounted(
  store: Store,
  eventFields: { hour: number }[],
  { from, until, siteIds, types }: Asked,
) {
  const orgId = makeOrg().id
  const events = eventFields.map(({ hour, ...fields }, n) =>
    makeEvent(`e${n}`, { ...fields, occurredAtMs: noon + hour * hourMs + n }),
  )
  if (events.length > 0) await store.events.append(makeBatch(orgId, events))
  const truth = new Map<string, number>()
  for (const { class: agentClass, vendor, siteId, type, occurredAtMs } of events) {
    const hour = Math.floor((occurredAtMs - noon) / hourMs)
    if (hour < from || (until !== null && hour >= until)) continue
    if (siteIds && !siteIds.includes(siteId)) continue
    if (
      types &&
      !types.some(
        (filterType) => filterType === type || (filterType === 'agent.*' && type.startsWith('agent.')),
      )
    )
      continue
    const key = JSON.stringify([nameOf(agentClass), nameOf(vendor)])
    truth.set(key, (truth.get(key) ?? 0) + 1)
  }
  const { rows } = await store.events.classVendor({
    orgId,
    sinceMs: noon + from * hourMs,
    untilMs: until === null ? null : noon + until * hourMs,
    ...(siteIds && { siteIds }),
    ...(types && { types }),
  })
  expect(new Map(rows.map((row) => [JSON.stringify([row.class, row.vendor]), row.count]))).toEqual(truth)
  expect(rows.map(({ count }) => count)).toEqual(rows.map(({ count }) => count).sort((a, b) => b - a))
}

export const classVendorCases: Cases = {
  async 'any events, of the hours, sites and types that were asked for'({ store }) {
    const law = (eventFields: { hour: number }[], query: Asked) => expectCounted(store, eventFields, query)
    await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 60 }), queries, law), { numRuns: runs(40) })
  },
  async 'what is removed or erased counts no longer, what retention takes does'({ store, orgId }) {
    const events = Array.from({ length: 60 }, (_, n) =>
      makeEvent(`e${n}`, {
        class: 'dom',
        vendor: `vendor ${n % 2}`,
        siteId: n < 40 ? 'shop' : 'demo',
        sessionId: n < 10 ? 'forget' : 'keep',
      }),
    )
    await store.events.append(makeBatch(orgId, events))
    const counts = async () => {
      const { rows } = await store.events.classVendor({ orgId, sinceMs: 0, untilMs: null })
      return rows.map(({ count }) => count)
    }
    expect(await counts()).toEqual([30, 30])
    await store.events.removeSite({ orgId, siteId: 'demo', audit: makeAudit(orgId) })
    expect(await counts()).toEqual([20, 20])
    const erase = { orgId, sessionIds: ['forget'], subjects: [] }
    let cursor = (await store.events.erase({ ...erase, audit: makeAudit(orgId), cursor: null })).next
    while (cursor !== null) cursor = (await store.events.erase({ ...erase, audit: null, cursor })).next
    expect(await counts()).toEqual([15, 15])
    await store.events.expire({ orgId, receivedBeforeMs: noon + 24 * hourMs })
    expect(await counts()).toEqual([15, 15])
  },
  async 'classes and vendors without number are counted, as other ones'({ store, orgId }) {
    const events = Array.from({ length: 6_000 }, (_, n) =>
      makeEvent(`e${n}`, { class: `class ${n % 90}`, vendor: `vendor ${n}` }),
    )
    for (let offset = 0; offset < events.length; offset += 500)
      await store.events.append(makeBatch(orgId, events.slice(offset, offset + 500)))
    const { rows } = await store.events.classVendor({ orgId, sinceMs: 0, untilMs: null })
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(6_000)
    const vendorNames = rows.filter((row) => typeof row.vendor === 'object').map((row) => row.vendor)
    expect(new Set(vendorNames.map((name) => JSON.stringify(name))).size).toBe(4_096)
    expect(new Set(rows.map((row) => JSON.stringify(row.class))).size).toBe(65) // 64 and "other"
  },
}
