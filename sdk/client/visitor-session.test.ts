/** Each visitor of a server has their own session for the length of a visit. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { edgePlatform } from '../platform/edge-platform.ts'
import { nodePlatform } from '../platform/node-platform.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { startClient, type InitOptions } from './client.ts'
import type { CompleteEvent } from './event.ts'
import type { Problem } from './problem.ts'
import { silenceMs } from './visitor-session.ts'

const minuteMs = 60_000

function setUp(options: Partial<InitOptions> = {}) {
  const clock = { ms: Date.UTC(2026, 10, 22, 12) }
  const events: CompleteEvent[] = []
  const problems: Problem[] = []
  const client = startClient(
    {
      publishableKey,
      siteId: 'shop',
      exporters: [{ export: (event) => events.push(event) }],
      onError: (problem) => problems.push(problem),
      ...options,
    },
    { ...nodePlatform, nowMs: () => clock.ms },
  )
  return { client, clock, events, problems }
}

const request = (userAgent: string, address: string) => ({
  headers: { 'user-agent': userAgent },
  socket: { remoteAddress: address },
})

test('three crawlers of one operator, and two addresses of one crawler, have different sessions', () => {
  const { client, events, problems } = setUp()
  const visitors = [
    request('GPTBot/1.2', '203.0.113.1'),
    request('ChatGPT-User/1.0', '203.0.113.1'),
    request('OAI-SearchBot/1.0', '203.0.113.1'),
    request('GPTBot/1.2', '203.0.113.2'),
  ]
  for (let round = 0; round < 3; round++)
    for (const visitor of visitors) client.session(visitor).trace({ type: 'agent.detected' })
  expect(new Set(events.map(({ sessionId }) => sessionId)).size).toBe(4)
  expect(events.slice(0, 4).map(({ sessionId }) => sessionId)).toEqual(
    events.slice(8).map(({ sessionId }) => sessionId),
  )
  for (const { sessionId } of events) expect(sessionId).toMatch(/^sess_[0-9a-f]{32}$/)
  expect(problems).toEqual([])
})

test('Fetch and Node.js requests of one visitor share a session; the address can be passed', () => {
  const { client } = setUp()
  const fetchStyle = new Request('http://shop/', { headers: { 'user-agent': 'GPTBot/1.2' } })
  const node = client.session(request('GPTBot/1.2', '203.0.113.1')).sessionId
  expect(client.session(fetchStyle, { address: '203.0.113.1' }).sessionId).toBe(node)
  expect(client.session({ ...request('GPTBot/1.2', '10.0.0.1'), ip: '203.0.113.1' }).sessionId).toBe(node)
  expect(client.session(fetchStyle).sessionId).not.toBe(node)
  expect(client.session('conversation-7').sessionId).toBe(client.session('conversation-7').sessionId)
  expect(client.session('GPTBot/1.2').sessionId).not.toBe(client.session(fetchStyle).sessionId)
})

test('law: a session continues through pauses of up to 30 minutes and ends after a longer one', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2 * silenceMs }), { maxLength: 30 }), (pauses) => {
      const { client, clock } = setUp()
      let last = client.session('visitor').sessionId
      const sessionIds = new Set([last])
      for (const pause of pauses) {
        clock.ms += pause
        const { sessionId } = client.session('visitor')
        if (pause <= silenceMs) expect(sessionId).toBe(last)
        else expect(sessionIds.has(sessionId)).toBe(false)
        sessionIds.add((last = sessionId))
      }
    }),
  )
})

test('processes with the same secret agree on ids, on every platform', () => {
  const readSessionId = (sessionSecret: string) =>
    setUp({ sessionSecret }).client.session('visitor').sessionId
  expect(readSessionId('one')).toBe(readSessionId('one'))
  expect(readSessionId('one')).not.toBe(readSessionId('two'))
  const edge = startClient(
    { publishableKey, exporters: [], sessionSecret: 'one' },
    { ...edgePlatform, nowMs: () => Date.UTC(2026, 10, 22, 12) },
  )
  expect(edge.session('visitor').sessionId).toBe(readSessionId('one'))
})

test('the cache holds 20,000 visitors and drops the least recent first', () => {
  const { client, clock } = setUp()
  const first = client.session('first').sessionId
  const second = client.session('second').sessionId
  clock.ms += 29 * minuteMs // into the next half hour, within the silence
  for (let visitor = 0; visitor < 19_999; visitor++) {
    if (visitor === 10_000) client.session('second')
    client.session(`visitor ${visitor}`)
  }
  clock.ms += 2 * minuteMs
  expect(client.session('second').sessionId).toBe(second)
  expect(client.session('first').sessionId).not.toBe(first)
})

test('a server that traces without a session gets one report; sessions, init and pages get none', () => {
  const { client, problems } = setUp()
  client.session('visitor').trace({ type: 'agent.detected' })
  client.trace({ type: 'agent.detected', sessionId: 'mine' })
  expect(problems).toEqual([])
  client.trace({ type: 'agent.detected' })
  client.trace({ type: 'agent.detected' })
  expect(problems).toEqual([
    { code: 'no_session', message: expect.stringContaining('client.session(request).trace(event)') },
  ])
  const scriptSetup = setUp({ sessionId: 'script' })
  scriptSetup.client.trace({ type: 'agent.detected' })
  expect(scriptSetup.problems).toEqual([])
})

test('the session id of an event wins, and nothing throws into the host', () => {
  const { client, events, problems } = setUp()
  client.session('visitor').trace({ type: 'a', sessionId: 'mine' })
  expect(events[0]?.sessionId).toBe('mine')
  client.session('visitor').trace(null as never)
  expect(problems.map(({ code }) => code)).toEqual(['invalid_event'])
  problems.length = 0
  for (const visitor of [null, undefined, 7, {}, { headers: null }]) {
    const { sessionId, trace } = client.session(visitor as never)
    expect(sessionId).toMatch(/^sess_/)
    trace({ type: 'a' })
  }
  expect(events.length).toBe(6)
  expect(problems.every(({ code }) => code === 'no_session')).toBe(true)
})
