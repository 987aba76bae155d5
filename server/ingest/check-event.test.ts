/** Every field of an event: valid values, issues of invalid ones, its place in the record, and near misses. */
import { describe, expect, test } from 'bun:test'
import { exampleEvent } from '../../tests/support/events.ts'
import { checkEvent, nearMisses } from './check-event.ts'
import type { Issue } from '../errors.ts'

/** The issues of the example with changed fields, each as `path code`. */
function problems(change: object): string[] {
  const issues: Issue[] = []
  const record = checkEvent({ ...exampleEvent, ...change }, issues)
  expect(record === null).toBe(issues.length > 0)
  return issues.map((issue) => `${issue.path} ${issue.code}`)
}

const smile = '\u{1f600}'

describe('required fields', () => {
  for (const name of ['id', 'siteId', 'sessionId']) {
    test(`${name} is text of 1 to 200 code points`, () => {
      expect(problems({ [name]: 'x'.repeat(200) })).toEqual([])
      expect(problems({ [name]: smile.repeat(200) })).toEqual([])
      expect(problems({ [name]: smile.repeat(201) })).toEqual([`${name} too_long`])
      expect(problems({ [name]: '' })).toEqual([`${name} wrong_format`])
      expect(problems({ [name]: undefined })).toEqual([`${name} required`])
      expect(problems({ [name]: null })).toEqual([`${name} required`])
      for (const value of [1, true, {}, []])
        expect(problems({ [name]: value })).toEqual([`${name} wrong_type`])
    })
  }

  test('type is dotted words of at most 64 characters, known or not', () => {
    for (const type of ['a', 'agent.detected', 'my_own.kind-2.x', 'a'.repeat(64)])
      expect(problems({ type })).toEqual([])
    for (const type of ['', 'A', 'a.', '.a', 'a..b', '1a', 'a b', 'a.B', 'ä', 'a\n', 'a.1']) {
      expect(problems({ type })).toEqual(['type wrong_format'])
    }
    expect(problems({ type: 'a'.repeat(65) })).toEqual(['type too_long'])
    expect(problems({ type: 7 })).toEqual(['type wrong_type'])
  })

  test('outcome is a word of at most 32 characters, known or not', () => {
    for (const outcome of ['success', 'partly_done-2', 'a'.repeat(32)])
      expect(problems({ outcome })).toEqual([])
    for (const outcome of ['', 'Success', 'a.b', '2x'])
      expect(problems({ outcome })).toEqual(['outcome wrong_format'])
    expect(problems({ outcome: 'a'.repeat(33) })).toEqual(['outcome too_long'])
  })

  test('occurredAt is an RFC 3339 time', () => {
    expect(problems({ occurredAt: '2026-06-23T14:00:00+02:00' })).toEqual([])
    expect(problems({ occurredAt: '2026-02-30T00:00:00Z' })).toEqual(['occurredAt wrong_format'])
    expect(problems({ occurredAt: 1782216000000 })).toEqual(['occurredAt wrong_type'])
    expect(problems({ occurredAt: null })).toEqual(['occurredAt required'])
  })
})

describe('optional fields', () => {
  const texts: [string, number][] = [
    ['tool', 200],
    ['error', 2_000],
    ['agent.class', 64],
    ['agent.trust', 64],
    ['agent.vendor', 200],
    ['agent.userAgent', 2_000],
    ['agent.detectionVersion', 64],
    ['policy.decision', 64],
    ['policy.ruleId', 200],
    ['policy.reason', 2_000],
    ['metadata.page', 2_000],
    ['metadata.protocol', 200],
    ['metadata.subject', 2_000],
  ]
  test.each(texts)('%s is text of at most %d code points, null or missing', (path, max) => {
    const [outer = '', inner] = path.split('.')
    const change = (value: unknown): object => ({ [outer]: inner === undefined ? value : { [inner]: value } })
    for (const value of [undefined, null, '', 'x'.repeat(max), smile.repeat(max)]) {
      expect(problems(change(value))).toEqual([])
    }
    expect(problems(change('x'.repeat(max + 1)))).toEqual([`${path} too_long`])
    expect(problems(change(smile.repeat(max + 1)))).toEqual([`${path} too_long`])
    for (const value of [true, {}, ['x']]) expect(problems(change(value))).toEqual([`${path} wrong_type`])
  })

  test('numbers are finite and in range', () => {
    for (const durationMs of [0, -0, 0.5, 1e300, null]) expect(problems({ durationMs })).toEqual([])
    for (const durationMs of [-1, Number.POSITIVE_INFINITY]) {
      expect(problems({ durationMs })).toEqual(['durationMs wrong_format'])
    }
    expect(problems({ durationMs: '3' })).toEqual(['durationMs wrong_type'])
    for (const confidence of [0, 0.5, 1, null]) expect(problems({ agent: { confidence } })).toEqual([])
    for (const confidence of [-0.1, 1.1]) {
      expect(problems({ agent: { confidence } })).toEqual(['agent.confidence wrong_format'])
    }
    expect(problems({ agent: { confidence: 'high' } })).toEqual(['agent.confidence wrong_type'])
  })

  test('agent, policy and metadata are objects or null; signals, version and unknown fields may be anything', () => {
    for (const name of ['agent', 'policy', 'metadata']) {
      for (const value of [null, {}, { unknown: [1] }]) expect(problems({ [name]: value })).toEqual([])
      for (const value of [1, 'x', [], true])
        expect(problems({ [name]: value })).toEqual([`${name} wrong_type`])
    }
    for (const signals of [[], { a: 1 }, 'x', 1, null]) expect(problems({ agent: { signals } })).toEqual([])
    expect(problems({ agent: { detectionVersion: 2 } })).toEqual([])
    expect(problems({ anything: { goes: [] }, constructor: 1 })).toEqual([])
  })
})

describe('the record', () => {
  const recordOf = (change: object) => checkEvent({ ...exampleEvent, ...change }, [])

  test('contains the fields that the store filters by', () => {
    const claim = { name: 'GPTBot', purpose: 'training', verdict: 'verified', robots: 'allowed' }
    const agent = { ...exampleEvent.agent, ...claim }
    const metadata = { page: '/p', protocol: 'mtls', subject: 'me' }
    expect(recordOf({ durationMs: 3.5, agent, metadata })).toEqual({
      id: 'evt_1',
      siteId: 'shop-acme',
      sessionId: 'sess_1',
      occurredAtMs: Date.UTC(2026, 5, 23, 12),
      type: 'authz.evaluated',
      outcome: 'blocked',
      tool: 'checkout.pay',
      durationMs: 3.5,
      class: 'dom',
      vendor: 'Operator',
      name: 'GPTBot',
      purpose: 'training',
      robots: 'allowed',
      trust: 'detected',
      verdict: 'verified',
      protocol: 'mtls',
      subject: 'me',
      page: '/p',
      decision: 'deny',
      ruleId: 'tool:checkout.pay',
      reason: 'trust below verified',
      judgedBy: 'sender',
      observedBy: null,
      evidence: null,
      network: null,
      json: '',
    })
  })

  test('has null for missing, null and empty fields', () => {
    for (const agent of [undefined, null, {}, { class: null, vendor: '', trust: null }]) {
      expect(recordOf({ agent })).toMatchObject({ class: null, vendor: null, trust: null })
    }
    expect(recordOf({ tool: '', durationMs: null })).toMatchObject({ tool: null, durationMs: null })
    expect(Object.is(recordOf({ durationMs: -0 })?.durationMs, 0)).toBe(true)
  })

  test("has the policy's decision, otherwise the one implied by the outcome", () => {
    const decisionOf = (change: object): unknown => recordOf(change)?.decision
    expect(decisionOf({ policy: { decision: 'review' } })).toBe('review')
    for (const policy of [undefined, null, {}, { decision: null }, { decision: '' }]) {
      expect(decisionOf({ policy, outcome: 'blocked' })).toBe('deny')
      expect(decisionOf({ policy, outcome: 'success' })).toBe('allow')
      expect(decisionOf({ policy, outcome: 'error' })).toBe(null)
      expect(decisionOf({ policy, outcome: 'blocked', type: 'tool.executed' })).toBe(null)
    }
  })
})

test('anything but an object is one issue; every invalid field is reported', () => {
  for (const value of [null, undefined, 1, 'x', true, [], [exampleEvent]]) {
    const issues: Issue[] = []
    expect(checkEvent(value, issues)).toBe(null)
    expect(issues.map((issue) => issue.code)).toEqual(['wrong_type'])
  }
  expect(problems({ id: 1, type: 'X', agent: { trust: 2 } })).toEqual([
    'id wrong_type',
    'type wrong_format',
    'agent.trust wrong_type',
  ])
})

describe('near misses of known fields', () => {
  const { durationMs: _, agent: __, policy: ___, ...plain } = exampleEvent
  const missesOf = (event: unknown) =>
    nearMisses(event).map(({ path, known: knownPath }) => `${path} ${knownPath}`)

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
    const ownFields = {
      orderId: 1,
      customer: 'x',
      traceId: 'y',
      spanId: 'z',
      tags: [],
      cart: {},
      locale: 'de',
    }
    expect(
      missesOf({ ...plain, ...ownFields, metadata: { ...ownFields, pages: 3, path: undefined } }),
    ).toEqual([...(['metadata.path metadata.page'] as string[])])
    for (const event of [null, 1, 'x', [], [exampleEvent], { agent: [], policy: 1, metadata: null }])
      expect(missesOf(event)).toEqual([])
  })

  test('work on hostile names is bounded', () => {
    const names = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`n${n}`, n]))
    expect(missesOf({ ...names, ['x'.repeat(100_000)]: 1, __proto__: null, constructor: 1 })).toEqual([])
    const spellings = Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [`site${'_'.repeat(n + 1)}`, n]),
    )
    expect(missesOf(spellings).length).toBe(8)
  })
})
