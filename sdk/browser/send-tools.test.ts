/** The registry of a page on its way to the relay: only the newest descriptors, however long the relay fails. */
import { afterEach, expect, jest, spyOn, test } from 'bun:test'
import type { Problem } from '../client/problem.ts'
import { createToolSender } from './send-tools.ts'

const hourMs = 3_600_000
afterEach(() => {
  jest.useRealTimers()
})

function setUp() {
  jest.useFakeTimers()
  const sentBatches: { tools: { name: string }[]; removed: string[] }[] = []
  const problems: Problem[] = []
  const relay = { status: 202, requests: 0 }
  const answers = spyOn(globalThis, 'fetch').mockImplementation((async (
    _: unknown,
    init: { body: string },
  ) => {
    relay.requests++
    if (relay.status === 202) sentBatches.push(JSON.parse(init.body))
    return Response.json({ message: 'the relay has no sync option' }, { status: relay.status })
  }) as unknown as typeof fetch)
  const options = {
    url: '/traces',
    publishableKey: () => 'key',
    report: (problem: Problem) => problems.push(problem),
  }
  const sender = createToolSender(options)
  const pass = async (ms: number, stepMs = 1_000): Promise<void> => {
    for (let elapsedMs = 0; elapsedMs <= ms; elapsedMs += stepMs) {
      jest.advanceTimersByTime(stepMs)
      for (let round = 0; round < 8; round++) await null
    }
  }
  return { sender, sent: sentBatches, problems, relay, pass, [Symbol.dispose]: () => answers.mockRestore() }
}

const tool = (name: string, description = 'x') => ({ name, description })

test('a relay that answers 500 for an hour gets few requests, and then the newest of each tool', async () => {
  using harness = setUp()
  harness.relay.status = 500
  for (let minute = 0; minute < 60; minute++) {
    harness.sender.change({
      tools: [tool('a', String(minute)), tool(`t${minute % 7}`)],
      removed: minute > 30 ? ['b'] : [],
    })
    await harness.pass(60_000, 10_000)
  }
  expect(harness.relay.requests).toBeLessThan(80)
  harness.relay.status = 202
  await harness.pass(120_000)
  expect(harness.sent.length).toBe(1)
  expect(harness.sent[0]?.removed).toEqual(['b'])
  expect(harness.sent[0]?.tools).toContainEqual(tool('a', '59'))
  expect(harness.sent[0]?.tools.length).toBe(8)
  await harness.pass(hourMs, 60_000)
  expect(harness.sent.length).toBe(1)
  expect(harness.problems).toEqual([])
})

test('at most 1,000 names wait, in requests of at most 50 tools', async () => {
  using harness = setUp()
  harness.relay.status = 503
  for (let index = 0; index < 1_200; index++)
    harness.sender.change({ tools: [tool(`t${index}`)], removed: [] })
  await harness.pass(2_000)
  harness.relay.status = 202
  await harness.pass(120_000)
  expect(harness.sent.map(({ tools }) => tools.length)).toEqual(Array.from({ length: 20 }, () => 50))
})

test('a refusal is reported with its reason and not repeated', async () => {
  using harness = setUp()
  harness.relay.status = 400
  harness.sender.change({ tools: [tool('a')], removed: [] })
  await harness.pass(hourMs, 60_000)
  expect(harness.relay.requests).toBe(1)
  expect(harness.problems.map(({ message }) => message)).toEqual([
    'The relay did not accept tools: the relay has no sync option.',
  ])
})
