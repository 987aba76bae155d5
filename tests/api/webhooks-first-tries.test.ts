/** Forty receivers that hang delay no other receiver of their organization: neither at its first try nor later. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { event } from '../support/events.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(120_000)

const hanging = 40
let server: TestServer
let receiver: Receiver
let secret: string
let ingest: string

beforeAll(async () => {
  receiver = await startReceiver()
  const webhooks = { backoffMs: [1_000, 1_000, 1_000], allow: ['127.0.0.0/8'], sinkDir: null }
  server = await testServer({
    webhooks: { ...webhooks, caFile: null, proxy: null, cron: '* * * * * *' },
    rateLimits: { gateway: null, ingest: null, dashboard: null } as never,
  })
  secret = await server.key('secret')
  ingest = await server.key('ingest')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

async function createEndpoint(path: string): Promise<string> {
  const body = { url: receiver.url + path }
  const response = await server.call('/v1/webhooks/endpoints', { key: secret, body })
  expect(response.status).toBe(201)
  return ((await response.json()) as { endpoint: { id: string } }).endpoint.id
}

async function postEvent(id: string): Promise<void> {
  const response = await server.call('/v1/sdk/events', { key: ingest, body: { events: [event(id)] } })
  expect(response.status).toBe(202)
}

/** Deliveries to hanging receivers whose attempt of this number timed out, so that its slot was free again. */
async function timedOut(attempt: number): Promise<number> {
  const response = await server.call('/v1/webhooks?limit=200', { key: secret })
  const { deliveries } = (await response.json()) as { deliveries: { url: string; attempts: number }[] }
  return deliveries.filter(({ url, attempts }) => url.includes('/hang/') && attempts >= attempt).length
}

test('all untried: one event for forty that hang and five that answer, which wait for no timeout', async () => {
  for (let n = 0; n < hanging; n++) {
    await createEndpoint(`/hang/${n}`)
    if (n % 10 === 5) await createEndpoint(`/ok/among-${n}`)
  }
  await createEndpoint('/ok/last')
  await postEvent('evt_first')
  await receiver.wait('/ok/', 5, 60_000)
  expect(await timedOut(1)).toBe(0)
})

test('forty known to hang, whose retries hold all slots they may: a new receiver waits for none of them', async () => {
  await receiver.wait('/hang/', hanging + 12, 90_000)
  await createEndpoint('/ok/new')
  await postEvent('evt_new')
  await receiver.wait('/ok/new', 1, 90_000)
  expect(await timedOut(2)).toBe(0)
})
