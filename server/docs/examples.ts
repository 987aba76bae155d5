/** The values that the examples of the reference are made of. */

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
  description: 'Pays for what is in the cart.',
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

// Times in examples move to the current hour, so that a pasted example is not months old.
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** What the examples are written around (examples.ts). */
const writtenMs = Date.UTC(2026, 5, 23, 12)

/** A time, also as it stands in an address, or a bare date, of the two months that the examples use. */
const times = /\b2026-0[67]-\d\d(?:T(\d\d)(:|%3A)(\d\d)(?::|%3A)(\d\d)(\.\d{3})?Z)?(?![\d-])/g

/** The same text with its times as far from the running hour as they were from the written one; dates by whole days. */
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
