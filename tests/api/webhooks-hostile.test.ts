/** Hostile receivers and names: each ends as one classified failed attempt, in time, with constant memory. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { selfSigned } from '../support/certificate.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { newId } from '../../server/ids.ts'
import { startLog } from '../../server/log.ts'
import { startWebhooks, type Webhooks } from '../../server/webhooks/start.ts'
import { scheduleDelivery } from '../../server/webhooks/delivery/deliveries.ts'
import { createEndpoint, deleteEndpoint, orgSecret } from '../../server/webhooks/endpoints/endpoints.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { testServer, type TestServer } from '../support/server.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

const timeoutMs = 1_500

let server: TestServer
let receiver: Receiver
let folder: TempDir
let webhooks: Webhooks
/** For receivers that answer: a busy machine needs longer than the timeout of the others. */
let patient: Webhooks
const patientMs = 30_000
const lookups: string[] = []
const names = new Map<string, string[][]>() // the addresses of a name, per lookup

beforeAll(async () => {
  receiver = await startReceiver()
  server = await testServer()
  folder = tempDir('hostile')
  webhooks = start([])
  patient = start([], { timeoutMs: patientMs })
  await orgSecret(webhooks, { orgId: server.org.id, actor: 'cli' })
})
afterAll(async () => {
  await webhooks.stop()
  await patient.stop()
  await server[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  folder.remove()
})

function start(allow: string[], overrides: { ca?: string; timeoutMs?: number } = {}): Webhooks {
  return startWebhooks({
    config: {
      cron: '',
      backoffMs: [60_000, 60_000, 60_000],
      allow: ['127.0.0.1', ...allow],
      sinkDir: null,
      caFile: overrides.ca ?? null,
      proxy: null,
    },
    dataDir: folder.path,
    store: server.store,
    clock: server.clock,
    log: startLog({ level: 'error', clock: server.clock }),
    version: 'test',
    timeoutMs: overrides.timeoutMs ?? timeoutMs,
    async resolver(name) {
      lookups.push(name)
      const answers = names.get(name)
      if (answers === undefined) throw Object.assign(new Error(name), { code: 'ENOTFOUND' })
      return answers.length > 1 ? answers.shift()! : answers[0]!
    },
  })
}

/** One attempt at `url`, without the API's check of URLs. */
async function attemptAt(url: string, sender = webhooks) {
  const id = newId('wh')
  const now = server.clock.now()
  const { id: orgId } = server.org
  const audit = {
    id: newId('aud'),
    orgId,
    actor: 'cli',
    action: 'test.made',
    target: id,
    metadata: {},
    occurredAtMs: now,
  }
  const lane = `lane ${id}`
  const delivery = { id, orgId, endpointId: null, url, lane, body: '{}', scheduledAtMs: now }
  await server.store.webhooks.schedule({ delivery, audit })
  await sender.run(now)
  await sender.idle()
  const deliveryRecord = (await server.store.webhooks.find({ orgId, id }))!
  expect(deliveryRecord.attempts).toHaveLength(1)
  return { ...deliveryRecord.attempts[0]!, deliveryStatus: deliveryRecord.delivery.status }
}

test.each([
  ['/hang', 'timeout', null, timeoutMs],
  ['/drip-head', 'timeout', null, timeoutMs],
  ['/continue', 'timeout', null, timeoutMs],
  ['/drip-body/500', 'http_500', 500, timeoutMs],
  ['/endless/500', 'http_500', 500, 0],
  ['/bomb/500', 'http_500', 500, 0],
  ['/short', 'http_500', 500, 0],
  ['/garbage', 'bad_answer', null, 0],
  ['/reset', 'connection_reset', null, 0],
  ['/close', 'connection_reset', null, 0],
  ['/status/999', 'http_999', 999, 0],
  ['/status/304', 'http_304', 304, 0],
])('%s ends as %s', async (path, code, status, leastMs) => {
  const isTimed = leastMs > 0
  const attempt = await attemptAt(receiver.url + path, isTimed ? webhooks : patient)
  expect(attempt).toMatchObject({ status, counted: true, deliveryStatus: 'pending' })
  expect(attempt.error).toStartWith(`${code}: `)
  expect(attempt.durationMs).toBeWithin(leastMs - 20, isTimed ? timeoutMs + 1_000 : patientMs)
  expect(attempt.responseExcerpt.length).toBeLessThanOrEqual(16 * 1024)
})

test('the status decides: an endless or compressed 200 counts as delivered, and only its start is read', async () => {
  for (const path of ['/endless', '/bomb']) {
    const attempt = await attemptAt(receiver.url + path, patient)
    expect([path, attempt.deliveryStatus, attempt.status]).toEqual([path, 'delivered', 200])
    expect(attempt.responseExcerpt.length).toBeLessThanOrEqual(16 * 1024)
  }
})

test('fifty hostile responses leave memory constant', async () => {
  const paths = ['/endless/500', '/bomb/500', '/endless', '/bomb', '/garbage']
  await attemptAt(receiver.url + paths[0]!)
  Bun.gc(true)
  const beforeBytes = process.memoryUsage().rss
  for (let i = 0; i < 50; i++) await attemptAt(receiver.url + paths[i % paths.length]!)
  Bun.gc(true)
  expect(process.memoryUsage().rss - beforeBytes).toBeLessThan(64 * 1024 * 1024)
}, 90_000)

test('names: one forbidden address among allowed ones, metadata, unknown', async () => {
  const { port } = new URL(receiver.url)
  names.set('mixed.test', [['127.0.0.1', '10.0.0.1']])
  names.set('meta.test', [['169.254.169.254']])
  names.set('good.test', [['127.0.0.1']])
  const unknown = (await attemptAt('http://none.test/')).error
  expect(unknown).toStartWith('url_blocked: ')
  expect((await attemptAt('http://meta.test/')).error).toBe(unknown)
  expect((await attemptAt(`http://mixed.test:${port}/ok/mixed`)).error).toBe(unknown)
  expect((await attemptAt(`http://good.test:${port}/ok/good`)).status).toBe(200)
  expect(receiver.received('/ok/mixed')).toEqual([])
  expect(receiver.received('/ok/good')[0]?.headers['host']).toBe(`good.test:${port}`)
})

test('an endpoint is created without a lookup, so neither response nor duration reveals internal names', async () => {
  names.set('inside.test', [['10.0.0.1']])
  const auditActor = { orgId: server.org.id, actor: 'cli' }
  lookups.length = 0
  const hosts = ['inside.test', 'none.test', 'receiver.corp', 'metadata.google.internal']
  for (const host of hosts) {
    const { endpoint } = await createEndpoint(webhooks, auditActor, { url: `http://${host}/in` })
    expect(endpoint).toMatchObject({ url: `http://${host}/in`, status: 'active' })
    await deleteEndpoint(webhooks, auditActor, endpoint.id)
    await scheduleDelivery(webhooks, auditActor, { url: `http://${host}/in`, payload: '{}' })
  }
  expect(lookups).toEqual([])
  await webhooks.run(server.clock.now())
  await webhooks.idle()
  const query = { orgId: auditActor.orgId, status: null, endpointId: null, beforeSeq: null }
  const { deliveries } = await server.store.webhooks.list({ ...query, limit: hosts.length, bytesMax: 1e6 })
  const errors = deliveries.map(({ lastError }) => lastError)
  expect(new Set(errors).size).toBe(1)
  expect(errors[0]).toStartWith('url_blocked: ')
})

test('rebinding: the attempt connects to the address it checked, and each attempt checks again', async () => {
  const { port } = new URL(receiver.url)
  // The second lookup returns an internal address; one attempt looks up only once.
  names.set('rebind.test', [['127.0.0.1'], ['10.0.0.1']])
  const first = await attemptAt(`http://rebind.test:${port}/ok/rebind`)
  expect(first.status).toBe(200)
  expect(names.get('rebind.test')).toEqual([['10.0.0.1']])
  const second = await attemptAt(`http://rebind.test:${port}/ok/rebind`)
  expect(second.error).toStartWith('url_blocked: ')
  expect(receiver.received('/ok/rebind')).toHaveLength(1)
})

test('certificates: rejected unless they have the name and a known authority', async () => {
  using certificates = tempDir('tls')
  const { key, cert } = selfSigned('hooks.test')
  const certPath = certificates.join('cert.pem')
  writeFileSync(certPath, cert)
  const tls = { key, cert }
  const https = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => new Response('ok') })
  names.set('hooks.test', [['127.0.0.1']])
  names.set('other.test', [['127.0.0.1']])
  const trusting = start([], { ca: certPath })
  try {
    const attemptHost = (name: string, sender: Webhooks) =>
      attemptAt(`https://${name}:${https.port}/`, sender)
    expect((await attemptHost('hooks.test', webhooks)).error).toStartWith('certificate_refused: ')
    expect((await attemptHost('hooks.test', trusting)).status).toBe(200)
    expect((await attemptHost('other.test', trusting)).error).toStartWith('certificate_refused: ')
    // A receiver without TLS waits for the rest of a request that never arrives.
    const plain = await attemptAt(receiver.url.replace('http', 'https'), trusting)
    expect(plain.error).toStartWith('timeout: ')
  } finally {
    await trusting.stop()
    await https.stop(true)
  }
})

test('proxy variables of the environment are ignored', async () => {
  // `server/system/environment.ts` removes them at start; here they name an unreachable proxy.
  const { isolateEnvironment } = await import('../../server/system/environment.ts')
  const environment: Record<string, string> = {
    HTTP_PROXY: 'http://127.0.0.1:1',
    https_proxy: 'http://127.0.0.1:1',
  }
  isolateEnvironment([], environment)
  expect(environment).toEqual({})
})

test('a suspended process is not a failure of the receiver', async () => {
  const { attempt } = await import('../../server/webhooks/delivery/dispatcher.ts')
  const parts = { ...webhooks, timeoutMs: 300, ca: null, proxy: null }
  const delivery = (
    await server.store.webhooks.list({
      orgId: server.org.id,
      status: null,
      endpointId: null,
      limit: 1,
      bytesMax: 1,
      beforeSeq: null,
    })
  ).deliveries[0]!
  const claim = {
    leaseId: 'x',
    isAhead: false,
    retryWaitsMs: null,
    lane: 'x',
    delivery: { ...delivery, url: `${receiver.url}/hang` },
    pendingSinceMs: 0,
    encryptedSecrets: [],
    probe: false,
    failingSinceMs: null,
  }
  const work = attempt(parts, claim, new AbortController().signal)
  setTimeout(() => Bun.sleepSync(2_600), 20)
  expect((await work).failure).toMatchObject({ code: 'interrupted', isLocal: true })
})
