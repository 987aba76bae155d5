/** An event in a list for assistants has every field that events are filtered by, also the last one that was added. */
import { expect, test } from 'bun:test'
import { briefEvent } from './event-tools.ts'

test('a whole event keeps each of its fields and nothing else', () => {
  const event = {
    id: 'evt_1',
    type: 'agent.requested',
    outcome: 'blocked',
    siteId: 'shop',
    sessionId: 'sess_1',
    tool: 'checkout.pay',
    occurredAt: '2026-11-01T00:00:00Z',
    durationMs: 12,
    error: 'timeout',
    agent: {
      vendor: 'V',
      name: 'N',
      class: 'dom',
      trust: 'declared',
      verdict: 'unknown',
      purpose: 'user',
      robots: 'disallowed',
    },
    policy: { decision: 'deny', ruleId: 'r1', reason: 'none' },
    metadata: { page: '/p', protocol: 'mtls', subject: 'who', other: 'left out' },
  }
  expect(briefEvent(event, 0)).toEqual({
    occurredAt: '1970-01-01T00:00:00.000Z',
    durationMs: 12,
    untrusted: {
      id: 'evt_1',
      type: 'agent.requested',
      outcome: 'blocked',
      siteId: 'shop',
      sessionId: 'sess_1',
      tool: 'checkout.pay',
      vendor: 'V',
      name: 'N',
      class: 'dom',
      trust: 'declared',
      verdict: 'unknown',
      purpose: 'user',
      robots: 'disallowed',
      decision: 'deny',
      ruleId: 'r1',
      reason: 'none',
      page: '/p',
      protocol: 'mtls',
      subject: 'who',
      error: 'timeout',
    },
  })
})
