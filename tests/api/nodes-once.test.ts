/** Two nodes that evaluate alerts or make reports at the same moment: each alert and each report exists once. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { openPostgresStore } from '../../db/postgres/store.ts'
import type { Store } from '../../db/contract/store.ts'
import { openSigningKey } from '../../server/audit/signing.ts'
import { makeScheduledReports } from '../../server/reports/scheduled.ts'
import { reportRules } from '../../server/reports/schedule.ts'
import { startLog } from '../../server/log.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { startWebhooks, type WebhookOptions } from '../../server/webhooks/start.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { makeAudit, makeOrg } from '../store/make.ts'

setDefaultTimeout(90_000)

const dayMs = 24 * 3_600_000
const keyRing = readKeyRing('ab'.repeat(32))
const sites = ['shop', 'blog', 'docs']

let temp: TempDir
let shared: Cluster
let receiver: Receiver
let a: TestServer
let b: TestServer
let movedMs = 0
let endpointId: string
const keys = { ingest: '', secret: '' }

/** The database's time moves for both nodes at once. */
const now = (): number => Date.now() + movedMs

const webhooks = {
  cron: '* * * * * *',
  backoffMs: [1_000, 1_000, 1_000],
  allow: ['127.0.0.0/8'],
  sinkDir: null,
  caFile: null,
  proxy: null,
}
const rulesOf = (folder: string, label = 'ops') =>
  reportRules(
    JSON.stringify(sites.map((site) => ({ every: 'day', sites: [site], folder, webhook: [label] }))),
  )

async function openNode(name: string): Promise<TestServer> {
  const open = async () => {
    const opening = { url: shared.url, node: name, now: Date.now(), readers: 2, readDeadlineMs: 10_000 }
    const store = await openPostgresStore(opening)
    await store.call('orgs.bootstrap', { org: makeOrg({ slug: 'default' }), audit: makeAudit('org_system') })
    const heartbeat: Store['nodes']['heartbeat'] = async (command) => {
      const answer = await store.nodes.heartbeat(command)
      return { ...answer, storeMs: now() }
    }
    return { ...store, nodes: { ...store.nodes, heartbeat } }
  }
  const node = { name, version: 'test', role: 'all' as const }
  const reports = { rules: rulesOf(temp.join('made')), mailServer: null }
  return testServer({ keyRing, webhooks, reports }, 'quick', { open, node })
}

/** Nodes read the database's time every five seconds, and go on from there by their own clocks. */
function moveClocks(byMs: number): void {
  movedMs += byMs
  for (const server of [a, b]) server.clock.move(byMs)
}

beforeAll(async () => {
  temp = tempDir('nodes-once')
  shared = await startPostgres()
  receiver = await startReceiver()
  movedMs = dayMs / 2 - (Date.now() % dayMs) + dayMs // noon, so that no period ends by itself
  ;[a, b] = await Promise.all([openNode('a'), openNode('b')])
  keys.ingest = await a.key('ingest')
  keys.secret = await a.key('secret')
  const creation = await api<{ endpoint: { id: string } }>('/v1/webhooks/endpoints', {
    url: `${receiver.url}/ok/once`,
    label: 'ops',
    types: ['sdk.error'],
  })
  endpointId = creation.endpoint.id
})
afterAll(async () => {
  await Promise.all([a, b].map((server) => server[Symbol.asyncDispose]()))
  await receiver[Symbol.asyncDispose]()
  await shared.stop()
  temp.remove()
})

async function api<T>(path: string, body: object): Promise<T> {
  const response = await a.call(path, { key: keys.secret, body })
  if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

interface Message {
  id: string
  type: string
  data: { [field: string]: unknown }
}

/** By id, because moving the clocks by a day ends leases, and what was under way then is sent again. */
function messages(type: string): Message[] {
  const allMessages = receiver.received('/ok/once').map(({ headers, body }) => ({
    id: headers['webhook-id']!,
    ...(JSON.parse(body) as Omit<Message, 'id'>),
  }))
  const byId = new Map(allMessages.map((message) => [message.id, message]))
  return [...byId.values()].filter((message) => message.type === type)
}

async function entries(...actions: string[]) {
  const filter = { actions }
  return (await a.store.audit.list({ orgId: a.org.id, filter, limit: 1_000, beforeSeq: null })).entries
}

const sentEntries = () => entries('report.sent')

const uniqueOf = <T>(items: T[], name: (item: T) => unknown): number =>
  new Set(items.map((item) => JSON.stringify(name(item)))).size

test('the day ends on both nodes in the same second, whichever has the job: each report exists once', async () => {
  const perDay = sites.length * 2
  for (let days = 1; days <= 4; days++) {
    // Without the lease of the day before, either node may claim the job.
    await shared.sql(`DELETE FROM sightglass.job_lease WHERE job = 'reports'`)
    if (days > 1) moveClocks(dayMs)
    await until(async () => (await sentEntries()).length >= days * perDay, 30_000)
  }
  await Bun.sleep(2_500) // a second one would come now
  const reportEntries = await sentEntries()
  expect([
    reportEntries.length,
    uniqueOf(reportEntries, ({ target, metadata }) => [target, metadata['since']]),
  ]).toEqual([4 * perDay, 4 * perDay])
  expect(readdirSync(temp.join('made'))).toHaveLength(4 * sites.length)
  await until(() => messages('report.ready').length >= 4 * sites.length)
  const ready = messages('report.ready')
  expect([ready.length, uniqueOf(ready, ({ data }) => [data['reportId'], data['period']])]).toEqual([
    4 * sites.length,
    4 * sites.length,
  ])
})

test('two nodes that both believe to have the job write each file, entry and delivery once', async () => {
  const folder = temp.join('both')
  const key = openSigningKey(temp.path)
  const quiet = { info: () => undefined, warn: () => undefined }
  const node = ({ store }: TestServer) =>
    makeScheduledReports(
      { store, log: quiet, key, mailServer: null, publicUrl: null, auditDays: null },
      // Another zone makes other reports than those of the servers.
      rulesOf(folder).map((rule) => ({ ...rule, zone: 'Asia/Tokyo' })),
    )
  const countBefore = (await sentEntries()).length
  const first = node(a)
  const second = node(b)
  const signal = new AbortController().signal
  for (let days = 0; days < 5; days++) {
    const dueAtMs = now() + days * dayMs
    await Promise.all([first.run(dueAtMs, signal), second.run(dueAtMs, signal)])
  }
  expect([first.problems(), second.problems()]).toEqual([[], []])
  const newEntries = (await sentEntries()).slice(0, -countBefore)
  const expected = 5 * sites.length
  expect([
    newEntries.length,
    uniqueOf(newEntries, ({ target, metadata }) => [target, metadata['since']]),
  ]).toEqual([2 * expected, 2 * expected])
  expect(readdirSync(folder)).toHaveLength(expected)
  const counted = [first, second].map((reports) => reports.metrics()[0]!.samples[0]!.value)
  expect(counted[0]! + counted[1]!).toBe(2 * expected)
})

const parts = ({ store, dataDir }: TestServer, overrides: Partial<WebhookOptions> = {}) =>
  startWebhooks({
    config: webhooks,
    dataDir,
    keyRing,
    store,
    clock: { now, elapsed: () => performance.now() },
    log: startLog({ level: 'error', clock: { now, elapsed: () => performance.now() } }),
    ...overrides,
    version: 'test',
  })

const post = (vendor: string, outcome: string, count: number) =>
  a.call('/v1/sdk/events', {
    key: keys.ingest,
    body: {
      events: Array.from({ length: count }, () => ({
        id: crypto.randomUUID(),
        siteId: 'shop',
        sessionId: 's',
        type: 'agent.requested',
        outcome,
        occurredAt: new Date(now() - 1_000).toISOString(),
        agent: { vendor },
      })),
    },
  })

const states = async () =>
  (await entries('webhook_alert.opened', 'webhook_alert.resolved')).map(
    ({ action, metadata }) => `${action.slice('webhook_alert.'.length)} ${String(metadata['subject'])}`,
  )

/** The servers leave alerts to the test. */
async function takeAlertsJob(): Promise<void> {
  await shared.sql(
    `UPDATE sightglass.job_lease SET node = 'test', lease = lease + 1, until_ms = 9e15 WHERE job = 'webhook-alerts'`,
  )
  await Bun.sleep(500) // until a running evaluation has ended
}

test('alerts of groups that both nodes evaluate at once open and resolve once', async () => {
  await api('/v1/webhooks/rules', {
    kind: 'measure',
    name: 'Refused',
    endpointId,
    measure: 'share',
    of: { outcome: 'blocked' },
    condition: { kind: 'above', value: 0.5 },
    windowMinutes: 5,
    groupBy: 'vendor',
    groupsMax: 100,
  })
  await takeAlertsJob()
  const vendors = Array.from({ length: 20 }, (_, n) => `vendor ${n}`)
  const first = parts(a)
  const second = parts(b)
  try {
    for (const [n, vendor] of vendors.entries()) {
      await post(vendor, 'blocked', 2)
      if (n > 0) await post(vendors[n - 1]!, 'success', 6)
      await Promise.all([first.run(now()), second.run(now())])
    }
    await Promise.all([first.idle(), second.idle()])
  } finally {
    await Promise.all([first.stop(), second.stop()])
  }
  const expectedStates = [
    ...vendors.map((vendor) => `opened ${vendor}`),
    ...vendors.slice(0, -1).map((vendor) => `resolved ${vendor}`),
  ]
  expect((await states()).toSorted()).toEqual(expectedStates.toSorted())
  await until(() => messages('alert.opened').length >= 20 && messages('alert.resolved').length >= 19)
  for (const [type, count] of [
    ['alert.opened', 20],
    ['alert.resolved', 19],
  ] as const) {
    const sentMessages = messages(type)
    expect([sentMessages.length, uniqueOf(sentMessages, ({ data }) => data['incidentId'])]).toEqual([
      count,
      count,
    ])
  }
})

test('a node that is suspended during its evaluation opens no alert that another one has resolved since', async () => {
  const claim = (node: string) => a.store.jobs.claim({ job: 'test', node, leaseMs: 60_000, now: now() })
  const holdSignal = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const openIncidents: Store['webhooks']['openIncidents'] = async (orgId) => {
    const open = await a.store.webhooks.openIncidents(orgId)
    reached.resolve()
    await holdSignal.promise
    return open
  }
  const store = { ...a.store, webhooks: { ...a.store.webhooks, openIncidents } }
  const suspended = parts(a, { store })
  const other = parts(b)
  const evaluate = (node: typeof other, lease: Awaited<ReturnType<typeof claim>>) =>
    node.run(now(), (work) => work(lease!))
  try {
    await post('late', 'blocked', 3)
    const running = evaluate(suspended, await claim('suspended'))
    await reached.promise
    await shared.sql(`UPDATE sightglass.job_lease SET until_ms = 0 WHERE job = 'test'`)
    const lease = await claim('other')
    await evaluate(other, lease)
    await post('late', 'success', 9)
    await evaluate(other, lease)
    const statesBefore = await states()
    expect(statesBefore.filter((state) => state.endsWith(' late')).toSorted()).toEqual([
      'opened late',
      'resolved late',
    ])
    holdSignal.resolve()
    await running
    expect(await states()).toEqual(statesBefore)
  } finally {
    await Promise.all([suspended.stop(), other.stop()])
  }
})
