/** The relay: origins, limits, and the fields that the server sets. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CompleteEvent } from '../client/event.ts'
import { ingestKey, publishableKey } from '../../tests/support/fake-appliance.ts'
import { createRelayHandler, type RelayContext } from './relay.ts'
import type { RelayOptions } from './receive-events.ts'

const page = 'https://shop.example'

function setUp(options: Partial<RelayOptions<Request>> = {}) {
  const exported: CompleteEvent[] = []
  const exporter = {
    export: (event: CompleteEvent) => exported.push(event) > 0,
    flush: () => Promise.resolve(true),
  }
  const handle = createRelayHandler({ exporter, publishableKey, origins: [page], ...options })
  const post = async (body: unknown, headers: object = {}, context?: RelayContext) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const init = { method: 'POST', body: text, headers: { origin: page, ...headers } }
    const response = await handle(new Request('https://relay.example/traces', init), context)
    return { status: response.status, headers: response.headers, body: await response.json() }
  }
  return { handle, post, exported }
}

const event = (overrides: object = {}) => ({
  id: 'trc_1',
  siteId: 'shop',
  type: 'agent.detected',
  ...overrides,
})
const body = (...events: object[]) => ({ publishableKey, events: events.length > 0 ? events : [event()] })

test('a browser’s events are queued and counted', async () => {
  const { post, exported } = setUp()
  const answer = await post(body(event(), event({ id: 'trc_2' })))
  expect(answer).toMatchObject({ status: 202, body: { ok: true, accepted: 2 } })
  expect(answer.headers.get('access-control-allow-origin')).toBe(page)
  expect(exported.map(({ id }) => id)).toEqual(['trc_1', 'trc_2'])
})

test('only listed origins may send; by default only the host of the relay', async () => {
  const { post } = setUp()
  for (const origin of ['https://evil.example', 'http://shop.example', `${page}.evil`, 'null', '']) {
    const answer = await post(body(), { origin })
    expect(answer).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  }
  const customHandler = createRelayHandler({
    exporter: { export: () => true, flush: async () => true },
    publishableKey,
  })
  const from = async (origin: string | null) => {
    const init = { method: 'POST', body: JSON.stringify(body()), headers: origin === null ? {} : { origin } }
    return (await customHandler(new Request('https://relay.example/traces', init))).status
  }
  expect(await from('https://relay.example')).toBe(202)
  expect(await from(page)).toBe(403)
  expect(await from(null)).toBe(403)
})

test('the preflight of a listed origin succeeds, other methods are rejected', async () => {
  const { handle } = setUp()
  const ask = (method: string, origin: string) =>
    handle(new Request('https://relay.example/traces', { method, headers: { origin } }))
  const preflight = await ask('OPTIONS', page)
  expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([204, 'POST'])
  expect((await ask('OPTIONS', 'https://evil.example')).status).toBe(405)
  expect((await ask('GET', page)).headers.get('allow')).toBe('POST')
})

test.each<[string, unknown, number, string]>([
  ['another publishable key', { ...body(), publishableKey: `agtx_pk_${'x'.repeat(32)}` }, 403, 'forbidden'],
  ['no publishable key', { events: [event()] }, 403, 'forbidden'],
  ['no JSON', '{"events":', 400, 'invalid_json'],
  ['null', null, 403, 'forbidden'],
  ['no events', { publishableKey, events: [] }, 400, 'invalid_body'],
  ['events that are no list', { publishableKey, events: {} }, 400, 'invalid_body'],
  ['events without ids', body({ type: 'a' }), 400, 'invalid_body'],
  [
    'too many events',
    { publishableKey, events: Array.from({ length: 201 }, () => event()) },
    413,
    'payload_too_large',
  ],
  ['too many bytes', body(event({ error: 'x'.repeat(300_000) })), 413, 'payload_too_large'],
])('%s is refused', async (_, payload, status, error) => {
  const { post, exported } = setUp()
  expect(await post(payload)).toMatchObject({ status, body: { error } })
  expect(exported).toEqual([])
})

test('an endless body is rejected at the limit', async () => {
  const { handle } = setUp({ bodyBytesMax: 1_000 })
  let pulled = 0
  const endless = new ReadableStream({
    pull(controller) {
      pulled++
      controller.enqueue(new Uint8Array(100))
    },
  })
  const init = { method: 'POST', body: endless, headers: { origin: page }, duplex: 'half' }
  expect((await handle(new Request('https://relay.example/', init))).status).toBe(413)
  expect(pulled).toBeLessThan(50)
})

test('each address has its own rate limit and gets Retry-After', async () => {
  const { post } = setUp({ eventsPerMinute: 3 })
  const from = (address: string) => post(body(), {}, { address })
  for (let index = 0; index < 3; index++) expect((await from('192.0.2.1')).status).toBe(202)
  const refused = await from('192.0.2.1')
  expect(refused).toMatchObject({ status: 429, body: { error: 'rate_limited' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await from('192.0.2.2')).status).toBe(202)
  const byServer = await post(body(), {}, { requestIP: () => ({ address: '192.0.2.1' }) })
  expect(byServer.status).toBe(429)
})

test('the server sets site, user agent, trust and identity', async () => {
  const { post, exported } = setUp({
    siteId: 'real-site',
    identify: (request) =>
      request.headers.get('cookie') === 'user=7' ? { subject: 'user-7', protocol: 'sso' } : null,
  })
  const forged = event({
    siteId: 'other',
    agent: { class: 'dom', trust: 'linked', vendor: 'Me', userAgent: 'forged' },
    metadata: { subject: 'admin', protocol: 'mtls', page: '/cart' },
  })
  await post(body(forged), { 'user-agent': 'Real/1.0' })
  expect(exported[0]).toMatchObject({
    siteId: 'real-site',
    agent: { class: 'dom', trust: 'detected', vendor: 'Me', userAgent: 'Real/1.0' },
  })
  expect(exported[0]?.metadata).toEqual({ page: '/cart' })
  await post(body(forged), { 'user-agent': 'Real/1.0', cookie: 'user=7' })
  expect(exported[1]?.agent?.trust).toBe('verified')
  expect(exported[1]?.metadata).toEqual({ page: '/cart', subject: 'user-7', protocol: 'sso' })
})

test('law: nothing that a page says about proof passes, whatever it sends beside it', async () => {
  const proof = { verdict: 'verified', evidence: { method: 'signature' }, robots: 'allowed', robotsRule: '*' }
  const agent = fc.oneof(
    fc.jsonValue(),
    fc.record({ trust: fc.constantFrom('verified', 'linked', 'declared', 'x', 5), class: fc.string() }),
    fc.constant({}),
  )
  const extraFields = fc.dictionary(fc.constantFrom('policy', 'observed', 'metadata', 'tool'), fc.jsonValue())
  await fc.assert(
    fc.asyncProperty(agent, extraFields, async (claimed, fields) => {
      const { post, exported } = setUp({ eventsPerMinute: 1e9 })
      const isObject = typeof claimed === 'object' && claimed !== null && !Array.isArray(claimed)
      const sentEvent = event({
        policy: { decision: 'allow' },
        ...fields,
        agent: isObject ? { ...claimed, ...proof } : claimed,
      })
      const observed = { trc_1: { address: '20.171.206.9' } }
      const answer = await post({ ...body(sentEvent), observed }, { 'user-agent': 'GPTBot/1.2' })
      expect(answer.status).toBe(202)
      const passed = exported[0] as CompleteEvent
      expect(passed).not.toHaveProperty('policy')
      expect(['detected', 'declared']).toContain(passed.agent?.trust as string)
      for (const name of Object.keys(proof)) expect(passed.agent).not.toHaveProperty(name)
    }),
  )
})

test('a known agent is recognized, a browser of a person is not', async () => {
  const { post, exported } = setUp()
  await post(body(), { 'user-agent': 'ClaudeBot/1.0' })
  expect(exported[0]?.agent).toMatchObject({ class: 'crawler', vendor: 'Anthropic', trust: 'detected' })
  await post(body(), { 'user-agent': 'Mozilla/5.0 Firefox/140.0' })
  expect(exported[1]?.agent).toEqual({ userAgent: 'Mozilla/5.0 Firefox/140.0' })
  await post(body(event({ agent: { class: 'dom', trust: 'declared' } })), { 'user-agent': '' })
  expect(exported[2]?.agent?.trust).toBe('declared')
})

test('a full queue, an unreachable appliance and a throwing identify get a response', async () => {
  const full = setUp({ exporter: { export: () => false, flush: async () => true } })
  expect(await full.post(body())).toMatchObject({ status: 503, body: { error: 'overloaded' } })
  const away = setUp({ exporter: { export: () => true, flush: async () => false }, answerAfter: 'sent' })
  const answer = await away.post(body())
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
  const broken = setUp({
    identify: () => {
      throw new Error('session store is down')
    },
  })
  expect(await broken.post(body())).toMatchObject({ status: 500, body: { error: 'internal_error' } })
})

test('law: every request gets a response, and only objects with ids are queued', async () => {
  const anyBody = fc.oneof(
    fc.jsonValue(),
    fc.constant(body()),
    fc.array(fc.jsonValue()).map((events) => ({ publishableKey, events })),
  )
  const payloads = fc.oneof(
    anyBody.map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }),
  )
  const method = fc.constantFrom('POST', 'GET', 'OPTIONS', 'PUT')
  await fc.assert(
    fc.asyncProperty(payloads, method, fc.constantFrom(page, 'null', 'x'), async (text, verb, origin) => {
      const { handle, exported } = setUp({ eventsPerMinute: 1e9 })
      const headers = { origin, 'user-agent': text.replace(/[^ -~]/g, '') }
      const init = { method: verb, headers, ...(verb === 'GET' ? {} : { body: text }) }
      const { status } = await handle(new Request('https://relay.example/traces', init))
      expect([202, 204, 400, 403, 405, 413]).toContain(status)
      if (exported.length > 0) expect([status, origin, verb]).toEqual([202, page, 'POST'])
      for (const exportedEvent of exported) expect(typeof exportedEvent.id).toBe('string')
    }),
    { numRuns: 300 },
  )
})

test('invalid options throw at once', () => {
  expect(() => setUp({ publishableKey: ingestKey })).toThrow(/publishableKey/)
  expect(() => setUp({ origins: ['shop.example'] })).toThrow(/origins/)
  expect(() => setUp({ origins: ['file:///x'] })).toThrow(/origins/)
})

test('the relay pushes the tools of a page to sync; without sync the answer says why it cannot', async () => {
  const pushed: unknown[] = []
  const sync = { pushTools: async (tools: object[]) => pushed.push(...tools) }
  const tools = [{ name: 'add' }, { name: 'secret' }]
  const { post } = setUp({ sync, answerAfter: 'sent', acceptTool: ({ name }) => name !== 'secret' })
  const answer = await post({ publishableKey, page: 'p', tools, removed: [] })
  expect(answer).toMatchObject({ status: 202, body: { ok: false, tools: 1 } })
  expect(pushed).toEqual([{ name: 'add' }])
  const leaveAnswer = await post({ publishableKey, page: 'p', tools: [], removed: [], left: true })
  expect(leaveAnswer).toMatchObject({ status: 202, body: { ok: true, tools: 0 } })
  const oversizeAnswer = await post({
    publishableKey,
    page: 'p',
    tools: Array(201).fill({ name: 'x' }),
    removed: [],
  })
  expect(oversizeAnswer.status).toBe(413)
  const bareAnswer = await setUp().post({ publishableKey, page: 'p', tools, removed: [] })
  expect(bareAnswer).toMatchObject({ status: 400, body: { message: 'the relay has no sync option' } })
  const failing = { pushTools: () => Promise.reject(new Error('down')) }
  const down = setUp({ sync: failing, answerAfter: 'sent', onError() {} })
  expect((await down.post({ publishableKey, page: 'p', tools, removed: [] })).status).toBe(503)
})
