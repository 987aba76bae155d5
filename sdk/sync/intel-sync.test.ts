/** Pushes: bodies, results, retries and deadlines. */
import { afterEach, expect, test } from 'bun:test'
import {
  type FakeAppliance,
  ingestKey,
  problem,
  startFakeAppliance,
} from '../../tests/support/fake-appliance.ts'
import type { IntelError } from '../wire/retry.ts'
import { createIntelSync, type IntelSyncOptions } from './intel-sync.ts'

const running: FakeAppliance[] = []
afterEach(async () => {
  for (const appliance of running.splice(0)) await appliance.stop()
})

function setUp(options: Partial<IntelSyncOptions> = {}) {
  const appliance = startFakeAppliance()
  running.push(appliance)
  return { appliance, sync: createIntelSync({ url: appliance.url, ingestKey, siteId: 'shop', ...options }) }
}

const failure = (promise: Promise<unknown>): Promise<IntelError> =>
  promise.then(
    () => {
      throw new Error('did not reject')
    },
    (error: IntelError) => error,
  )

test('tools are sent as they are, including disabled ones, and the count is returned', async () => {
  const { appliance, sync } = setUp()
  const tools = [
    { name: 'cart.add', page: '/cart', inputSchema: { type: 'object' }, tokens: 120, enabled: true },
    { name: 'cart.clear', description: 'Empties the cart', enabled: false },
  ]
  expect(await sync.pushTools(tools)).toBe(2)
  expect(appliance.requests[0]).toMatchObject({
    method: 'POST',
    path: '/v1/sdk/tools',
    body: { siteId: 'shop', tools },
  })
  expect(await sync.pushTools([], { replace: true })).toBe(0)
  expect(appliance.requests[1]?.path).toBe('/v1/sdk/tools?mode=replace')
})

test('memory is sent with and without a score', async () => {
  const { appliance, sync } = setUp()
  const snapshot = { siteMap: { pages: [{ path: '/' }] }, policies: {} }
  await sync.pushMemory(snapshot, 87)
  await sync.pushMemory(snapshot)
  expect(appliance.requests.map(({ body }) => body)).toEqual([
    { siteId: 'shop', snapshot, score: 87 },
    { siteId: 'shop', snapshot },
  ])
})

test('a push is retried while the appliance is busy', async () => {
  const { appliance, sync } = setUp()
  let remainingCount = 1
  appliance.fault = () => (remainingCount-- > 0 ? problem(503, 'overloaded') : null)
  expect(await sync.pushTools([{ name: 'a' }])).toBe(1)
  expect(appliance.requests.length).toBe(2)
})

test.each([
  [400, 'invalid_body'],
  [401, 'unauthorized'],
  [413, 'payload_too_large'],
])('%d rejects at once with what the appliance says', async (status, code) => {
  const { appliance, sync } = setUp()
  const issues = [{ path: 'tools[0].name', code: 'required', message: 'is required' }]
  appliance.fault = () => problem(status, code, undefined, issues)
  const error = await failure(sync.pushTools([]))
  expect(error).toMatchObject({ name: 'IntelError', status, message: expect.stringContaining(code) })
  if (status === 400) expect(error.issues).toEqual(issues)
  expect(appliance.requests.length).toBe(1)
})

test('a push rejects at its deadline, without a connection and without a response', async () => {
  const { sync } = setUp({ url: 'http://127.0.0.1:9', deadlineMs: 2_000 })
  expect(await failure(sync.pushMemory({}))).toMatchObject({
    status: null,
    message: expect.stringMatching(/reached/),
  })
  const silent = setUp({ deadlineMs: 300 })
  silent.appliance.fault = () => new Promise<Response>(() => {})
  expect((await failure(silent.sync.pushMemory({}))).message).toMatch(/in time/)
})

test('an invalid key, address or site throws at once', () => {
  expect(() => setUp({ ingestKey: 'agtx_sk_x' })).toThrow(/ingest key/)
  expect(() => setUp({ url: 'nowhere' })).toThrow(/url/)
  expect(() => setUp({ siteId: '' })).toThrow(/siteId/)
})
