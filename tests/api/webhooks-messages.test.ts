/** The documentation of messages matches: real deliveries of each type fit the schemas and the examples. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { webhookMessages } from '../../server/docs/webhook-messages-model.ts'
import type { Issue } from '../../server/errors.ts'
import { checkSchema, type Schema } from '../../server/http/validate.ts'
import { startReceiver, type Received, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

setDefaultTimeout(60_000)

let receiver: Receiver
let hook: WebhookServer
beforeAll(async () => {
  receiver = await startReceiver()
  hook = await webhookServer()
})
afterAll(async () => {
  await hook[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

interface Made {
  endpoint: { id: string; sequence: number; retryWaits: number[] | null }
  secret: string
  warnings: { path: string; code: string; message: string }[]
}
interface Sent {
  type: string
  text?: string
  data: { [member: string]: unknown }
}
interface Alert {
  id: string
  status: string
  link: string
  acknowledgedAt: string | null
  acknowledgedBy: string | null
}

const base = '/v1/webhooks/endpoints'
const add = (path: string, overrides: object = {}, status = 201) =>
  hook.api<Made>('POST', base, { url: receiver.url + path, ...overrides }, status)
const read = ({ body }: Received) => JSON.parse(body) as Sent
const alerts = async (query = '') =>
  (await hook.api<{ incidents: Alert[] }>('GET', `/v1/webhooks/incidents${query}`)).incidents

function issuesOf(type: string, value: unknown): Issue[] {
  const issues: Issue[] = []
  const { schema } = webhookMessages.find((message) => message.type === type)!
  checkSchema(JSON.parse(JSON.stringify(schema)) as Schema, value, issues)
  return issues
}

/** The fields with the types of their values, which an example shares with the real message. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  if (Array.isArray(value)) return ['…']
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, shapeOf(inner)]),
  )
}

const exampleLike = (message: Sent) =>
  webhookMessages
    .find(({ type }) => type === message.type)!
    .examples.map((example) => JSON.stringify(shapeOf(example)))

test('every documented example fits its schema', () => {
  for (const { type, examples } of webhookMessages) {
    for (const value of examples) expect([type, issuesOf(type, value)]).toEqual([type, []])
  }
})

test('a test message is signed with the endpoint’s secret, ignores its filters, and moves no sequence', async () => {
  const path = '/ok/sample'
  const filters = { types: ['tool.executed'], outcomes: ['error'], sites: ['shop-2'], classes: ['crawler'] }
  const { endpoint, secret } = await add(path, filters)
  const { deliveryId } = await hook.api<{ deliveryId: string }>(
    'POST',
    `${base}/${endpoint.id}/test`,
    {},
    202,
  )
  await hook.run()
  const [request] = receiver.received(path)
  expect(new Webhook(secret).verify(request!.body, request!.headers)).toBeTruthy()
  const message = read(request!)
  expect(message).toMatchObject({
    type: 'trace.batch',
    data: {
      sequence: 0,
      test: true,
      events: [{ type: 'tool.executed', outcome: 'error', siteId: 'shop-2', agent: { class: 'crawler' } }],
    },
  })
  expect(issuesOf('trace.batch', message)).toEqual([])
  expect(exampleLike(message)).toContain(JSON.stringify(shapeOf(message)))
  expect(await hook.api('GET', `/v1/webhooks/${deliveryId}`)).toMatchObject({
    endpointId: endpoint.id,
    status: 'delivered',
  })
  await hook.ingest([
    { type: 'tool.executed', outcome: 'error', siteId: 'shop-2', agent: { class: 'crawler' } },
  ])
  await hook.run()
  expect(read(receiver.received(path)[1]!).data['sequence']).toBe(1)
  await hook.api('POST', `${base}/${endpoint.id}/pause`, {})
  await hook.api('POST', `${base}/${endpoint.id}/test`, {}, 409)
  await hook.api('POST', `${base}/ep_none/test`, {}, 404)
  await hook.api('DELETE', `${base}/${endpoint.id}`)
})

test('a batch, an alert that opens and resolves, and each kind of rule match the documentation', async () => {
  const path = '/ok/messages'
  const { endpoint } = await add(path)
  const rule = (kind: string, overrides: object = {}) =>
    hook.api('POST', '/v1/webhooks/rules', { endpointId: endpoint.id, kind, ...overrides }, 201)
  await rule('blocked_share', { threshold: 0.5, eventsMin: 2 })
  await rule('tool_error_rate', { threshold: 0.5, eventsMin: 2 })
  await rule('new_vendor')
  await rule('silence', { minutes: 5 })
  const failing = { type: 'tool.executed', tool: 'pay', outcome: 'error', agent: { vendor: 'Fresh' } }
  await hook.ingest([failing, failing, ...Array.from({ length: 6 }, () => ({ outcome: 'blocked' }))])
  await hook.run()
  await hook.ingest(Array.from({ length: 9 }, () => ({ ...failing, outcome: 'success' })))
  await hook.run()
  hook.server.clock.move(6 * 60_000)
  await hook.run()
  const sentMessages = receiver.received(path).map(read)
  expect(new Set(sentMessages.map(({ type, data }) => `${type} ${data['rule'] ?? ''}`))).toEqual(
    new Set([
      'trace.batch ',
      'alert.opened blocked_share',
      'alert.resolved blocked_share',
      'alert.opened tool_error_rate',
      'alert.resolved tool_error_rate',
      'alert.opened new_vendor',
      'alert.opened silence',
    ]),
  )
  for (const message of sentMessages)
    expect([message, issuesOf(message.type, message)]).toEqual([message, []])
  const shown = sentMessages.filter(
    ({ type, data }) => type === 'trace.batch' || exampleRules.has(`${data['rule']}`),
  )
  expect(shown.length).toBeGreaterThan(4)
  for (const message of shown) expect(exampleLike(message)).toContain(JSON.stringify(shapeOf(message)))
  const opened = sentMessages.find(({ data }) => data['rule'] === 'blocked_share')!
  expect(opened.text).toMatch(
    /^High blocked share: \d+(\.\d)? % of \d+ events in the last hour \(threshold 50 %\)\.$/,
  )
  expect(sentMessages.find(({ type }) => type === 'alert.resolved')!.text).toStartWith('Resolved: High ')
  await hook.api('DELETE', `${base}/${endpoint.id}`)
})

const exampleRules = new Set(['blocked_share', 'new_vendor'])

test('an unused event type is accepted with a warning and a suggestion; a used one has none', async () => {
  const typo = await add('/ok/types', {
    types: ['tool.executed', 'agent.detcted', 'authzz.*', 'authz.*', 'zzzzzz.q'],
  })
  expect(typo.warnings).toEqual([
    {
      path: 'types[1]',
      code: 'unknown_type',
      message: expect.stringContaining('Did you mean agent.detected?'),
    },
    { path: 'types[2]', code: 'unknown_type', message: expect.stringContaining('Did you mean authz.*?') },
    { path: 'types[4]', code: 'unknown_type', message: 'No event has the type zzzzzz.q yet.' },
  ])
  await hook.ingest([{ type: 'zzzzzz.q' }])
  const patchAnswer = await hook.api<Made>('PATCH', `${base}/${typo.endpoint.id}`, {
    types: ['zzzzzz.q', 'zzzzzz.*'],
  })
  expect(patchAnswer.warnings).toEqual([])
  await hook.api('DELETE', `${base}/${typo.endpoint.id}`)
})

test('an open alert is acknowledged once, with person and time, audited; a resolved one is not', async () => {
  const { endpoint } = await add('/ok/acknowledge')
  const rule = { endpointId: endpoint.id, kind: 'blocked_share', threshold: 0.5, eventsMin: 3 }
  await hook.api('POST', '/v1/webhooks/rules', rule, 201)
  hook.server.clock.move(2 * 3_600_000)
  await hook.ingest(Array.from({ length: 3 }, () => ({ outcome: 'blocked' })))
  await hook.run()
  const open = (await alerts('?status=open')).find(({ link }) => link.includes('outcome=blocked'))!
  expect(open).toMatchObject({ status: 'open', acknowledgedAt: null, acknowledgedBy: null })
  const path = `/v1/webhooks/incidents/${open.id}/acknowledge`
  const first = (await hook.api<{ incident: Alert }>('POST', path, {})).incident
  expect(first).toMatchObject({
    id: open.id,
    status: 'acknowledged',
    acknowledgedBy: expect.stringMatching(/^key:/),
  })
  hook.server.clock.move(1_000)
  expect((await hook.api<{ incident: Alert }>('POST', path, {})).incident).toEqual(first)
  const { entries } = await hook.api<{ entries: { action: string; target: string }[] }>(
    'POST',
    '/v1/audit/export',
    { action: 'webhook_alert.acknowledged' },
  )
  expect(entries.map(({ target }) => target)).toEqual([open.id])
  await hook.ingest(Array.from({ length: 9 }, () => ({ outcome: 'success' })))
  await hook.run()
  expect((await alerts()).find(({ id }) => id === open.id)).toMatchObject({
    status: 'resolved',
    acknowledgedBy: first.acknowledgedBy,
  })
  const otherAlert = (await alerts('?status=resolved')).find(({ acknowledgedAt }) => acknowledgedAt === null)
  if (otherAlert !== undefined)
    await hook.api('POST', `/v1/webhooks/incidents/${otherAlert.id}/acknowledge`, {}, 409)
  await hook.api('POST', '/v1/webhooks/incidents/inc_none/acknowledge', {}, 404)
  await hook.api('DELETE', `${base}/${endpoint.id}`)
})

test('an endpoint has at most eight retry delays of its own, 24 hours in all', async () => {
  const { endpoint } = await add('/status/500/waits', { retryWaits: [1, '2s', 1, 1, 1, 1, 1, 1] })
  expect(endpoint.retryWaits).toEqual([1, 2, 1, 1, 1, 1, 1, 1])
  await hook.ingest([{}])
  await hook.run()
  for (let n = 0; n < 12; n++) {
    hook.server.clock.move(3_000)
    await hook.run()
  }
  expect(receiver.received('/status/500/waits')).toHaveLength(9)
  const { deliveries } = await hook.api<{ deliveries: { status: string; attempts: number }[] }>(
    'GET',
    `/v1/webhooks?endpointId=${endpoint.id}`,
  )
  expect(deliveries).toMatchObject([{ status: 'dead_letter', attempts: 9 }])
  const changed = await hook.api<Made>('PATCH', `${base}/${endpoint.id}`, { retryWaits: [] })
  expect(changed.endpoint.retryWaits).toEqual([])
  await hook.ingest([{}])
  await hook.run()
  expect(receiver.received('/status/500/waits')).toHaveLength(10)
  expect(
    (await hook.api<Made>('PATCH', `${base}/${endpoint.id}`, { retryWaits: ['24h'] })).endpoint,
  ).toMatchObject({
    retryWaits: [86_400],
  })
  for (const retryWaits of [
    [0],
    [-1],
    [1.5],
    ['soon'],
    ['500ms'],
    [86_400, 1],
    Array(9).fill(1),
    60,
    '60s',
    [null],
  ]) {
    await hook.api('PATCH', `${base}/${endpoint.id}`, { retryWaits }, 400)
  }
  await hook.api('DELETE', `${base}/${endpoint.id}`)
})
