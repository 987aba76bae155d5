/** `waitingFor`: a pending delivery says why it waits, with receivers that fail and hang. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { webhookServer } from '../support/webhook-server.ts'
import { makeClaim } from '../store/webhook-make.ts'

// Each test waits for runs of the dispatcher, and for longer on a busy machine.
setDefaultTimeout(90_000)

interface WaitJson {
  reason: string
  until?: string
  node?: string | null
  running?: number
  limit?: number
}

interface DeliveryJson {
  id: string
  url: string
  status: string
  nextAttemptAt: string | null
  waitingFor: WaitJson | null
}

const webhooks = {
  cron: '* * * * * *',
  backoffMs: [60_000, 300_000, 1_800_000],
  allow: ['127.0.0.0/8'],
  sinkDir: null,
  caFile: null,
  proxy: null,
}

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver('0.0.0.0')
})
afterAll(() => receiver[Symbol.asyncDispose]())

/** Every address is an origin of its own, so a lane of its own. */
const urlOf = (address: number, path: string) =>
  `${receiver.url.replace('127.0.0.1', `127.0.1.${address}`)}${path}`

/** Calls of one organization of a server. */
function callsOf(server: TestServer, key: string) {
  async function api<T>(path: string, body?: unknown): Promise<T> {
    const response = await server.call(path, body === undefined ? { key } : { key, body })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text) as T
  }

  async function send(url: string): Promise<string> {
    return (await api<{ deliveryId: string }>('/v1/webhooks/test', { url })).deliveryId
  }

  const show = (id: string) => api<DeliveryJson>(`/v1/webhooks/${id}`)
  const list = async () => (await api<{ deliveries: DeliveryJson[] }>('/v1/webhooks?limit=200')).deliveries

  async function waitFor(id: string, reason: string): Promise<DeliveryJson> {
    for (const endMs = performance.now() + 30_000; ;) {
      const delivery = await show(id)
      if (delivery.waitingFor?.reason === reason) return delivery
      if (performance.now() > endMs) throw new Error(`still ${JSON.stringify(delivery)}`)
      await Bun.sleep(20)
    }
  }

  return { api, send, show, list, waitFor }
}

test('a running attempt, its lane, a retry, and no reason after the end', async () => {
  await using server = await testServer({ webhooks })
  const { send, show, list, waitFor } = callsOf(server, await server.key('secret'))

  const hanging = [await send(urlOf(1, '/hang/a')), await send(urlOf(1, '/hang/b'))]
  await receiver.wait('/hang/', 2)
  const third = await send(urlOf(1, '/hang/c'))
  expect((await waitFor(third, 'lane')).waitingFor).toEqual({ reason: 'lane', running: 2, limit: 2 })
  for (const id of hanging) {
    const { waitingFor } = await waitFor(id, 'response')
    // The timeout of an attempt is 15 s.
    expect(Date.parse(waitingFor!.until!) - server.clock.now()).toBeWithin(1, 15_001)
  }
  expect(receiver.received('/hang/c')).toEqual([])

  const failing = await send(urlOf(2, '/status/500'))
  const retry = await waitFor(failing, 'retry')
  expect(retry.waitingFor).toEqual({ reason: 'retry', until: retry.nextAttemptAt! })
  expect((await list()).find(({ id }) => id === failing)?.waitingFor).toEqual(retry.waitingFor)

  const delivered = await send(urlOf(3, '/ok/waiting'))
  await receiver.wait('/ok/waiting', 1)
  for (let delivery = await show(delivered); delivery.waitingFor !== null;) delivery = await show(delivered)
  expect((await show(delivered)).status).toBe('delivered')
})

test('a paused endpoint makes its deliveries wait, a resumed one does not', async () => {
  await using server = await testServer({ webhooks })
  const { api, waitFor } = callsOf(server, await server.key('secret'))
  const created = await api<{ endpoint: { id: string } }>('/v1/webhooks/endpoints', {
    url: urlOf(4, '/status/503'),
  })
  const { id } = created.endpoint
  const { deliveryId } = await api<{ deliveryId: string }>(`/v1/webhooks/endpoints/${id}/test`, {})
  await waitFor(deliveryId, 'retry')
  await api(`/v1/webhooks/endpoints/${id}/pause`, {})
  expect((await waitFor(deliveryId, 'paused')).waitingFor).toEqual({ reason: 'paused' })
  await api(`/v1/webhooks/endpoints/${id}/resume`, {})
  await waitFor(deliveryId, 'retry')
})

test('deliveries beyond the slots wait for one, and the answer counts the attempts that run', async () => {
  await using server = await testServer({ webhooks })
  const { send, list } = callsOf(server, await server.key('secret'))
  for (let address = 20; address < 100; address++) await send(urlOf(address, '/hang/slot'))
  let waits: WaitJson[] = []
  for (const endMs = performance.now() + 30_000; waits.length === 0 && performance.now() < endMs;) {
    waits = (await list()).flatMap(({ waitingFor }) => (waitingFor?.reason === 'slot' ? [waitingFor] : []))
    await Bun.sleep(10)
  }
  expect(waits.length).toBeGreaterThan(0)
  for (const { running, limit } of waits) {
    expect(limit).toBe(32)
    // Receivers that were never tried leave 16 slots free, or 20 once they hang.
    expect(running).toBeWithin(12, 33)
  }
})

test('before the first run: due, or sent again; a lease names its node', async () => {
  await using hook = await webhookServer()
  const { server, key } = hook
  const { api, send, show } = callsOf(server, key)
  const id = await send(urlOf(5, '/status/410'))
  expect((await show(id)).waitingFor).toEqual({ reason: 'dispatch' })
  await hook.run()
  expect(await show(id)).toMatchObject({ status: 'dead_letter', waitingFor: null })
  await api(`/v1/webhooks/${id}/replay`, {})
  expect((await show(id)).waitingFor).toEqual({ reason: 'replay' })

  const now = server.clock.now()
  const claim = makeClaim('node/b/lea_1', { leaseMs: 30_000, dueMs: now })
  const claims = await server.store.webhooks.recordAndClaim({ now, outcomes: [], released: [], claim })
  expect(claims.map(({ delivery }) => delivery.id)).toEqual([id])
  const until = new Date(now + 30_000).toISOString()
  expect((await show(id)).waitingFor).toEqual({ reason: 'lease', node: 'node/b', until })
  server.clock.move(30_001)
  expect((await show(id)).waitingFor).toEqual({ reason: 'replay' })
})
