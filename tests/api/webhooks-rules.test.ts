/** Alert rules: one message when an alert opens, one when it resolves, and none in between. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

interface Message {
  type: string
  timestamp: string
  data: { rule: string; incidentId: string; subject: string; [member: string]: unknown }
}

let receiver: Receiver
let hook: WebhookServer
let path: string
let endpointId: string
let tests = 0
beforeAll(async () => {
  receiver = await startReceiver()
  hook = await webhookServer()
})
afterAll(async () => {
  await hook[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})
beforeEach(async () => {
  path = `/ok/rule-${++tests}`
  // A filter that no event passes, so that only the rules send messages.
  const body = { url: receiver.url + path, types: ['sdk.error'] }
  const { endpoint } = await hook.api<{ endpoint: { id: string } }>(
    'POST',
    '/v1/webhooks/endpoints',
    body,
    201,
  )
  endpointId = endpoint.id
  hook.server.clock.move(2 * 3_600_000) // beyond the window of earlier tests' events
})

const rule = async (body: Record<string, unknown>) => {
  const creation = await hook.api<{ rule: { id: string } }>(
    'POST',
    '/v1/webhooks/rules',
    { endpointId, ...body },
    201,
  )
  return creation.rule.id
}
const messages = () => receiver.received(path).map(({ body }) => JSON.parse(body) as Message)
const alerts = () => messages().map(({ type, data }) => `${type} ${data.subject}`)
const minuteMs = 60_000

/** Runs a few times, because an alert is sent only once. */
async function runRules(): Promise<void> {
  for (let i = 0; i < 3; i++) await hook.run()
}

describe('each kind opens once and resolves once', () => {
  test('blocked share of the last hour', async () => {
    await rule({ kind: 'blocked_share', threshold: 0.5, eventsMin: 10 })
    await hook.ingest(Array.from({ length: 9 }, () => ({ outcome: 'blocked' })))
    await runRules()
    expect(alerts()).toEqual([])
    await hook.ingest([{ outcome: 'blocked' }])
    await runRules()
    expect(messages()).toMatchObject([
      {
        type: 'alert.opened',
        timestamp: expect.stringMatching(/Z$/),
        data: {
          rule: 'blocked_share',
          incidentId: expect.stringMatching(/^inc_/),
          share: 1,
          threshold: 0.5,
          events: 10,
        },
      },
    ])
    await hook.ingest(Array.from({ length: 20 }, () => ({ outcome: 'success' })))
    await runRules()
    expect(messages().map(({ type }) => type)).toEqual(['alert.opened', 'alert.resolved'])
    expect(new Set(messages().map(({ data }) => data.incidentId)).size).toBe(1)
    expect(new Set(receiver.received(path).map(({ headers }) => headers['webhook-id'])).size).toBe(2)
  })

  test('error rate of a tool, each tool by itself', async () => {
    await rule({ kind: 'tool_error_rate', threshold: 0.5, eventsMin: 4 })
    const executed = (tool: string, outcome: string) => ({ type: 'tool.executed', tool, outcome })
    const times = (count: number, members: Record<string, unknown>) =>
      Array.from({ length: count }, () => members)
    await hook.ingest([
      ...times(4, executed('pay', 'error')),
      ...times(4, executed('search', 'success')),
      ...times(3, executed('rare', 'error')),
    ])
    await runRules()
    expect(alerts()).toEqual(['alert.opened pay'])
    await hook.ingest(times(4, executed('search', 'error')).concat(times(1, executed('search', 'error'))))
    await runRules()
    expect(alerts()).toEqual(['alert.opened pay', 'alert.opened search'])
    hook.server.clock.move(62 * minuteMs)
    await runRules()
    expect(alerts().slice(2).toSorted()).toEqual(['alert.resolved pay', 'alert.resolved search'])
  })

  test('silence', async () => {
    await rule({ kind: 'silence', minutes: 5 })
    await hook.ingest([{}])
    await runRules()
    hook.server.clock.move(4 * minuteMs)
    await runRules()
    expect(alerts()).toEqual([])
    hook.server.clock.move(2 * minuteMs)
    await runRules()
    expect(alerts()).toEqual(['alert.opened '])
    await hook.ingest([{}])
    await runRules()
    expect(alerts()).toEqual(['alert.opened ', 'alert.resolved '])
  })

  test('a new vendor, only once', async () => {
    await rule({ kind: 'new_vendor' })
    await hook.ingest([
      { agent: { vendor: 'Operator' } },
      { agent: { vendor: 'Fresh' } },
      { agent: { vendor: 'Fresh' } },
    ])
    await runRules()
    expect(alerts()).toEqual(['alert.opened Fresh']) // Operator has events of earlier tests
    hook.server.clock.move(25 * 3_600_000)
    await runRules()
    await hook.ingest([{ agent: { vendor: 'Fresh' } }])
    await runRules()
    expect(alerts()).toEqual(['alert.opened Fresh', 'alert.resolved Fresh'])
  })

  test('a flood of random vendors sends at most a hundred messages', async () => {
    await rule({ kind: 'new_vendor' })
    await hook.ingest(Array.from({ length: 500 }, (_, n) => ({ agent: { vendor: `random ${n}` } })))
    await runRules()
    expect(messages()).toHaveLength(100)
  })

  test('a leaked key, until it is revoked', async () => {
    await rule({ kind: 'key_leaked' })
    const key = await hook.server.key('ingest', { label: 'shop page' })
    const leaked = { method: 'POST', key, body: '{}', headers: { origin: 'https://shop.example' } }
    expect((await hook.server.call('/v1/sdk/events', leaked)).status).toBe(403)
    await runRules()
    expect(messages()).toMatchObject([
      { type: 'alert.opened', data: { rule: 'key_leaked', label: 'shop page' } },
    ])
    const { store, org, clock } = hook.server
    const keyId = messages()[0]!.data.subject
    const auditFields = {
      orgId: org.id,
      actor: 'cli',
      action: 'ingest_key.revoked',
      target: keyId,
      metadata: {},
    }
    const audit = { id: 'aud_revoked', ...auditFields, occurredAtMs: clock.now() }
    await store.keys.revoke({ orgId: org.id, keyId, now: clock.now(), audit })
    await runRules()
    expect(messages().map(({ type }) => type)).toEqual(['alert.opened', 'alert.resolved'])
    expect(JSON.stringify(messages())).not.toContain(key)
  })
})

test('after a restart no alert is repeated: open ones stay open, and resolve', async () => {
  await rule({ kind: 'blocked_share', threshold: 0.5, eventsMin: 5 })
  await hook.ingest(Array.from({ length: 5 }, () => ({ outcome: 'blocked' })))
  await runRules()
  await hook.restart()
  await runRules()
  expect(alerts()).toEqual(['alert.opened '])
  await hook.ingest(Array.from({ length: 6 }, () => ({ outcome: 'success' })))
  await runRules()
  expect(alerts()).toEqual(['alert.opened ', 'alert.resolved '])
})

test('after a change of thresholds open alerts resolve by the new ones', async () => {
  const id = await rule({ kind: 'blocked_share', threshold: 0.5, eventsMin: 5 })
  await hook.ingest(Array.from({ length: 5 }, (_, n) => ({ outcome: n < 4 ? 'blocked' : 'success' })))
  await runRules()
  const change = (body: Record<string, unknown>, status = 200) =>
    hook.api<{ rule: unknown }>('PATCH', `/v1/webhooks/rules/${id}`, body, status)
  const changed = await change({ threshold: 0.9 })
  expect(changed.rule).toMatchObject({ id, kind: 'blocked_share', threshold: 0.9, eventsMin: 5 })
  await runRules()
  expect(alerts()).toEqual(['alert.opened ', 'alert.resolved '])
  for (const body of [{}, { minutes: 5 }, { threshold: 2 }, { eventsMin: 0.5 }, { threshold: null }]) {
    await change(body, 400)
  }
  const plain = await rule({ kind: 'new_vendor' })
  await hook.api('PATCH', `/v1/webhooks/rules/${plain}`, { threshold: 0.5 }, 400)
  await hook.api('PATCH', '/v1/webhooks/rules/rul_none', { minutes: 5 }, 404)
  await hook.api('DELETE', `/v1/webhooks/rules/${plain}`)
})

test('incidents are listed by state, with a sentence and both times', async () => {
  const id = await rule({ kind: 'silence', minutes: 1 })
  hook.server.clock.move(2 * minuteMs)
  await runRules()
  interface Listed {
    incidents: { id: string; ruleId: string; message: string; openedAt: string; resolvedAt: string | null }[]
  }
  const list = async (status: string) =>
    (await hook.api<Listed>('GET', `/v1/webhooks/incidents?status=${status}`)).incidents.filter(
      ({ ruleId }) => ruleId === id,
    )
  const [open] = await list('open')
  expect(open).toMatchObject({
    message: expect.stringMatching(/^No events for 1 minute\. The last event arrived at \d{4}-/),
  })
  expect(open?.resolvedAt).toBeNull()
  await hook.ingest([{}])
  await runRules()
  expect(await list('open')).toEqual([])
  const [resolvedIncident] = await list('resolved')
  expect(resolvedIncident!.id).toBe(open!.id)
  expect(Date.parse(resolvedIncident!.resolvedAt!)).toBeGreaterThanOrEqual(
    Date.parse(resolvedIncident!.openedAt),
  )
  await hook.api('GET', '/v1/webhooks/incidents?status=done', undefined, 400)
})

test('incidents are listed; a deleted rule sends nothing and its incident ends', async () => {
  const id = await rule({ kind: 'silence', minutes: 1 })
  hook.server.clock.move(2 * minuteMs)
  await runRules()
  type Listed = { incidents: { ruleId: string; resolvedAt: string | null }[] }
  const listIncidents = async (status: string) =>
    (await hook.api<Listed>('GET', `/v1/webhooks/incidents?status=${status}`)).incidents.filter(
      ({ ruleId }) => ruleId === id,
    )
  expect(await listIncidents('open')).toMatchObject([{ resolvedAt: null }])
  await hook.api('DELETE', `/v1/webhooks/rules/${id}`)
  await runRules()
  expect(await listIncidents('open')).toEqual([])
  expect(await listIncidents('resolved')).toMatchObject([{ resolvedAt: expect.any(String) }])
  expect(alerts()).toEqual(['alert.opened '])
})

test.each([
  [{ kind: 'weather' }, 'kind'],
  [{ kind: 'silence' }, 'minutes'],
  [{ kind: 'silence', minutes: 0.5 }, 'minutes'],
  [{ kind: 'blocked_share', threshold: 2 }, 'threshold'],
  [{ kind: 'blocked_share' }, 'threshold'],
  [{ kind: 'tool_error_rate', threshold: 0.1, eventsMin: 0 }, 'eventsMin'],
  [{ kind: 'new_vendor', endpointId: 'ep_none' }, 'endpointId'],
])('%j is refused at %s', async (body, issuePath) => {
  const response = await hook.server.call('/v1/webhooks/rules', {
    key: hook.key,
    body: { endpointId, ...body },
  })
  const { issues } = (await response.json()) as { issues: { path: string }[] }
  expect([response.status, issues[0]?.path]).toEqual([400, issuePath])
})
