/** Webhooks of the executable survive crashes and suspensions against a real receiver: nothing lost, ids unchanged. */
import { expect, test } from 'bun:test'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { startReceiver, type Received } from '../support/receiver.ts'
import { tempDir } from '../support/temp-dir.ts'

const args = [
  '--dispatch-cron',
  '* * * * * *',
  '--webhook-backoff',
  '1s,1s,1s',
  '--webhook-allow',
  '127.0.0.0/8',
]

interface DeliveryJson {
  id: string
  status: string
  attempts: number
  attemptLog: { status: number | null; error: string | null }[]
}

async function secretKey(appliance: Appliance): Promise<string> {
  const { stdout } = await appliance.cli('key', 'create', '--kind', 'secret', '--label', 'test', '--json')
  return (JSON.parse(stdout) as { key: string }).key
}

async function call<T>(appliance: Appliance, key: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(appliance.url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

const schedule = (appliance: Appliance, key: string, url: string) =>
  call<{ deliveryId: string }>(appliance, key, '/v1/webhooks/test', { url, payload: { hello: 'world' } })

async function until(
  appliance: Appliance,
  key: string,
  id: string,
  is: (delivery: DeliveryJson) => boolean,
  timeoutMs = 15_000,
): Promise<DeliveryJson> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const delivery = await call<DeliveryJson>(appliance, key, `/v1/webhooks/${id}`)
    if (is(delivery)) return delivery
    if (performance.now() > deadlineMs) throw new Error(`still ${JSON.stringify(delivery)}`)
    await Bun.sleep(50)
  }
}
const ended = ({ status }: DeliveryJson) => status !== 'pending'
const idsOf = (requests: Received[]) => new Set(requests.map(({ headers }) => headers['webhook-id']))

test.concurrent(
  'a delivery succeeds, or becomes a dead letter after four attempts under one id and is replayed',
  async () => {
    await using receiver = await startReceiver()
    await using appliance = await startAppliance({ args })
    const key = await secretKey(appliance)
    const good = await schedule(appliance, key, `${receiver.url}/ok`)
    const bad = await schedule(appliance, key, `${receiver.url}/status/500`)
    expect(await until(appliance, key, good.deliveryId, ended)).toMatchObject({
      status: 'delivered',
      attempts: 1,
    })
    expect(await until(appliance, key, bad.deliveryId, ended)).toMatchObject({
      status: 'dead_letter',
      attempts: 4,
    })
    expect(receiver.received('/status/500')).toHaveLength(4)
    expect(idsOf(receiver.received('/status/500'))).toEqual(new Set([bad.deliveryId]))
    await call(appliance, key, `/v1/webhooks/${bad.deliveryId}/replay`, {})
    const again = await until(appliance, key, bad.deliveryId, ended)
    expect([again.attempts, again.attemptLog.length]).toEqual([4, 8])
    expect(idsOf(receiver.received('/status/500'))).toEqual(new Set([bad.deliveryId]))
  },
  60_000,
)

test.concurrent(
  'after kill -9 between send and record the delivery is sent again under the same id and uses no retry',
  async () => {
    await using receiver = await startReceiver()
    using folder = tempDir('webhook-kill')
    const dataDir = folder.join('data')
    let appliance = await startAppliance({ args, dataDir })
    const key = await secretKey(appliance)
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      const { deliveryId } = await schedule(appliance, key, `${receiver.url}/slow/700/${i}`)
      ids.push(deliveryId)
      // The receiver has the request; its answer is still to come when the process dies.
      await receiver.wait(`/slow/700/${i}`, 1)
      await appliance.kill()
      appliance = await startAppliance({ args, dataDir })
    }
    for (const [i, id] of ids.entries()) {
      const delivery = await until(appliance, key, id, ended)
      expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 })
      expect(delivery.attemptLog[0]?.error).toStartWith('interrupted: ')
      const requests = receiver.received(`/slow/700/${i}`)
      expect(requests.length).toBeGreaterThanOrEqual(2)
      expect(idsOf(requests)).toEqual(new Set([id]))
    }
    await appliance.stop()
  },
  60_000,
)

test.concurrent(
  'SIGTERM waits for attempts in flight, and interrupted ones are sent again without using a retry',
  async () => {
    await using receiver = await startReceiver()
    using folder = tempDir('webhook-term')
    const dataDir = folder.join('data')
    const first = await startAppliance({ args, dataDir })
    const key = await secretKey(first)
    const quick = await schedule(first, key, `${receiver.url}/slow/1500`)
    const hanging = await schedule(first, key, `${receiver.url}/hang`)
    await receiver.wait('/slow/1500', 1)
    await receiver.wait('/hang', 1)
    const startedMs = performance.now()
    expect((await first.stop()).code).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(12_000)

    const second = await startAppliance({ args, dataDir })
    expect(await until(second, key, quick.deliveryId, ended)).toMatchObject({
      status: 'delivered',
      attempts: 1,
    })
    expect(receiver.received('/slow/1500')).toHaveLength(1)
    await receiver.wait('/hang', 2) // at once after the start, not after a wait
    const cut = await until(second, key, hanging.deliveryId, ({ attemptLog }) => attemptLog.length > 0)
    expect(cut).toMatchObject({ status: 'pending', attempts: 0 })
    expect(cut.attemptLog[0]?.error).toStartWith('interrupted: ')
    await second.kill()
  },
  60_000,
)

test.concurrent(
  'after SIGSTOP past a lease the delivery is sent again under the same id and uses no retry',
  async () => {
    await using receiver = await startReceiver()
    await using appliance = await startAppliance({ args })
    const key = await secretKey(appliance)
    const { deliveryId } = await schedule(appliance, key, `${receiver.url}/flaky-hang`)
    await receiver.wait('/flaky-hang', 1)
    process.kill(appliance.pid, 'SIGSTOP')
    await Bun.sleep(32_000) // a lease is 30 s
    process.kill(appliance.pid, 'SIGCONT')
    const delivery = await until(appliance, key, deliveryId, ended, 20_000)
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 })
    expect(delivery.attemptLog.some(({ error }) => error?.startsWith('interrupted: '))).toBe(true)
    expect(idsOf(receiver.received('/flaky-hang'))).toEqual(new Set([deliveryId]))
  },
  90_000,
)
