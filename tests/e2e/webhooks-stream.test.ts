/** Endpoints of the real executable: batches over pauses and crashes without a gap, alerts, file and syslog. */
import { expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { existsSync, readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { startReceiver } from '../support/receiver.ts'
import { tempDir } from '../support/temp-dir.ts'

const args = [
  '--dispatch-cron',
  '* * * * * *',
  '--webhook-backoff',
  '1s,1s,1s',
  '--webhook-allow',
  '127.0.0.0/8',
]

async function keyOf(appliance: Appliance, kind: string): Promise<string> {
  const { stdout } = await appliance.cli('key', 'create', '--kind', kind, '--label', 'test', '--json')
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

interface Made {
  endpoint: { id: string }
  secret: string
}

async function poll(condition: string, is: () => boolean, timeoutMs = 10_000): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!is()) {
    if (performance.now() > deadlineMs) throw new Error(`${condition}: not within ${timeoutMs} ms`)
    await Bun.sleep(30)
  }
}

test('pause, resume and two kill -9: no event and no sequence number missing', async () => {
  await using receiver = await startReceiver()
  using folder = tempDir('webhook-stream')
  const dataDir = folder.join('data')
  let appliance = await startAppliance({ args, dataDir })
  const secret = await keyOf(appliance, 'secret')
  const ingest = await keyOf(appliance, 'ingest')
  const endpointSecret = await call<Made>(appliance, secret, '/v1/webhooks/endpoints', {
    url: `${receiver.url}/ok`,
  })
  const { id } = endpointSecret.endpoint
  const sentIds: string[] = []
  const send = async (count: number) => {
    const events = Array.from({ length: count }, () =>
      event(`evt_${sentIds.length + 1}_${Math.floor(performance.now())}`),
    )
    events.forEach((testEvent, n) => (testEvent.id = `evt_${sentIds.length + n + 1}`))
    await call(appliance, ingest, '/v1/sdk/events', { events })
    sentIds.push(...events.map((testEvent) => testEvent.id))
  }
  const act = (action: string) => call(appliance, secret, `/v1/webhooks/endpoints/${id}/${action}`, {})
  await send(150)
  await receiver.wait('/ok', 2)
  await act('pause')
  await send(120)
  await Bun.sleep(1_500)
  const whilePaused = receiver.received('/ok').length
  await appliance.kill()
  appliance = await startAppliance({ args, dataDir })
  await Bun.sleep(1_500)
  expect(receiver.received('/ok')).toHaveLength(whilePaused)
  await act('resume')
  await send(80)
  await receiver.wait('/ok', whilePaused + 1)
  await appliance.kill()
  appliance = await startAppliance({ args, dataDir })
  await send(10)

  const arrived = () => {
    const batches = receiver
      .received('/ok')
      .map(({ body }) => JSON.parse(body) as { data: { sequence: number; events: { id: string }[] } })
    return new Map(batches.map(({ data }) => [data.sequence, data.events.map((batchEvent) => batchEvent.id)]))
  }
  const allIds = () => [...arrived().entries()].toSorted(([a], [b]) => a - b).flatMap(([, ids]) => ids)
  await poll('all events', () => allIds().length >= sentIds.length)
  expect(allIds()).toEqual(sentIds)
  const numbers = [...arrived().keys()].toSorted((a, b) => a - b)
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
  for (const { body, headers } of receiver.received('/ok')) {
    expect(new Webhook(endpointSecret.secret).verify(body, headers)).toBeTruthy()
  }
  await appliance.stop()
}, 90_000)

test('an alert opens and resolves, and a file and a syslog receiver get every message', async () => {
  await using receiver = await startReceiver()
  using sinks = tempDir('webhook-sinks')
  const syslog = createSocket('udp4')
  const lines: string[] = []
  syslog.on('message', (message) => lines.push(message.toString()))
  await new Promise<void>((resolve) => syslog.bind(0, '127.0.0.1', resolve))
  await using appliance = await startAppliance({ args: [...args, '--sink-dir', sinks.path] })
  const secret = await keyOf(appliance, 'secret')
  const ingest = await keyOf(appliance, 'ingest')
  const add = (url: string, fields = {}) =>
    call<Made>(appliance, secret, '/v1/webhooks/endpoints', { url, ...fields })
  const alerts = await add(`${receiver.url}/ok/alerts`, { types: ['sdk.error'] })
  await add('file:events.ndjson')
  await add(`syslog+udp://127.0.0.1:${syslog.address().port}`)
  const rule = { endpointId: alerts.endpoint.id, kind: 'blocked_share', threshold: 0.5, eventsMin: 5 }
  await call(appliance, secret, '/v1/webhooks/rules', rule)
  const send = (from: number, count: number, outcome: string) => {
    const events = Array.from({ length: count }, (_, n) => event(`evt_${from + n}`, { outcome }))
    return call(appliance, ingest, '/v1/sdk/events', { events })
  }
  await send(1, 6, 'blocked')
  const types = () =>
    receiver.received('/ok/alerts').map(({ body }) => (JSON.parse(body) as { type: string }).type)
  await poll('alert.opened', () => types().length === 1)
  await send(7, 10, 'success')
  await poll('alert.resolved', () => types().length === 2)
  expect(types()).toEqual(['alert.opened', 'alert.resolved'])
  const path = sinks.join('events.ndjson')
  await poll('file', () => existsSync(path) && readFileSync(path, 'utf8').split('\n').length === 17)
  await poll('syslog', () => lines.length === 16)
  const ids = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: string }).id)
  expect(ids).toEqual(Array.from({ length: 16 }, (_, n) => `evt_${n + 1}`))
  expect(lines.every((line) => /^<13[34]>1 /.test(line))).toBe(true)
  syslog.close()
}, 90_000)
