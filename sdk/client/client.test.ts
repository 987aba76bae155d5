/** `init` and `trace`: defaults, unknown fields, and that nothing throws into the host. */
import fc from 'fast-check'
import { expect, test } from 'bun:test'
import { edgePlatform } from '../platform/edge-platform.ts'
import { ingestKey, publishableKey, secretKey } from '../../tests/support/fake-appliance.ts'
import { isSampled, share, startClient, type Exporter, type InitOptions } from './client.ts'
import type { CompleteEvent, TraceEvent } from './event.ts'
import type { Problem } from './problem.ts'

function setUp(options: Partial<InitOptions> = {}) {
  const events: CompleteEvent[] = []
  const problems: Problem[] = []
  const exporter: Exporter = { export: (event) => events.push(event) }
  const client = startClient(
    {
      publishableKey,
      siteId: 'shop',
      exporters: [exporter],
      onError: (problem) => problem.code !== 'no_session' && problems.push(problem), // visitor-session.test.ts has it
      ...options,
    },
    { ...edgePlatform, nowMs: () => Date.UTC(2026, 5, 23, 12) },
  )
  return { client, events, problems }
}

test('missing fields get defaults', () => {
  const { client, events } = setUp()
  client.trace({ type: 'agent.detected' })
  client.trace({ type: 'agent.detected' })
  expect(events[0]).toEqual({
    id: expect.stringMatching(/^trc_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
    siteId: 'shop',
    sessionId: client.sessionId,
    occurredAt: '2026-06-23T12:00:00.000Z',
    type: 'agent.detected',
    outcome: 'success',
  })
  expect(client.sessionId).toMatch(/^sess_[0-9a-f-]{36}$/)
  expect(events[1]?.id).not.toBe(events[0]?.id as string)
})

test('init uses no random number, which edge runtimes forbid before the first request', () => {
  let drawn = 0
  const uuid = (): string => `u${++drawn}`
  const client = startClient({ publishableKey, siteId: 'shop', exporters: [] }, { ...edgePlatform, uuid })
  expect(drawn).toBe(0)
  expect(client.sessionId).toBe('sess_u1')
  expect(client.sessionId).toBe('sess_u1')
})

test('given fields do not change, including unknown ones', () => {
  const { client, events } = setUp({ sessionId: 'mine' })
  const event = {
    id: 'evt_1',
    siteId: 'other',
    sessionId: 'sess_9',
    occurredAt: '2026-06-23T12:00:00.123456789+02:00',
    type: 'custom.kind',
    outcome: 'custom',
    extra: { a: [1, null] },
  }
  client.trace(event)
  expect(events[0]).toEqual(event)
  client.trace({ type: 'a', occurredAt: new Date(0) })
  client.trace({ type: 'a', occurredAt: 1 })
  expect(events.slice(1).map(({ occurredAt }) => occurredAt)).toEqual([
    '1970-01-01T00:00:00.000Z',
    '1970-01-01T00:00:00.001Z',
  ])
  expect(events[1]?.sessionId).toBe('mine')
})

test('undefined fields count as missing', () => {
  const { client, events } = setUp()
  const event: object = {
    type: 'a',
    id: undefined,
    occurredAt: undefined,
    outcome: undefined,
    siteId: undefined,
  }
  client.trace(event as TraceEvent)
  expect(events[0]).toMatchObject({ siteId: 'shop', outcome: 'success', id: expect.stringMatching(/^trc_/) })
})

test.each<[TraceEvent, string]>([
  [{ type: 'tool.executed', error: 'boom' }, 'error'],
  [{ type: 'authz.evaluated', policy: { decision: 'deny' } }, 'blocked'],
  [{ type: 'authz.evaluated', policy: { decision: 'allow' } }, 'success'],
  [{ type: 'tool.executed', error: '', policy: null }, 'success'],
])('the outcome follows from %j', (event, outcome) => {
  const { client, events } = setUp()
  client.trace(event)
  expect(events[0]?.outcome).toBe(outcome)
})

test.each([
  [ingestKey, /ingest key.*secret and must stay on your server/],
  [secretKey, /secret key/],
  ['agtx_pk_short', /32 characters/],
  ['', /must be a key/],
  [undefined, /must be a key/],
])('init refuses %s as publishableKey', (key, message) => {
  expect(() => setUp({ publishableKey: key as string })).toThrow(message)
})

test('the message about a wrong key does not contain the key', () => {
  const attempt = (): unknown => setUp({ publishableKey: secretKey })
  expect(attempt).toThrow()
  expect(attempt).not.toThrow(new RegExp('s{32}'))
})

test('init rejects invalid exporters and an invalid sample rate', () => {
  expect(() => setUp({ exporters: [{} as Exporter] })).toThrow(/exporters/)
  expect(() => setUp({ exporters: undefined as never })).toThrow(/exporters/)
  for (const sample of [-1, 2, Number.NaN]) expect(() => setUp({ sample })).toThrow(/sample/)
})

const hostile: [string, () => unknown][] = [
  ['null', () => null],
  ['a number', () => 7],
  ['no type', () => ({})],
  [
    'a getter that throws',
    () => ({
      type: 'a',
      get metadata(): never {
        throw new Error('trap')
      },
    }),
  ],
  ['a circle', () => Object.assign({ type: 'a' }, { self: null as unknown })],
  [
    'a proxy that throws',
    () =>
      new Proxy(
        {},
        {
          get: () => {
            throw {
              toString() {
                throw new Error('deep')
              },
            }
          },
        },
      ),
  ],
  ['an impossible date', () => ({ type: 'a', occurredAt: new Date(Number.NaN) })],
]

test.each(hostile)('trace accepts %s without throwing', (name, make) => {
  const { client, problems, events } = setUp()
  const event = make() as { self?: unknown }
  if (name === 'a circle') event.self = event
  client.trace(event as TraceEvent)
  expect(problems).toEqual([expect.objectContaining({ code: 'invalid_event' })])
  expect(events).toEqual([])
})

test('a throwing exporter or onError does not affect the host', async () => {
  const problems: Problem[] = []
  const bad: Exporter = {
    export: () => {
      throw new Error('bad exporter')
    },
    flush: () => Promise.reject(new Error('bad flush')),
    close: () => {
      throw new Error('bad close')
    },
  }
  const late: Exporter = { export: () => Promise.reject(new Error('late')) }
  const { client, events } = setUp({
    onError: (problem) => {
      problems.push(problem)
      throw new Error('bad host')
    },
  })
  client.trace({ type: 'a' })
  expect(events.length).toBe(1)
  const twoExporters = setUp({
    exporters: [bad, late],
    onError: (problem) => {
      problems.push(problem)
      throw new Error('bad host')
    },
  })
  twoExporters.client.trace({ type: 'a' })
  await twoExporters.client.flush()
  await twoExporters.client.close()
  const messages = problems.map(({ message }) => message).join()
  for (const text of ['bad exporter', 'bad flush', 'bad close', 'late']) expect(messages).toContain(text)
})

test('events after close are not sent, but reported', async () => {
  const { client, events, problems } = setUp()
  await client.close()
  client.trace({ type: 'a' })
  expect(events).toEqual([])
  expect(problems).toEqual([expect.objectContaining({ message: expect.stringMatching(/closed/) })])
})

test('secrets do not reach an exporter', () => {
  const { client, events } = setUp({ scrub: ['metadata.card'] })
  client.trace({ type: 'tool.executed', metadata: { args: { password: 'hunter2' }, card: '4111' } })
  expect(events[0]?.metadata).toEqual({ args: { password: '[scrubbed]' }, card: '[scrubbed]' })
})

/** Sampling: shares are correct, sessions stay complete, errors and blocked events are always sent. */
const event = (overrides: object = {}): CompleteEvent => ({
  id: 'e',
  siteId: 's',
  sessionId: 'x',
  occurredAt: '',
  type: 'a',
  outcome: 'success',
  ...overrides,
})

test('errors, blocked events and denials are always sent', () => {
  for (const fields of [{ outcome: 'error' }, { outcome: 'blocked' }, { policy: { decision: 'deny' } }]) {
    expect(isSampled(event(fields), 0, 'x', () => 0.999)).toBe(true)
  }
  expect(isSampled(event(), 0, 'x', () => 0)).toBe(false)
  expect(isSampled(event(), 1, 'x', () => 0.999)).toBe(true)
})

test('law: a session is sent or dropped as a whole, and a higher rate sends a superset', () => {
  fc.assert(
    fc.property(fc.string(), fc.double({ min: 0, max: 1, noNaN: true }), (session, rate) => {
      const verdict = isSampled(event(), rate, session, () => 0)
      expect(isSampled(event({ id: 'other' }), rate, session, () => 1)).toBe(verdict)
      if (verdict) expect(isSampled(event(), Math.min(1, rate + 0.1), session, () => 1)).toBe(true)
    }),
  )
})

test('a rate of 0.1 sends about a tenth of the sessions', () => {
  const sampled = Array.from({ length: 10_000 }, (_, index) => share(`sess_${index}`)).filter(
    (fraction) => fraction < 0.1,
  )
  expect(sampled.length).toBeGreaterThan(850)
  expect(sampled.length).toBeLessThan(1_150)
})

test('events without a session id are sampled one by one', () => {
  expect(isSampled(event(), 0.5, undefined, () => 0.4)).toBe(true)
  expect(isSampled(event(), 0.5, undefined, () => 0.6)).toBe(false)
})
