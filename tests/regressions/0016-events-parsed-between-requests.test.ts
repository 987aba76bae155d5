/** The server's thread parsed stored events for alert rules, the bars of Logs and the newest values of dashboards. */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import { openStore } from '../../db/open.ts'
import { histogram } from '../../server/api/traces/histogram.ts'
import type { CountScope } from '../../server/counts/period.ts'
import { identityDetail, vendorDetail } from '../../server/counts/details.ts'
import { orgCounters } from '../../server/webhooks/alerts/counters.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from '../store/make.ts'
import { testDatabase } from '../support/engine.ts'
import { tempDir } from '../support/temp-dir.ts'

const marker = 'a text that only stored events have'
const events = 12_000
const org = makeOrg()
const dir = tempDir('parsed')
let store: Store

beforeAll(async () => {
  store = await openStore({
    folder: dir.path,
    now: noon,
    shared: await testDatabase(dir.path),
    bootstrap: { org, audit: makeAudit(org.id) },
  })
  for (let from = 0; from < events; from += 1_000)
    await store.events.append(
      makeBatch(
        org.id,
        Array.from({ length: 1_000 }, (_, n) => eventOf(from + n)),
      ),
    )
})
afterAll(async () => {
  await store.close()
  dir.remove()
})

function eventOf(n: number) {
  const fields = {
    vendor: `vendor ${n % 3}`,
    outcome: n % 4 === 0 ? 'error' : 'success',
    subject: `s${n % 5}`,
  }
  const type = n % 2 === 0 ? 'tool.executed' : 'auth.identity_presented'
  const agent = { vendor: fields.vendor, userAgent: `agent ${n % 2}` }
  const json = JSON.stringify({ id: `e${n}`, agent, marker, error: n % 8 === 0 ? 'late' : null })
  return makeEvent(`e${n}`, { ...fields, type, tool: 'pay', json, occurredAtMs: noon - n * 1_000 })
}

/** The result of `work`. Fails if a text with the marker was parsed meanwhile. */
async function withoutParsing<T>(work: () => Promise<T>): Promise<T> {
  const parse = spyOn(JSON, 'parse')
  try {
    const result = await work()
    expect(parse.mock.calls.filter(([text]) => text.includes(marker))).toEqual([])
    return result
  } finally {
    parse.mockRestore()
  }
}

const hourMs = 3_600_000
const period = {
  sinceMs: noon - 24 * hourMs,
  untilMs: noon + hourMs,
  before: { sinceMs: noon - 49 * hourMs, untilMs: noon - 24 * hourMs },
} as CountScope['period']

test('bars of Logs count every matching event, not only the newest 10,000', async () => {
  for (const filter of [{ types: ['tool.*', 'auth.*'] }, { text: 'only stored' }]) {
    const query = { ...filter, sinceMs: noon - 6 * hourMs, untilMs: noon + 1 }
    const bars = await withoutParsing(() => histogram(store.events, org.id, query, noon, 'UTC'))
    expect(bars).toMatchObject({ total: events, complete: true })
    expect(bars.counts['error']!.reduce((sum, count) => sum + count)).toBe(events / 4)
  }
})

test('the detail of a vendor', async () => {
  const scope: CountScope = { store, orgId: org.id, period }
  const detail = await withoutParsing(() => vendorDetail(scope, 'vendor 1'))
  // Calls and identities are neither requests nor visits, in which operators are counted.
  expect(detail).toMatchObject({ count: 0, looked: 1_000, complete: false, sessions: 1 })
  expect(detail.tools).toEqual([{ name: 'pay', count: 1_000 }])
  expect(detail.subjects.map(({ count }) => count)).toEqual([200, 200, 200, 200, 200])
})

test('the identities of a page and of its export', async () => {
  const scope: CountScope = { store, orgId: org.id, period }
  const page = await withoutParsing(() => identityDetail(scope))
  expect([page.looked, page.subjects.length, page.failures]).toEqual([1_000, 5, []])
  const file = await withoutParsing(() => identityDetail({ ...scope, rowsMax: 50_000 }))
  expect([file.looked, file.complete]).toEqual([6_000, true])
  expect(file.subjects.map(({ count }) => count)).toEqual([1_200, 1_200, 1_200, 1_200, 1_200])
})

test('the alert rules on new vendors and on errors of tools', async () => {
  const now = noon + 60_000
  const counters = await orgCounters(store.events, org.id, now)
  await withoutParsing(() => counters.update(new Set(['new_vendor', 'tool_error_rate']), now))
  expect(counters.newVendors.map(({ vendor }) => vendor)).toEqual(['vendor 0', 'vendor 1', 'vendor 2'])
  expect(counters.rates.toolErrors(now)).toEqual(new Map([['pay', { total: 6_000, bad: 3_000 }]]))
})
