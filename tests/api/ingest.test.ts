/** POST /v1/sdk/events over HTTP: the contract's order of checks, its responses, and what is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { deflateSync, gzipSync, zstdCompressSync, brotliCompressSync } from 'node:zlib'
import { event, exampleEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let ingest: string
let secret: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

const post = (body: unknown, headers: Record<string, string> = {}, key = ingest) =>
  server.call('/v1/sdk/events', { method: 'POST', key, body, headers })

async function answer(response: Response): Promise<[number, Record<string, unknown>]> {
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('x-request-id')).toMatch(/^req_/)
  return [response.status, (await response.json()) as Record<string, unknown>]
}

async function stored(id: string): Promise<unknown> {
  const response = await server.call(`/v1/traces/${encodeURIComponent(id)}`, { key: secret })
  return response.status === 404 ? null : await response.json()
}

describe('accepting', () => {
  test('the example is accepted, then deduped, and returned field for field', async () => {
    expect(await answer(await post({ events: [exampleEvent] }))).toEqual([
      202,
      { ok: true, accepted: 1, deduped: 0 },
    ])
    expect(await answer(await post({ events: [exampleEvent] }))).toEqual([
      202,
      { ok: true, accepted: 0, deduped: 1 },
    ])
    expect(await stored('evt_1')).toEqual(exampleEvent)
  })

  test('an extra publishableKey is ignored, unknown fields are stored', async () => {
    const odd = event('odd/1 %2F?', { shape: { of: [1, null, { things: '…' }] }, __proto__x: 1 })
    const body = { events: [odd], publishableKey: 'agtx_pk_x', more: true }
    expect(await answer(await post(body))).toEqual([202, { ok: true, accepted: 1, deduped: 0 }])
    expect(await stored('odd/1 %2F?')).toEqual(odd)
  })

  test('numbers keep every digit', async () => {
    const numbers = '{"a":12345678901234567890.123456789,"b":1e999,"c":0.1000000000000000055511151231257827}'
    const text = JSON.stringify(event('numbers')).replace('"metadata":{', `"exact":${numbers},"metadata":{`)
    expect((await post(`{"events":[${text}]}`, { 'content-type': 'application/json' })).status).toBe(202)
    const response = await server.call('/v1/traces/numbers', { key: secret })
    expect(await response.text()).toContain(`"exact":${numbers}`)
  })

  test('some invalid: the valid ones are stored, each invalid one is named', async () => {
    const bad = { ...event('bad'), occurredAt: '2026-02-30T00:00:00Z' }
    const [status, body] = await answer(await post({ events: [event('good1'), bad, event('good1'), 7] }))
    expect(status).toBe(202)
    expect(body).toMatchObject({ ok: false, accepted: 1, deduped: 1, rejected: 2 })
    const issues = body['errors'] as { index: number; code: string; path: string; id?: string }[]
    expect(issues.map(({ index, code }) => [index, code])).toEqual([
      [1, 'wrong_format'],
      [3, 'wrong_type'],
    ])
    expect(issues[0]).toMatchObject({ path: 'occurredAt', id: 'bad' })
    expect(await stored('good1')).toEqual(event('good1'))
    expect(await stored('bad')).toBeNull()
  })

  test('all invalid: 400 with the list, nothing stored', async () => {
    const [status, body] = await answer(
      await post({ events: [{ ...event('b1'), siteId: '' }, { id: 'b2' }] }),
    )
    expect([status, body['error']]).toEqual([400, 'invalid_body'])
    expect((body['issues'] as unknown[]).length).toBeGreaterThanOrEqual(2)
    expect(await stored('b1')).toBeNull()
  })

  test('NDJSON: one event per line, an invalid line rejects that line', async () => {
    const lines = [JSON.stringify(event('nd1')), '{"id":', '', JSON.stringify(event('nd2'))].join('\n')
    const [status, body] = await answer(await post(lines, { 'content-type': 'application/x-ndjson' }))
    expect(status).toBe(202)
    expect(body).toMatchObject({ ok: false, accepted: 2, deduped: 0, rejected: 1 })
  })

  test('NDJSON: a line that is not UTF-8 is rejected; the error of an empty body mentions lines', async () => {
    const headers = { 'content-type': 'application/x-ndjson' }
    const lines = [JSON.stringify(event('nd3')), '{"id":"\\xff"}', JSON.stringify(event('nd4'))].join('\n')
    const bytes = Buffer.from(lines, 'latin1')
    bytes[lines.indexOf('\\xff')] = 0xff
    const [status, body] = await answer(await post(new Uint8Array(bytes), headers))
    expect([status, body]).toEqual([202, expect.objectContaining({ ok: false, accepted: 2, rejected: 1 })])
    expect(body['errors']).toEqual([
      { path: '', code: 'wrong_format', message: 'is not valid UTF-8', index: 1 },
    ])
    const [emptyStatus, error] = await answer(await post('\n', headers))
    expect([emptyStatus, error['error'], error['hint']]).toEqual([
      400,
      'invalid_body',
      'Send 1 to 1000 events, one per line.',
    ])
  })

  test('gzip, deflate, br and zstd bodies are read', async () => {
    const coders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }
    for (const [encoding, compress] of Object.entries(coders)) {
      const bytes = new Uint8Array(compress(JSON.stringify({ events: [event(`enc-${encoding}`)] })))
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding }
      expect(await answer(await post(bytes, headers))).toEqual([202, { ok: true, accepted: 1, deduped: 0 }])
      expect(await stored(`enc-${encoding}`)).toEqual(event(`enc-${encoding}`))
    }
  })

  test('a key limited to sites accepts only those', async () => {
    const limited = await server.key('ingest', { siteIds: ['shop-acme'] })
    const foreign = event('site2', { siteId: 'other' })
    const [mixed, body] = await answer(await post({ events: [event('site1'), foreign] }, {}, limited))
    expect([mixed, body['accepted'], body['rejected']]).toEqual([202, 1, 1])
    const [foreignStatus, refused] = await answer(await post({ events: [foreign] }, {}, limited))
    expect([foreignStatus, refused['error'], refused['reason']]).toEqual([403, 'forbidden', 'wrong_site'])
    expect(await stored('site2')).toBeNull()
  })
})

describe('rejecting', () => {
  const cases: [string, () => Promise<Response>, number, string, string?][] = [
    ['no key', () => server.call('/v1/sdk/events', { body: {} }), 401, 'unauthorized', 'missing_bearer'],
    ['an unknown key', () => post({}, {}, `agtx_ik_${'x'.repeat(32)}`), 401, 'unauthorized', 'invalid_key'],
    ['a secret key', () => post({}, {}, secret), 403, 'forbidden', 'wrong_key_kind'],
    ['a browser', () => post({}, { origin: 'https://shop.example' }), 403, 'key_exposed'],
    ['an image', () => post('x', { 'content-type': 'image/png' }), 415, 'unsupported_media_type'],
    ['an unknown coding', () => post('x', { 'content-encoding': 'lzma' }), 415, 'unsupported_encoding'],
    ['broken JSON', () => post('{"events":[', { 'content-type': 'application/json' }), 400, 'invalid_json'],
    ['an array', () => post([]), 400, 'invalid_body'],
    ['no events', () => post({}), 400, 'invalid_body'],
    ['an empty list', () => post({ events: [] }), 400, 'invalid_body'],
    ['too many', () => post({ events: Array(1_001).fill(exampleEvent) }), 413, 'payload_too_large'],
    ['too large', () => post({ events: ['x'.repeat(8 * 1024 * 1024)] }), 413, 'payload_too_large'],
    ['a query', () => server.call('/v1/sdk/events?x=1', { body: {}, key: ingest }), 400, 'invalid_query'],
    ['corrupt gzip', () => post('no', { 'content-encoding': 'gzip' }), 400, 'invalid_body'],
  ]
  for (const [name, send, status, error, reason] of cases) {
    test(`${name}: ${status} ${error}`, async () => {
      const [got, body] = await answer(await send())
      expect([got, body['error'], body['reason']]).toEqual([status, error, reason])
      expect(typeof body['message']).toBe('string')
    })
  }

  test('a compression bomb is rejected without inflating it', async () => {
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(64 * 1024 * 1024, 32)))
    const [status, body] = await answer(await post(bomb, { 'content-encoding': 'gzip' }))
    expect([status, body['error']]).toEqual([413, 'payload_too_large'])
  })

  test('nothing of a rejected body is echoed', async () => {
    const canary = 'canary-5f1e'
    for (const body of [
      `{"events":[{"id":"${canary}"}]`,
      { events: [{ ...exampleEvent, outcome: canary.toUpperCase() }] },
    ]) {
      const text = await (await post(body, { 'content-type': 'application/json' })).text()
      expect(text.toLowerCase()).not.toContain(canary)
    }
  })

  test('an endless body without a key is answered at once', async () => {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    const first = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
    socket.on('error', () => undefined)
    socket.write('POST /v1/sdk/events HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n')
    const drip = setInterval(() => socket.write('5\r\nhello\r\n'), 20)
    const text = await first
    clearInterval(drip)
    socket.destroy()
    expect(text).toStartWith('HTTP/1.1 401 ')
  })

  test('a leaked key is recorded once, with its audit row', async () => {
    const leaked = await server.key('ingest', { label: 'leaked' })
    for (let i = 0; i < 2; i++) {
      expect((await post({}, { 'sec-fetch-site': 'cross-site' }, leaked)).status).toBe(403)
    }
    expect((await post({}, { 'sec-fetch-mode': 'cors' }, leaked)).status).toBe(400)
    const keys = await server.store.keys.list({ orgId: server.org.id, kind: 'ingest' })
    expect(keys.find((key) => key.label === 'leaked')?.exposedAtMs).not.toBeNull()
    const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 100, beforeSeq: null })
    expect(entries.filter((entry) => entry.action === 'ingest_key.exposed').length).toBe(2)
  })
})

test('rejected events are stored for the ingest-health page', async () => {
  await post({ events: [{ ...event('rejected'), type: 'NOT A TYPE' }] })
  const newest = async () => (await server.store.rejected.list({ orgId: server.org.id, limit: 1 }))[0]
  // It is stored after the response; only this test waits for it.
  while ((await newest())?.excerpt.includes('NOT A TYPE') !== true) await Bun.sleep(5)
  expect(await newest()).toMatchObject({ code: 'wrong_format', path: 'type' })
})

test('the published limits need no key', async () => {
  const [status, body] = await answer(await server.call('/v1/limits'))
  expect(status).toBe(200)
  expect(body).toMatchObject({
    eventsPerRequestMax: 1_000,
    bodyBytesMax: 8 * 1024 * 1024,
    eventBytesMax: 65_536,
  })
})
