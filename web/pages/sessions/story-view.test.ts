/** Known events become sentences; any event becomes a step with its ID and time. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TraceEvent } from '../../api/api.ts'
import { offset, steps } from './story-view.tsx'

const event = (type: string, seconds: number, fields: object = {}): TraceEvent => ({
  id: `${type}-${seconds}`,
  siteId: 's',
  sessionId: 'x',
  type,
  outcome: 'success',
  occurredAt: new Date(Date.UTC(2026, 5, 1) + seconds * 1_000).toISOString(),
  ...fields,
})

const sentence = (step: ReturnType<typeof steps>[number] | undefined): string =>
  [step?.sinceStart, step?.what, step?.subject, step?.how, step?.by, step?.detail]
    .filter((part) => part)
    .join(' ')

test('a session is listed from detection to the last call', () => {
  const timeline = steps([
    event('agent.detected', 0, {
      agent: { vendor: 'Google-Agent', trust: 'detected' },
      metadata: { page: '/p' },
    }),
    event('auth.identity_presented', 0.4, {
      metadata: { protocol: 'web-bot-auth', subject: 'agent.example' },
    }),
    event('tool.executed', 2.1, { tool: 'cart.add', durationMs: 84 }),
    event('authz.evaluated', 9.8, {
      outcome: 'blocked',
      tool: 'checkout.pay',
      policy: { decision: 'deny', ruleId: 'tool:checkout.pay', reason: 'trust below verified' },
    }),
    event('tool.executed', 75, { tool: 'cart.add', outcome: 'error', durationMs: 9, error: 'sold out' }),
  ])
  expect(timeline.map(sentence)).toEqual([
    '0.0 s Detected Google-Agent /p',
    '+400 ms Identity web-bot-auth presented agent.example',
    '+2.1 s cart.add ran in 84 ms',
    '+9.8 s checkout.pay refused by tool:checkout.pay trust below verified',
    '+1 min cart.add failed after 9 ms sold out',
  ])
  expect(timeline.map((step) => step.tone)).toEqual(['allow', 'allow', 'allow', 'block', 'error'])
})

test('offsets in milliseconds, seconds, then minutes', () => {
  expect([0, 100, 59_949, 60_000, 7_200_000].map(offset)).toEqual([
    '0.0 s',
    '+100 ms',
    '+59.9 s',
    '+1 min',
    '+2 h',
  ])
})

test('law: any event is a step', () => {
  const odd = fc.oneof(fc.constant(null), fc.constant(undefined), fc.string(), fc.integer())
  fc.assert(
    fc.property(fc.string(), odd, odd, (type, page, protocol) => {
      const [step] = steps([event(type, 1, { metadata: { page, protocol }, agent: null, policy: null })])
      expect(step?.id).toBe(`${type}-1`)
      expect(sentence(step)).not.toContain('undefined')
    }),
  )
})
