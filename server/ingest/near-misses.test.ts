/** Near misses of known fields: named when the field itself is missing, never for a sender's own fields. */
import { expect, test } from 'bun:test'
import { exampleEvent } from '../../tests/support/events.ts'
import { nearMisses } from './near-misses.ts'

const { durationMs: _, agent: __, policy: ___, ...plain } = exampleEvent
const missesOf = (event: unknown) => nearMisses(event).map(({ path, known }) => `${path} ${known}`)

test.each([
  [{ ...plain, latencyMs: 3 }, 'latencyMs durationMs'],
  [{ ...plain, duration: 3 }, 'duration durationMs'],
  [{ ...plain, duration_ms: 3 }, 'duration_ms durationMs'],
  [{ ...plain, DurationMs: 3 }, 'DurationMs durationMs'],
  [{ ...plain, durationMS: 3 }, 'durationMS durationMs'],
  [{ ...plain, durratonMs: 3 }, null], // two slips
  [{ ...plain, duratonMs: 3 }, 'duratonMs durationMs'],
  [{ ...plain, sessionId: undefined, session_id: 's' }, null], // JSON has no undefined, but the name is there
  [{ id: 'x', session_id: 's' }, 'session_id sessionId'],
  [{ id: 'x', site: 's' }, 'site siteId'],
  [{ id: 'x', timestamp: 's' }, 'timestamp occurredAt'],
  [{ id: 'x', 'user-agent': 's' }, 'user-agent agent.userAgent'],
  [{ ...plain, agent: { type: 'bot' } }, 'agent.type agent.class'],
  [{ ...plain, agent: { user_agent: 'x' } }, 'agent.user_agent agent.userAgent'],
  [{ ...plain, agent: { vendr: 'x' } }, 'agent.vendr agent.vendor'],
  [{ ...plain, polcy: {} }, 'polcy policy'],
  [{ ...plain, policy: { rule_id: 'x' } }, 'policy.rule_id policy.ruleId'],
  [{ ...plain, metadata: { Page: '/x' } }, 'metadata.Page metadata.page'],
  [{ ...plain, vendor: 'OpenAI' }, 'vendor agent.vendor'],
])('%j', (event, miss) => {
  expect(missesOf(event)).toEqual(miss === null ? [] : [miss])
})

test("correctly named fields and the sender's own fields are not near misses", () => {
  expect(missesOf({ ...exampleEvent, latencyMs: 3, timestamp: 'x', session: 'y', vendor: 'z' })).toEqual([])
  const own = { orderId: 1, customer: 'x', traceId: 'y', spanId: 'z', tags: [], cart: {}, locale: 'de' }
  expect(missesOf({ ...plain, ...own, metadata: { ...own, pages: 3, path: undefined } })).toEqual([
    ...(['metadata.path metadata.page'] as string[]),
  ])
  for (const event of [null, 1, 'x', [], [exampleEvent], { agent: [], policy: 1, metadata: null }])
    expect(missesOf(event)).toEqual([])
})

test('work on hostile names is bounded', () => {
  const names = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`n${n}`, n]))
  expect(missesOf({ ...names, ['x'.repeat(100_000)]: 1, __proto__: null, constructor: 1 })).toEqual([])
  const spellings = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`site${'_'.repeat(n + 1)}`, n]))
  expect(missesOf(spellings).length).toBe(8)
})
