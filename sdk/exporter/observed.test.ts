/** What is observed leaves the process only to an appliance that judges it, and never reaches a disk. */
import { afterEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readdirSync, readFileSync } from 'node:fs'
import { ingestKey, startFakeAppliance, type FakeAppliance } from '../../tests/support/fake-appliance.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { until } from '../../tests/support/until.ts'
import { nodePlatform } from '../platform/node-platform.ts'
import { startIntelExporter, type IntelExporter, type IntelExporterOptions } from './intel-exporter.ts'

const running: FakeAppliance[] = []
const open: IntelExporter[] = []
afterEach(async () => {
  for (const exporter of open.splice(0)) await exporter.close(0)
  for (const appliance of running.splice(0)) await appliance.stop()
})

function setUp(limits: FakeAppliance['limits'], options: Partial<IntelExporterOptions> = {}) {
  const appliance = startFakeAppliance()
  appliance.limits = limits
  running.push(appliance)
  const times = { intervalMs: 60_000, backoffMinMs: 2, backoffMaxMs: 10 }
  const allOptions = { url: appliance.url, ingestKey, ...times, onError() {}, ...options }
  const exporter = startIntelExporter(allOptions, nodePlatform)
  open.push(exporter)
  return { appliance, exporter }
}

const address = '20.171.206.9'
const event = (id: string) => ({
  id,
  siteId: 'shop',
  sessionId: 'sess',
  type: 'agent.requested',
  outcome: 'success',
  occurredAt: '2026-06-23T12:00:00.000Z',
})
const bodies = ({ requests }: FakeAppliance) =>
  requests.filter(({ method }) => method === 'POST').map(({ body }) => body)
const countLimitRequests = ({ requests }: FakeAppliance): number =>
  requests.filter(({ path }) => path === '/v1/limits').length

test('an appliance that judges gets the observations of a batch', async () => {
  const { appliance, exporter } = setUp({ observed: true })
  exporter.export(event('a'), { address })
  exporter.export(event('b'))
  await until(() => exporter.observes())
  expect(await exporter.flush()).toBe(true)
  expect(bodies(appliance)).toEqual([{ events: [event('a'), event('b')], observed: { a: { address } } }])
  expect(countLimitRequests(appliance)).toBe(1)
})

test('an older appliance gets none, and is not asked again for each batch', async () => {
  const { appliance, exporter } = setUp({})
  for (let index = 0; index < 5; index++) {
    exporter.export(event(`e${index}`), { address })
    expect(await exporter.flush()).toBe(true)
  }
  expect(JSON.stringify(appliance.requests)).not.toContain(address)
  expect(appliance.events.length).toBe(5)
  expect(countLimitRequests(appliance)).toBe(1)
})

test('events without observations are sent before anybody asks', async () => {
  const { appliance, exporter } = setUp({ observed: true })
  exporter.export(event('a'))
  await exporter.flush()
  expect(appliance.requests[0]?.path).toBe('/v1/sdk/events')
})

test('an appliance that hangs when it is asked delays no event', async () => {
  const { appliance, exporter } = setUp({ observed: true })
  const hanging = Promise.withResolvers<null>()
  appliance.fault = ({ path }) => (path === '/v1/limits' ? hanging.promise : null)
  exporter.export(event('a'), { address })
  void exporter.flush()
  await until(() => appliance.events.length === 1)
  expect(bodies(appliance)).toEqual([{ events: [event('a')] }])
  hanging.resolve(null)
})

test('after an upgrade of the appliance, which was away, observations are sent', async () => {
  const { appliance, exporter } = setUp({})
  exporter.export(event('a'), { address })
  await exporter.flush()
  let failures = 2
  appliance.fault = () => (failures-- > 0 ? new Response('{}', { status: 503 }) : null)
  appliance.limits = { observed: true }
  exporter.export(event('b'), { address })
  await exporter.flush()
  await until(() => exporter.observes())
  exporter.export(event('c'), { address })
  await exporter.flush()
  expect(bodies(appliance).at(-1)).toEqual({ events: [event('c')], observed: { c: { address } } })
})

test('law: the spool has the events of a process that ended, and no observation', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.ipV4(), { minLength: 1, maxLength: 20 }), async (addresses) => {
      using dir = tempDir('observed-spool')
      const { appliance, exporter } = setUp({ observed: true }, { spool: dir.join('events') })
      await until(() => exporter.observes())
      appliance.fault = () => new Response('{}', { status: 503 })
      const ids = addresses.map((_, index) => `e${index}`)
      for (const [index, id] of ids.entries()) exporter.export(event(id), { address: `${addresses[index]}` })
      await exporter.close(20)
      const files = readdirSync(dir.path).map((name) => readFileSync(dir.join(name), 'utf8'))
      expect(files.join('')).toContain('"e0"')
      expect(files.join('')).not.toContain('address')
      for (const hostAddress of addresses) expect(files.join('')).not.toContain(hostAddress)
      // Another appliance, because a request of the first exporter may still be on its way to this one.
      const next = setUp({ observed: true }, { spool: dir.join('events') })
      await next.exporter.flush()
      expect(next.appliance.events.map(({ id }) => id)).toEqual(ids)
      expect(bodies(next.appliance).some((body) => 'observed' in body)).toBe(false)
      await next.exporter.close()
    }),
    { numRuns: 10 },
  )
}, 60_000)

test('long signatures count for the limits of a request and of the queue', async () => {
  const signature = { base: 'b'.repeat(8_000), signature: 's', keyId: 'k' }
  const limits = { observed: true, bodyBytesMax: 64 * 1_024 }
  const { appliance, exporter } = setUp(limits, { queueBytesMax: 300_000, gzip: false })
  await until(() => exporter.observes())
  let queued = 0
  while (exporter.export(event(`e${queued}`), { address, signature })) queued++
  expect(queued).toBeLessThan(40)
  expect(await exporter.flush()).toBe(true)
  expect(appliance.events.length).toBe(queued)
  for (const body of bodies(appliance)) expect(JSON.stringify(body).length).toBeLessThan(64 * 1_024)
  expect(exporter.stats()).toMatchObject({ queued: 0, queuedBytes: 0 })
})
