/** The event types of the units in which agents, pages and sites are compared (contract §19), and words for types. */
export const unitTypes = { requests: 'agent.requested', visits: 'agent.detected' } as const

/** In the words of `web/text/measures.ts`; `measures.test.ts` compares them. */
export const typeLabels: { readonly [type: string]: string } = {
  'agent.requested': 'Requests',
  'agent.detected': 'Visits',
  'agent.missed': 'Missed',
  'agent.referred': 'Referrals',
  'auth.identity_presented': 'Identities',
  'authz.evaluated': 'Decisions',
  'tool.executed': 'Tool calls',
  'memory.accessed': 'Memory reads',
  'memory.updated': 'Memory updates',
}

/** What a number of events of one type is called, such as "Requests". */
export function typeLabel(type: string): string {
  return Object.hasOwn(typeLabels, type) ? (typeLabels[type] ?? 'Events') : 'Events'
}
