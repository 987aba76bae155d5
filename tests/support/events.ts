/** Events for tests: the contract's example, and numbered variations of it. */

/** The example of contract §4, as a customer backend sends it. */
export const exampleEvent = {
  id: 'evt_1',
  siteId: 'shop-acme',
  sessionId: 'sess_1',
  occurredAt: '2026-06-23T12:00:00Z',
  type: 'authz.evaluated',
  outcome: 'blocked',
  tool: 'checkout.pay',
  durationMs: 3,
  agent: { class: 'dom', trust: 'detected', vendor: 'Operator' },
  policy: { decision: 'deny', ruleId: 'tool:checkout.pay', reason: 'trust below verified' },
  metadata: { page: '/checkout', protocol: 'web-bot-auth' },
}

export type TestEvent = typeof exampleEvent & { [member: string]: unknown }

/** The example with another id and other fields. */
export function event(id: string, fields: Record<string, unknown> = {}): TestEvent {
  return { ...exampleEvent, id, ...fields }
}

/** `count` events with ids `<prefix>1…`, one second apart from `startMs` on. */
export function eventsInOrder(count: number, prefix = 'evt_', startMs = Date.UTC(2026, 5, 1)): TestEvent[] {
  return Array.from({ length: count }, (_, index) =>
    event(`${prefix}${index + 1}`, { occurredAt: new Date(startMs + index * 1_000).toISOString() }),
  )
}
