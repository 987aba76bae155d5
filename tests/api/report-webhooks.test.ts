/** Scheduled reports by webhook: signed, as documented, once per period, whatever happens to the endpoint or a node. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { openSigningKey } from '../../server/audit/signing.ts'
import { webhookMessages } from '../../server/docs/webhook-messages-model.ts'
import type { Issue } from '../../server/errors.ts'
import { checkSchema, type Schema } from '../../server/http/validate.ts'
import { verifyReport } from '../../server/reports/proof.ts'
import { makeScheduledReports } from '../../server/reports/scheduled.ts'
import { reportRules } from '../../server/reports/schedule.ts'
import { scheduleReport } from '../../server/reports/webhook.ts'
import { event } from '../support/events.ts'
import { makeOrg, person } from '../support/people.ts'
import { startReceiver, type Received, type Receiver } from '../support/receiver.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const dayMs = 24 * 3_600_000
const rules = [
  { every: 'day', sites: ['shop'], webhook: ['ops'] },
  { every: 'month', org: 'other', webhook: ['ops'] },
]
const webhooks = {
  cron: '* * * * * *',
  backoffMs: [1_000, 1_000, 1_000],
  allow: ['127.0.0.0/8'],
  sinkDir: null,
  caFile: null,
  proxy: null,
}
const publicUrl = 'https://agents.example'

let temp: TempDir
let receiver: Receiver
let server: TestServer
let key: string
let secret: string
let endpointId: string

beforeAll(async () => {
  temp = tempDir('report-webhooks')
  receiver = await startReceiver()
  const reports = { rules: reportRules(JSON.stringify(rules)), mailServer: null }
  server = await testServer({ webhooks, reports, publicUrl })
  // Noon, so that no period ends while the test runs.
  server.clock.move(dayMs + dayMs / 2 - (server.clock.now() % dayMs))
  const ingest = await server.key('ingest')
  key = await server.key('secret')
  const yesterday = new Date(server.clock.now() - dayMs).toISOString()
  const events = Array.from({ length: 30 }, (_, n) =>
    event(`evt_${n}`, { occurredAt: yesterday, type: 'tool.executed', siteId: n < 20 ? 'shop' : 'blog' }),
  )
  expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  temp.remove()
})

interface Sent {
  type: string
  text: string
  data: { [field: string]: unknown } & { html: string | null; sha256: string; bytes: number; events: number }
}

const messages = (path: string): Received[] => receiver.received(path)
const read = ({ body }: Received) => JSON.parse(body) as Sent

async function addEndpoint(path: string, overrides: object): Promise<{ id: string; secret: string }> {
  const body = { url: receiver.url + path, ...overrides }
  const response = await server.call('/v1/webhooks/endpoints', { key, body })
  expect(response.status).toBe(201)
  const creation = (await response.json()) as { endpoint: { id: string }; secret: string }
  return { id: creation.endpoint.id, secret: creation.secret }
}

async function sentEntries(orgId = server.org.id) {
  const query = { orgId, filter: { actions: ['report.sent'] }, limit: 100, beforeSeq: null }
  return (await server.store.audit.list(query)).entries
}

const act = (target: string) => ({ id: `aud_${target}`, action: 'report.sent', target, metadata: {} })

function issuesOf(value: unknown): Issue[] {
  const issues: Issue[] = []
  const { schema } = webhookMessages.find(({ type }) => type === 'report.ready')!
  checkSchema(JSON.parse(JSON.stringify(schema)) as Schema, value, issues)
  return issues
}

test('without the endpoint the doctor names it; a label that two endpoints have is refused', async () => {
  const operator = await person(server, server.org, 'owner', { operator: true })
  const detail = async (): Promise<string> => {
    const { checks } = (await (await operator.call('/api/doctor')).json()) as {
      checks: { id: string; detail: string }[]
    }
    return checks.find(({ id }) => id === 'reports')!.detail
  }
  await until(async () => (await detail()).includes('no webhook endpoint with the id or the label "ops"'))
  const first = await addEndpoint('/ok/first', { label: 'ops' })
  const twin = await addEndpoint('/ok/twin', { label: 'ops' })
  server.clock.move(60_000)
  await until(async () => (await detail()).includes('Several webhook endpoints have the label "ops"'))
  for (const { id } of [first, twin])
    await server.call(`/v1/webhooks/endpoints/${id}`, { method: 'DELETE', key })
  expect(await sentEntries()).toEqual([])
})

test('the message is signed, as documented, ignores the filters, and has the report that verifies', async () => {
  const endpoint = await addEndpoint('/flaky/1', { label: 'ops', types: ['auth.*'], sites: ['nowhere'] })
  ;({ id: endpointId, secret } = endpoint)
  server.clock.move(5 * 60_000)
  await until(() => messages('/flaky/1').length === 1)
  server.clock.move(3_000) // the wait before the retry
  await until(() => messages('/flaky/1').length === 2)
  const [failed, request] = messages('/flaky/1')
  expect([request!.body, request!.headers['webhook-id']]).toEqual([
    failed!.body,
    failed!.headers['webhook-id']!,
  ])
  // The clock of the server was moved, so the reference library signs instead of verifying.
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = request!.headers
  const signature = new Webhook(secret).sign(id!, new Date(Number(timestamp) * 1_000), request!.body)
  expect(request!.headers['webhook-signature']).toBe(signature)
  const message = read(request!)
  expect(issuesOf(message)).toEqual([])
  const today = new Date(server.clock.now()).toISOString().slice(0, 10)
  const period = new Date(server.clock.now() - dayMs).toISOString().slice(0, 10)
  const [since, end] = [period, today].map((day) => `${day}T00:00:00.000Z`)
  expect(message).toMatchObject({
    type: 'report.ready',
    data: { every: 'day', zone: 'UTC', period, since, until: end, sites: ['shop'], events: 20 },
  })
  expect(message.data['totals']).toContainEqual({ name: 'Tool calls', count: 20, before: 0 })
  const query = new URLSearchParams({ since: since!, until: end!, siteId: 'shop' })
  const link = `${publicUrl}/analytics?${query}`
  expect(message.data['link']).toBe(link)
  expect(message.text).toBe(
    `Daily report of ${server.org.name}: ${period} (UTC). 20 tool calls (0 before). ${link}`,
  )
  const file = Buffer.from(message.data.html!)
  expect(verifyReport(file, null)).toMatchObject({ ok: true, events: 20, since, until: end })
  expect([file.length, createHash('sha256').update(file).digest('hex')]).toEqual([
    message.data.bytes,
    message.data.sha256,
  ])
  const [entry, ...otherEntries] = await sentEntries()
  expect(otherEntries).toEqual([])
  expect(entry).toMatchObject({
    actor: 'system',
    target: expect.stringMatching(new RegExp(`^report_[0-9a-f]{16}/${endpointId}$`)),
    metadata: { label: 'webhook:ops', since, until: end, deliveryId: request!.headers['webhook-id'] },
  })
})

test('once per period: missed days follow, a paused endpoint receives them when it resumes', async () => {
  await server.call(`/v1/webhooks/endpoints/${endpointId}/pause`, { method: 'POST', key, body: {} })
  server.clock.move(3 * dayMs)
  await until(async () => (await sentEntries()).length === 4)
  await Bun.sleep(1_200)
  expect(messages('/flaky/1')).toHaveLength(2)
  await server.call(`/v1/webhooks/endpoints/${endpointId}/resume`, { method: 'POST', key, body: {} })
  const ids = () => new Set(messages('/flaky/1').map(({ headers }) => headers['webhook-id']))
  await until(() => {
    server.clock.move(1_500)
    return messages('/flaky/1').length === 8
  })
  expect(ids().size).toBe(4)
  const periods = messages('/flaky/1').map((message) => read(message).data['period'])
  expect(new Set(periods).size).toBe(4)
})

test('a node that finds no audit entry, such as one whose lease ended, schedules nothing twice', async () => {
  const { store } = server
  const countBefore = (await sentEntries()).length
  const blind = { ...store.audit, list: async () => ({ entries: [], next: null }) }
  const node = makeScheduledReports(
    {
      store: { ...store, audit: blind as unknown as typeof store.audit },
      mailServer: null,
      publicUrl,
      log: { info: () => undefined, warn: () => undefined },
      auditDays: null,
      key: openSigningKey(temp.path),
    },
    reportRules(JSON.stringify(rules.slice(0, 1))),
  )
  await node.run(server.clock.now(), new AbortController().signal)
  expect([node.problems(), node.metrics()[0]?.samples]).toEqual([[], [{ value: 0 }]])
  expect((await sentEntries()).length).toBe(countBefore)
})

test('a report of another organization reaches only its own endpoint, which is found by its label', async () => {
  const otherOrg = await makeOrg(server, 'other')
  server.clock.move(30 * 60_000)
  await Bun.sleep(1_500)
  expect(await sentEntries(otherOrg.id)).toEqual([])
})

test('a file that does not fit is left out of the message; its hash and the link remain', async () => {
  const [endpoint] = await server.store.webhooks.bareEndpoints(server.org.id)
  const period = { name: '2026-01-01', sinceMs: 0, untilMs: dayMs }
  const facts = {
    orgId: server.org.id,
    org: '<@everyone> [x](http://evil.example)',
    events: 3,
    since: '2026-01-01T00:00:00.000Z',
    until: '2026-01-02T00:00:00.000Z',
    at: '',
  }
  const sizes: (number | null)[] = []
  for (const bytes of [510_000, 600_000]) {
    const html = 'x'.repeat(bytes)
    const rule = { every: 'day' as const, zone: 'UTC', siteIds: [] }
    const draft = { facts, fileName: 'x.html', totals: [] }
    const report = { id: `report_${bytes}`, rule, period, title: 'Daily report', range: 'x', draft, html }
    const scheduledDelivery = await scheduleReport(
      { store: server.store, publicUrl: null },
      endpoint!,
      report,
      act(`report_${bytes}/x`),
      server.clock.now(),
    )
    const { delivery } = (await server.store.webhooks.find({
      orgId: server.org.id,
      id: scheduledDelivery!.deliveryId,
    }))!
    expect(Buffer.byteLength(delivery.body)).toBeLessThanOrEqual(512 * 1024)
    const { data, text } = JSON.parse(delivery.body) as Sent
    expect([data.bytes, data.sha256]).toEqual([bytes, createHash('sha256').update(html).digest('hex')])
    expect(text).not.toMatch(/[<@[]|:\/\//)
    sizes.push(data.html?.length ?? null)
  }
  expect(sizes).toEqual([510_000, null])
})

test('an endpoint that was deleted meanwhile gets no delivery', async () => {
  const [endpoint] = await server.store.webhooks.bareEndpoints(server.org.id)
  await server.call(`/v1/webhooks/endpoints/${endpoint!.id}`, { method: 'DELETE', key })
  const period = { name: '2026-01-02', sinceMs: 0, untilMs: dayMs }
  const facts = { orgId: server.org.id, org: 'x', since: '', until: '', at: '', events: 0 }
  const draft = { facts, fileName: 'x.html', totals: [] }
  const rule = { every: 'day' as const, zone: 'UTC', siteIds: [] }
  const report = { id: 'report_gone', rule, period, title: 'x', range: 'x', draft, html: 'x' }
  const countBefore = (await sentEntries()).length
  const scheduled = scheduleReport(
    { store: server.store, publicUrl: null },
    endpoint!,
    report,
    act('report_gone/x'),
    server.clock.now(),
  )
  expect(await scheduled.catch((error: unknown) => error)).toMatchObject({ kind: 'not_found' })
  expect((await sentEntries()).length).toBe(countBefore)
})
