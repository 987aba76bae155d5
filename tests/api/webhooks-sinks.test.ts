/** Sinks for closed networks behind the endpoint model: NDJSON files, syslog over UDP and TCP. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

interface EndpointJson {
  id: string
  url: string
  delivered: number
  pending: number
}
const create = async (hook: WebhookServer, url: string, overrides = {}) => {
  const body = { url, ...overrides }
  return (await hook.api<{ endpoint: EndpointJson }>('POST', '/v1/webhooks/endpoints', body, 201)).endpoint
}
const endpointOf = async (hook: WebhookServer, id: string) =>
  (await hook.api<{ endpoint: EndpointJson }>('GET', `/v1/webhooks/endpoints/${id}`)).endpoint

test('a file gets one event per line, equal to what was sent, and every message of a rule', async () => {
  using sinks = tempDir('sinks')
  await using hook = await webhookServer({ sinkDir: sinks.path })
  const endpoint = await create(hook, 'file:siem/events.ndjson')
  const absolute = await create(hook, `file://${sinks.join('other.ndjson')}`)
  expect([endpoint.url, absolute.url]).toEqual(['file:siem/events.ndjson', 'file:other.ndjson'])
  const rule = { kind: 'blocked_share', threshold: 0.1, eventsMin: 2, endpointId: endpoint.id }
  await hook.api('POST', '/v1/webhooks/rules', rule, 201)
  await hook.ingest([
    { id: 'a', metadata: { text: 'zeile\nzwei', n: 1.5 } },
    { id: 'b', outcome: 'success' },
  ])
  await hook.run()
  await hook.ingest([{ id: 'c' }])
  await hook.run()
  const lines = readFileSync(sinks.join('siem/events.ndjson'), 'utf8').trimEnd().split('\n')
  const parsed = lines.map((line) => JSON.parse(line) as { id?: string; type: string })
  expect(parsed.map(({ id, type }) => id ?? type)).toEqual(['a', 'b', 'alert.opened', 'c'])
  expect(parsed[0]).toMatchObject({ id: 'a', metadata: { text: 'zeile\nzwei', n: 1.5 } })
  expect(readFileSync(sinks.join('other.ndjson'), 'utf8').split('\n')).toHaveLength(4)
  expect(await endpointOf(hook, endpoint.id)).toMatchObject({ delivered: 3, pending: 0 })
})

test('a folder that rejects writes is a local failure: no retry is used up, and sending continues once it works', async () => {
  using sinks = tempDir('sinks')
  mkdirSync(sinks.join('real'))
  await using hook = await webhookServer({ sinkDir: sinks.join('real') })
  const endpoint = await create(hook, 'file:x.ndjson')
  // Root may write anywhere, so the folder is moved away instead of made read-only.
  const away = Bun.spawnSync(['mv', sinks.join('real'), sinks.join('away')])
  expect(away.exitCode).toBe(0)
  await hook.ingest([{ id: 'a' }])
  for (let i = 0; i < 6; i++) {
    await hook.run()
    hook.server.clock.move(60_000)
  }
  const { deliveries } = await hook.api<{ deliveries: { attempts: number; lastError: string }[] }>(
    'GET',
    '/v1/webhooks',
  )
  expect(deliveries).toMatchObject([
    { attempts: 0, lastError: expect.stringMatching(/^sink_not_writable: /) },
  ])
  Bun.spawnSync(['mv', sinks.join('away'), sinks.join('real')])
  chmodSync(sinks.join('real'), 0o700)
  await hook.run()
  expect(await endpointOf(hook, endpoint.id)).toMatchObject({ delivered: 1, pending: 0 })
})

test('syslog over UDP: one RFC 5424 datagram per event', async () => {
  await using hook = await webhookServer()
  const socket = createSocket('udp4')
  const got: string[] = []
  socket.on('message', (message) => got.push(message.toString()))
  const { promise: bound, resolve } = Promise.withResolvers<void>()
  socket.bind(0, '127.0.0.1', resolve)
  await bound
  try {
    const endpoint = await create(hook, `syslog+udp://127.0.0.1:${socket.address().port}`, {
      outcomes: ['blocked'],
    })
    await hook.ingest([{ id: 'a' }, { id: 'b' }, { id: 'c', outcome: 'success' }])
    await hook.run()
    await until(() => got.length >= 2)
    expect(
      got.map((message) =>
        message.replace(/^(<133>1 2026-06-23T12:00:00\.000Z) \S+ (sightglass) \d+ /, '$1 $2 '),
      ),
    ).toEqual([
      expect.stringMatching(/^<133>1 2026-06-23T12:00:00\.000Z sightglass authz\.evaluated - \{"id":"a",/),
      expect.stringMatching(/^<133>1 2026-06-23T12:00:00\.000Z sightglass authz\.evaluated - \{"id":"b",/),
    ])
    expect(await endpointOf(hook, endpoint.id)).toMatchObject({ delivered: 1 })
  } finally {
    socket.close()
  }
})

test('syslog over TCP: octet-counted frames; a closed port is a failed attempt', async () => {
  await using hook = await webhookServer()
  let text = ''
  const listener = createServer((socket) => socket.on('data', (data) => (text += data.toString())))
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  listener.listen(0, '127.0.0.1', resolve)
  await listening
  const address = listener.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const endpoint = await create(hook, `syslog+tcp://127.0.0.1:${port}`)
  await hook.ingest([{ id: 'ü' }, { id: 'b' }])
  await hook.run()
  await until(() => text.includes('"b"'))
  const frames: string[] = []
  for (let offset = 0; offset < text.length;) {
    const space = text.indexOf(' ', offset)
    const length = Number(text.slice(offset, space))
    frames.push(text.slice(space + 1, space + 1 + length))
    offset = space + 1 + length
  }
  const ids = frames.map((frame) => (JSON.parse(frame.slice(frame.indexOf(' - {') + 3)) as { id: string }).id)
  expect(ids).toEqual(['ü', 'b'])
  await new Promise((resolveClose) => listener.close(resolveClose))
  await hook.ingest([{ id: 'c' }])
  await hook.run()
  expect(await endpointOf(hook, endpoint.id)).toMatchObject({ delivered: 1, pending: 1 })
  const { deliveries } = await hook.api<{ deliveries: { attempts: number; lastError: string }[] }>(
    'GET',
    '/v1/webhooks?limit=1',
  )
  expect(deliveries).toMatchObject([
    { attempts: 1, lastError: expect.stringMatching(/^connection_refused: /) },
  ])
})

test('another organization cannot write into the same file', async () => {
  using sinks = tempDir('sinks')
  await using hook = await webhookServer({ sinkDir: sinks.path })
  await create(hook, 'file:mine.ndjson')
  const { store, clock } = hook.server
  const { newId } = await import('../../server/ids.ts')
  const { mintKey } = await import('../../server/identity/keys/keys.ts')
  const org = { id: newId('org'), slug: 'other', name: 'Other', createdAtMs: 1 }
  const auditFields = {
    orgId: org.id,
    actor: 'cli',
    action: 'org.created',
    target: org.id,
    metadata: {},
    occurredAtMs: 1,
  }
  await store.orgs.create({ org, audit: { id: newId('aud'), ...auditFields } })
  const { secret } = await mintKey(store, { orgId: org.id, kind: 'secret', label: 'x', actor: 'cli' }, clock)
  const addEndpoint = (url: string) =>
    hook.server.call('/v1/webhooks/endpoints', { key: secret, body: { url } })
  const refused = await addEndpoint(`file://${sinks.join('mine.ndjson')}`)
  expect([
    refused.status,
    ((await refused.json()) as { issues: { code: string }[] }).issues[0]?.code,
  ]).toEqual([400, 'url_blocked'])
  expect((await addEndpoint('file:theirs.ndjson')).status).toBe(201)
})
