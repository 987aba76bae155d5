/** Deliveries over the API: accepted requests, states from pending to the end, lists, replay, organizations, keys. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { newId } from '../../server/ids.ts'
import { mintKey } from '../../server/identity/keys/keys.ts'
import { isOnPostgres } from '../support/engine.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { testServer, type TestServer } from '../support/server.ts'

// Each test waits for several runs, one per second, and for longer on a busy machine.
setDefaultTimeout(90_000)

interface DeliveryJson {
  id: string
  payload: unknown
  status: string
  attempts: number
  nextAttemptAt: string | null
  lastError: string | null
  lastStatus: number | null
  deliveredAt: string | null
  attemptLog: {
    at: string
    status: number | null
    durationMs: number
    responseExcerpt: string
    error: string | null
  }[]
}

let server: TestServer
let receiver: Receiver
let key: string
beforeAll(async () => {
  receiver = await startReceiver()
  const webhooks = {
    backoffMs: [60_000, 300_000, 1_800_000],
    allow: ['127.0.0.0/8'],
    sinkDir: null,
    caFile: null,
    proxy: null,
  }
  server = await testServer({ webhooks: { ...webhooks, cron: '* * * * * *' } })
  key = await server.key('secret')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const post = (body: unknown, apiKey = key) => server.call('/v1/webhooks/test', { key: apiKey, body })

async function send(path: string, payload: unknown = { hello: 'world' }): Promise<string> {
  const response = await post({ url: receiver.url + path, payload })
  expect(response.status).toBe(202)
  const { ok, deliveryId } = (await response.json()) as { ok: boolean; deliveryId: string }
  expect([ok, deliveryId]).toEqual([true, expect.stringMatching(/^wh_[\w-]{22}$/)])
  return deliveryId
}

async function get(id: string): Promise<DeliveryJson> {
  return (await (await server.call(`/v1/webhooks/${id}`, { key })).json()) as DeliveryJson
}

async function until(
  id: string,
  is: (delivery: DeliveryJson) => boolean,
  timeoutMs = 8_000,
): Promise<DeliveryJson> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const delivery = await get(id)
    if (is(delivery)) return delivery
    if (performance.now() > deadlineMs) throw new Error(`still ${JSON.stringify(delivery)}`)
    await Bun.sleep(30)
  }
}

const ended = ({ status }: DeliveryJson) => status !== 'pending'
const attempted = (count: number) => (delivery: DeliveryJson) => delivery.attempts >= count || ended(delivery)

async function orgSecret(): Promise<string> {
  const { orgSecret: read } = await import('../../server/webhooks/endpoints/endpoints.ts')
  const { openSecretBox } = await import('../../server/system/encryption.ts')
  const box = openSecretBox(server.dataDir)
  return (
    await read({ store: server.store, clock: server.clock, box }, { orgId: server.org.id, actor: 'cli' })
  ).secret
}

describe('the states of a delivery', () => {
  test('delivered: signed, the payload byte for byte, the attempt in the log', async () => {
    const text = `{"url":"${receiver.url}/ok/1?x=%20","payload":{"n":12345678901234567890.10,"ü":"\\u2028"}}`
    const response = await post(text)
    expect(response.status).toBe(202)
    const { deliveryId } = (await response.json()) as { deliveryId: string }
    const delivery = await until(deliveryId, ended)
    expect(delivery).toMatchObject({
      status: 'delivered',
      attempts: 1,
      nextAttemptAt: null,
      lastError: null,
      lastStatus: 200,
      deliveredAt: expect.stringMatching(/^\d{4}-.*Z$/),
      attemptLog: [{ status: 200, responseExcerpt: 'answered 200', error: null }],
    })
    const [request] = receiver.received('/ok/1')
    expect(request?.path).toBe('/ok/1?x=%20')
    expect(request?.body).toBe('{"n":12345678901234567890.10,"ü":"\u2028"}')
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Sightglass\/\d/),
      'webhook-id': deliveryId,
      host: new URL(receiver.url).host,
    })
    expect(new Webhook(await orgSecret()).verify(request!.body, request!.headers)).toBeTruthy()
    const listed = await (await server.call('/v1/webhooks?limit=1', { key })).text()
    expect(listed).toContain('"payload":{"n":12345678901234567890.10,"ü":"\u2028"}')
  })

  test('failing: the delays of the retry policy, exactly four attempts with one id, a dead letter, replay', async () => {
    const id = await send('/status/500/dead')
    const stepsMs = [60_000, 300_000, 1_800_000]
    for (const [index, stepMs] of stepsMs.entries()) {
      const delivery = await until(id, attempted(index + 1))
      expect(delivery).toMatchObject({ status: 'pending', attempts: index + 1, lastStatus: 500 })
      const attemptAtMs = Date.parse(delivery.attemptLog.at(-1)!.at)
      expect(Date.parse(delivery.nextAttemptAt!) - attemptAtMs).toBeWithin(stepMs, stepMs * 1.2 + 500)
      server.clock.move(stepMs * 1.2)
    }
    const dead = await until(id, ended)
    expect(dead).toMatchObject({
      status: 'dead_letter',
      attempts: 4,
      lastError: expect.stringMatching(/^http_500: /),
    })
    expect(dead.attemptLog).toHaveLength(4)
    server.clock.move(24 * 3_600_000)
    await Bun.sleep(1_200) // one more run, which must do nothing
    const requests = receiver.received('/status/500/dead')
    expect(requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, id, id, id])
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1)
    expect(new Set(requests.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(4)

    const replay = await server.call(`/v1/webhooks/${id}/replay`, { key, method: 'POST' })
    expect([replay.status, await replay.json()]).toEqual([202, { ok: true, deliveryId: id }])
    expect((await server.call(`/v1/webhooks/${id}/replay`, { key, method: 'POST' })).status).toBe(409)
    const again = await until(id, ({ attemptLog }) => attemptLog.length === 5)
    expect(again).toMatchObject({ status: 'pending', attempts: 1 })
    expect(receiver.received('/status/500/dead')).toHaveLength(5)
  })

  test('a receiver that recovers gets the delivery', async () => {
    const id = await send('/flaky/2')
    await until(id, attempted(1))
    server.clock.move(72_000)
    await until(id, attempted(2))
    server.clock.move(360_000)
    expect(await until(id, ended)).toMatchObject({ status: 'delivered', attempts: 3, lastError: null })
  })

  test('Retry-After lengthens a delay; 410 ends at once; redirects are failures and not followed', async () => {
    const [busy, removed, moved] = await Promise.all([
      send('/status/503/busy?retry-after=600'),
      send('/status/410'),
      send(`/status/302?location=${encodeURIComponent(`${receiver.url}/ok/redirected`)}`),
    ])
    const waiting = await until(busy, attempted(1))
    // A node estimates the database's time anew with each heartbeat, so it may go back between the two.
    const backMs = isOnPostgres ? 500 : 0
    expect(Date.parse(waiting.nextAttemptAt!) - Date.parse(waiting.attemptLog[0]!.at)).toBeWithin(
      600_000 - backMs,
      602_000,
    )
    expect(await until(removed, ended)).toMatchObject({ status: 'dead_letter', attempts: 1, lastStatus: 410 })
    expect(await until(moved, attempted(1))).toMatchObject({ status: 'pending', lastStatus: 302 })
    expect(receiver.received('/ok/redirected')).toEqual([])
  })

  test('a closed port and an unknown name', async () => {
    const refused = await post({ url: 'http://127.0.0.1:1/', payload: {} })
    const unknown = await post({ url: 'http://nowhere.invalid/', payload: {} })
    expect([refused.status, unknown.status]).toEqual([202, 202])
    const { deliveryId } = (await refused.json()) as { deliveryId: string }
    expect((await until(deliveryId, attempted(1))).lastError).toStartWith('connection_refused: ')
  })
})

describe('rejected requests', () => {
  const issueOf = async (body: unknown) => {
    const response = await post(body)
    const { error, issues } = (await response.json()) as {
      error: string
      issues?: { path: string; code: string }[]
    }
    return [response.status, error, issues?.[0]?.path, issues?.[0]?.code]
  }

  test.each([
    ['http://10.0.0.1/'],
    ['http://192.168.1.1:8080/x'],
    ['http://[::1]/'],
    ['http://[::ffff:10.0.0.1]/'],
    ['http://169.254.169.254/latest/meta-data/'],
    ['http://0/'],
    ['http://0xa000001/'],
    ['ftp://example.com/'],
    ['file:///etc/passwd'],
    ['file:x.ndjson'],
    ['syslog+udp://127.0.0.1'],
    ['javascript:alert(1)'],
    ['http://a:b@example.com/'],
    ['http://127.0.0.1/#x'],
    ['not a url'],
    [''],
    ['http://example.com:0/'],
    ['https://example.com:00/'],
    ['http://example.com/a\r\nb'],
    ['http://exam\nple.com/'],
    ['http://example.com/\t'],
    ['\u0000http://example.com/'],
    ['http://example.com/\u007f'],
  ])('the url %s is blocked', async (url) => {
    expect(await issueOf({ url, payload: {} })).toEqual([400, 'invalid_body', 'url', 'url_blocked'])
  })

  test('invalid bodies', async () => {
    const url = `${receiver.url}/ok`
    expect(await issueOf({ payload: {} })).toEqual([400, 'invalid_body', 'url', 'required'])
    expect(await issueOf({ url: 5, payload: {} })).toEqual([400, 'invalid_body', 'url', 'wrong_type'])
    for (const payload of [[], 'x', 1, true]) {
      expect(await issueOf({ url, payload })).toEqual([400, 'invalid_body', 'payload', 'wrong_type'])
    }
    expect(await issueOf({ url, payload: { text: 'x'.repeat(524_300) } })).toEqual([
      400,
      'invalid_body',
      'payload',
      'too_large',
    ])
    expect((await post(`{"url":"${url}","payload":{"text":"${'x'.repeat(600_000)}"}}`)).status).toBe(413)
    expect(await issueOf('{')).toEqual([400, 'invalid_json', undefined, undefined])
    expect(await issueOf('[]')).toEqual([400, 'invalid_body', '', 'wrong_type'])
    expect(await issueOf(`{"url":"${url}","payload":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`)).toEqual(
      [400, 'invalid_body', '', 'too_deep'],
    )
    const xml = await server.call('/v1/webhooks/test', {
      key,
      body: '<a/>',
      headers: { 'content-type': 'text/xml' },
    })
    expect(xml.status).toBe(415)
  })

  test('invalid queries', async () => {
    for (const query of [
      'status=done',
      'limit=0',
      'limit=x',
      'cursor=abc',
      'foo=1',
      'status=pending&status=pending',
    ]) {
      const response = await server.call(`/v1/webhooks?${query}`, { key })
      expect([query, response.status, ((await response.json()) as { error: string }).error]).toEqual([
        query,
        400,
        'invalid_query',
      ])
    }
  })

  test('keys of another kind or scope, and methods', async () => {
    const [ingest, reader] = await Promise.all([
      server.key('ingest'),
      server.key('secret', { scopes: ['webhooks:read'] }),
    ])
    const body = { url: `${receiver.url}/ok`, payload: {} }
    expect((await post(body, ingest)).status).toBe(403)
    expect((await post(body, reader)).status).toBe(403)
    expect((await server.call('/v1/webhooks/test', { body })).status).toBe(401)
    expect((await server.call('/v1/webhooks', { key: reader })).status).toBe(200)
    expect((await server.call('/v1/webhooks', { key, method: 'DELETE' })).status).toBe(405)
    // The path of test deliveries is not an id, with or without a key.
    for (const method of ['GET', 'HEAD', 'DELETE'])
      for (const call of [{ key, method }, { method }]) {
        const { status, headers } = await server.call('/v1/webhooks/test', call)
        expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST'])
      }
    expect((await server.call('/v1/webhooks/wh_none', { key })).status).toBe(404)
    expect((await server.call('/v1/webhooks/wh_none/replay', { key, method: 'POST' })).status).toBe(404)
  })
})

describe('lists and organizations', () => {
  test('paging returns every delivery once, newest first, with filters, for its organization only', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push(await send('/ok/walk', { i }))
    await until(ids[4]!, ended)
    const listed: string[] = []
    let path = '/v1/webhooks?status=delivered&limit=2'
    for (;;) {
      const response = await server.call(path, { key })
      const page = (await response.json()) as { deliveries: DeliveryJson[]; nextCursor: string | null }
      expect(page.deliveries.length).toBeGreaterThan(0)
      listed.push(...page.deliveries.map(({ id }) => id))
      if (page.nextCursor === null) break
      path = `/v1/webhooks?limit=3&cursor=${page.nextCursor}`
      const pendingResponse = await server.call(`/v1/webhooks?status=pending&cursor=${page.nextCursor}`, {
        key,
      })
      expect(pendingResponse.status).toBe(400)
    }
    expect(new Set(listed).size).toBe(listed.length)
    expect(listed.filter((id) => ids.includes(id))).toEqual(ids.toReversed())

    const now = server.clock.now()
    const org = { id: newId('org'), slug: 'other', name: 'Other', createdAtMs: now }
    const auditFields = {
      orgId: org.id,
      actor: 'cli',
      action: 'org.created',
      target: org.id,
      metadata: {},
      occurredAtMs: now,
    }
    await server.store.orgs.create({ org, audit: { id: newId('aud'), ...auditFields } })
    const request = { orgId: org.id, kind: 'secret' as const, label: 'x', actor: 'cli' }
    const foreign = (await mintKey(server.store, request, server.clock)).secret
    expect(await (await server.call('/v1/webhooks', { key: foreign })).json()).toEqual({
      deliveries: [],
      nextCursor: null,
    })
    expect((await server.call(`/v1/webhooks/${ids[0]}`, { key: foreign })).status).toBe(404)
    const replay = await server.call(`/v1/webhooks/${ids[0]}/replay`, { key: foreign, method: 'POST' })
    expect(replay.status).toBe(404)
  })

  test('each action of a person is one audit row', async () => {
    const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 200, beforeSeq: null })
    const counts = Object.groupBy(entries, ({ action }) => action)
    const stored = await server.store.webhooks.list({
      orgId: server.org.id,
      status: null,
      endpointId: null,
      limit: 200,
      bytesMax: 1e9,
      beforeSeq: null,
    })
    expect(counts['webhook_delivery.created']).toHaveLength(stored.deliveries.length)
    expect(counts['webhook_delivery.replayed']).toHaveLength(1)
    expect(counts['webhook_secret.created']).toHaveLength(1)
    expect(counts['webhook_delivery.created']?.[0]).toMatchObject({
      actor: expect.stringMatching(/^key:key_/),
    })
  })
})
