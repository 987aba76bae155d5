/** Deliveries are sent within seconds and without cron, also beside organizations whose receivers hang. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { startReceiver } from '../support/receiver.ts'

setDefaultTimeout(120_000)

/** A cron expression that matches once in years, so every delivery was triggered by a wake-up. */
const args = [
  '--dispatch-cron',
  '0 0 29 2 *',
  '--webhook-backoff',
  '1s,1s,1s',
  '--webhook-allow',
  '127.0.0.0/8',
  '--rate-limit-gateway',
  'off',
]

interface Org {
  post<T>(path: string, body: unknown, status?: number): Promise<T>
  /** Posts one event; resolves when it is acknowledged. */
  ingest(id: string): Promise<void>
}

async function keyOf(appliance: Appliance, org: string, kind: string): Promise<string> {
  const { code, stdout, stderr } = await appliance.cli(
    'key',
    'create',
    '--kind',
    kind,
    '--org',
    org,
    '--label',
    kind,
    '--json',
  )
  if (code !== 0) throw new Error(stderr)
  return (JSON.parse(stdout) as { key: string }).key
}

async function orgOf(appliance: Appliance, slug: string): Promise<Org> {
  if (slug !== 'default') await appliance.cli('org', 'create', '--name', slug, '--slug', slug)
  const secret = await keyOf(appliance, slug, 'secret')
  let ingest: string | null = null
  const send = async <T>(path: string, key: string, body: unknown, status: number): Promise<T> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(appliance.url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (response.status !== status) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text) as T
  }
  return {
    post: (path, body, status = 202) => send(path, secret, body, status),
    async ingest(id) {
      ingest ??= await keyOf(appliance, slug, 'ingest')
      await send('/v1/sdk/events', ingest, { events: [event(id)] }, 202)
    },
  }
}

test('test deliveries, new events, retries and a resumed endpoint need no cron; nor does a restart', async () => {
  await using receiver = await startReceiver()
  const appliance = await startAppliance({ args })
  const org = await orgOf(appliance, 'default')

  await org.post('/v1/webhooks/test', { url: `${receiver.url}/ok/direct` })
  await receiver.wait('/ok/direct', 1)
  expect((await appliance.cli('webhook', 'test', `${receiver.url}/ok/cli`)).code).toBe(0)
  await receiver.wait('/ok/cli', 1)

  await org.post('/v1/webhooks/test', { url: `${receiver.url}/flaky/2` })
  await receiver.wait('/flaky/2', 3)

  const base = '/v1/webhooks/endpoints'
  const url = `${receiver.url}/ok/events`
  const { endpoint } = await org.post<{ endpoint: { id: string } }>(base, { url }, 201)
  await org.ingest('evt_1')
  const acknowledgedMs = Date.now()
  const [first] = await receiver.wait('/ok/events', 1)
  expect(JSON.parse(first!.body)).toMatchObject({ type: 'trace.batch', data: { events: [{ id: 'evt_1' }] } })
  console.log(`event acknowledged to delivery received: ${first!.atMs - acknowledgedMs} ms`)

  await org.post(`${base}/${endpoint.id}/pause`, {}, 200)
  await org.ingest('evt_2')
  await org.post(`${base}/${endpoint.id}/resume`, {}, 200)
  await receiver.wait('/ok/events', 2)
  await org.post(`${base}/${endpoint.id}/replay`, { from: 0 })
  await receiver.wait('/ok/events', 3)

  // A delivery that waits for a retry when the process ends is sent after the next start.
  await org.post('/v1/webhooks/test', { url: `${receiver.url}/flaky/1/restart` })
  await receiver.wait('/flaky/1/restart', 1)
  await appliance.kill()
  await using again = await startAppliance({ args, dataDir: appliance.dataDir })
  await receiver.wait('/flaky/1/restart', 2)
  expect(again.url).toStartWith('http://')
})

test('ten organizations with 600 deliveries to 600 hanging origins delay no other organization', async () => {
  await using receiver = await startReceiver('0.0.0.0')
  await using appliance = await startAppliance({ args })
  const { port } = new URL(receiver.url)
  const victim = await orgOf(appliance, 'victim')
  const url = `${receiver.url}/ok/endpoint`
  await victim.post('/v1/webhooks/endpoints', { url }, 201)
  for (let n = 0; n < 10; n++) {
    const hostile = await orgOf(appliance, `hostile-${n}`)
    const urls = Array.from({ length: 60 }, (_, i) => `http://127.1.${n}.${i + 1}:${port}/hang/${n}`)
    await Promise.all(urls.map((hanging) => hostile.post('/v1/webhooks/test', { url: hanging })))
  }
  await receiver.wait('/hang', 20)
  const hanging = receiver.received('/hang').length
  const tookMs: number[] = []
  for (let round = 1; round <= 2; round++) {
    await victim.ingest(`evt_${round}`)
    await victim.post('/v1/webhooks/test', { url: `${receiver.url}/ok/direct` })
    const sentMs = Date.now()
    const arrived = [await receiver.wait('/ok/direct', round), await receiver.wait('/ok/endpoint', round)]
    tookMs.push(...arrived.map((requests) => requests[round - 1]!.atMs - sentMs))
    // The first attempts time out, and others take their slots.
    if (round < 2) await receiver.wait('/hang', hanging + 5, 30_000)
  }
  console.log(`beside ten hostile organizations, to the healthy receiver: ${tookMs.join(', ')} ms`)
  expect(Math.max(...tookMs)).toBeLessThan(5_000)
  // The hostile ones are served too, but never with every slot.
  expect(receiver.received('/hang').length).toBeGreaterThan(24)
})
