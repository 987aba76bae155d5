/** Example values of the reference, and the shift of their times to now, so that a pasted example is current. */

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

export const exampleTool = {
  name: 'checkout.pay',
  description: 'Pays for the items in the cart.',
  group: 'checkout',
  page: '/checkout',
  inputSchema: { type: 'object', properties: { cartId: { type: 'string' } }, required: ['cartId'] },
  outputSchema: { type: 'object', properties: { orderId: { type: 'string' } } },
  tokens: 120,
}

export const exampleMemory = {
  siteMap: { pages: [{ path: '/checkout', name: 'Checkout', purpose: 'Pay', availableActions: ['pay'] }] },
  policies: { refunds: ['within 30 days'] },
}

export const exampleTime = '2026-06-23T12:00:00.000Z'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** The time that the examples above are written for. */
const writtenMs = Date.UTC(2026, 5, 23, 12)

/** A time (also URL-encoded) or a date in the two months that the examples use. */
const times = /\b2026-0[67]-\d\d(?:T(\d\d)(:|%3A)(\d\d)(?::|%3A)(\d\d)(\.\d{3})?Z)?(?![\d-])/g

/** Shifts times by the hours between `writtenMs` and the current hour, and dates by whole days. */
export function withCurrentTimes(text: string, nowMs: number): string {
  const byMs = Math.floor(nowMs / hourMs) * hourMs - writtenMs
  return text.replace(times, (found: string, _hour?: string, colon?: string) => {
    if (colon === undefined)
      return new Date(Date.parse(found) + Math.floor(byMs / dayMs) * dayMs).toISOString().slice(0, 10)
    const moved = new Date(Date.parse(found.replaceAll('%3A', ':')) + byMs).toISOString()
    const whole = found.includes('.') ? moved : moved.replace('.000Z', 'Z')
    return whole.replaceAll(':', colon)
  })
}
