/**
 * Requests as other clients of this protocol make them, recorded by shape, against the executable: each is answered as
 * contract §4 and §5 say, so those clients go on working unchanged.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Appliance } from '../support/binary.ts'
import { type Keys, startWithKeys, storedIds } from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
beforeAll(async () => {
  ;({ appliance, keys } = await startWithKeys())
}, 120_000)
afterAll(async () => {
  await appliance.stop()
})

async function post(path: string, body: unknown, headers: { [name: string]: string } = {}) {
  const init = {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${keys.ingestKey}`, ...headers },
  }
  const answer = await fetch(`${appliance.url}${path}`, init)
  return { status: answer.status, body: await answer.json() }
}

const accepted = (count: number, deduped = 0) => ({
  status: 202,
  body: { ok: true, accepted: count, deduped },
})
const event = (id: string, fields: object = {}) => ({
  id,
  siteId: 'shop-acme',
  sessionId: 'sess_1',
  occurredAt: '2026-06-23T12:00:00.000Z',
  type: 'agent.detected',
  outcome: 'success',
  agent: { class: 'crawler', trust: 'detected', vendor: 'GPTBot' },
  ...fields,
})

test('one event in each post, as the specification shows it, and its resend', async () => {
  expect(await post('/v1/sdk/events', { events: [event('compat-1')] })).toEqual(accepted(1))
  expect(await post('/v1/sdk/events', { events: [event('compat-1')] })).toEqual(accepted(0, 1))
})

test('a batch that names its publishable key', async () => {
  const body = { publishableKey: keys.publishableKey, events: [event('compat-2'), event('compat-3')] }
  expect(await post('/v1/sdk/events', body)).toEqual(accepted(2))
})

test('events with everything a browser SDK attaches, nulls and unknown members included', async () => {
  const full = event('compat-4', {
    type: 'authz.evaluated',
    outcome: 'blocked',
    tool: 'checkout.pay',
    durationMs: 3.25,
    error: null,
    agent: {
      class: 'dom',
      trust: 'declared',
      vendor: 'Operator',
      confidence: 0.93,
      detectionVersion: '3',
      userAgent: 'Mozilla/5.0',
      signals: { webdriver: true, score: [1, 2] },
    },
    policy: {
      decision: 'deny',
      ruleId: 'tool:checkout.pay',
      reason: 'trust below verified',
      obligations: [],
    },
    metadata: { page: '/checkout', protocol: 'web-bot-auth', subject: null, traceparent: '00-ab-cd-01' },
    sdkVersion: '1.4.0',
  })
  expect(await post('/v1/sdk/events', { events: [full], sentAt: 1_750_000_000_000 })).toEqual(accepted(1))
  const answer = await fetch(`${appliance.url}/v1/traces/compat-4`, {
    headers: { authorization: `Bearer ${keys.secretKey}` },
  })
  expect(await answer.json()).toEqual(full)
})

test('the scheme in small letters, a charset, no content type', async () => {
  const small = {
    authorization: `bearer ${keys.ingestKey}`,
    'content-type': 'application/json; charset=utf-8',
  }
  expect(await post('/v1/sdk/events', { events: [event('compat-5')] }, small)).toEqual(accepted(1))
  const init = {
    method: 'POST',
    body: new Blob([JSON.stringify({ events: [event('compat-6')] })]),
    headers: { authorization: `Bearer ${keys.ingestKey}` },
  }
  expect((await fetch(`${appliance.url}/v1/sdk/events`, init)).status).toBe(202)
})

test('tools with a description and without tokens, memory without a score', async () => {
  const tools = [
    { name: 'search', description: 'Finds products', inputSchema: { type: 'object', properties: {} } },
    {
      name: 'checkout.pay',
      description: 'Pays',
      inputSchema: { type: 'object' },
      outputSchema: {},
      group: 'checkout',
    },
  ]
  expect(await post('/v1/sdk/tools', { siteId: 'shop-acme', tools })).toEqual({
    status: 202,
    body: { ok: true, tools: 2 },
  })
  const snapshot = { siteMap: { pages: [{ path: '/', name: 'Home' }] }, policies: { returns: ['30 days'] } }
  const answer = { status: 202, body: { ok: true, siteId: 'shop-acme' } }
  expect(await post('/v1/sdk/memory', { siteId: 'shop-acme', snapshot })).toEqual(answer)
  expect(await post('/v1/sdk/memory', { siteId: 'shop-acme', snapshot, score: 87.5 })).toEqual(answer)
})

test('a client that checks nothing but the status sees its mistakes as 4xx', async () => {
  expect((await post('/v1/sdk/events', { events: [] })).status).toBe(400)
  expect((await post('/v1/sdk/events', { events: [event('')] })).status).toBe(400)
  const wrong = { authorization: `Bearer ${keys.secretKey}` }
  expect((await post('/v1/sdk/events', { events: [event('compat-7')] }, wrong)).status).toBe(403)
  const unknown = { authorization: `Bearer agtx_ik_${'x'.repeat(32)}` }
  expect((await post('/v1/sdk/events', { events: [event('compat-7')] }, unknown)).status).toBe(401)
})

test('everything answered 202 is stored, and nothing else', async () => {
  const ids = await storedIds(appliance.url, keys.secretKey)
  expect(ids.toSorted()).toEqual(['compat-1', 'compat-2', 'compat-3', 'compat-4', 'compat-5', 'compat-6'])
})
