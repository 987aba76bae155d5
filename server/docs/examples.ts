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
