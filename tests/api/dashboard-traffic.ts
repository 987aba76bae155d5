/** What the tests of the dashboard's counts post, and which of it passes some filters. */
import { event, type TestEvent } from '../support/events.ts'

export const types = [
  'agent.detected',
  'agent.missed',
  'auth.identity_presented',
  'authz.evaluated',
  'tool.executed',
]
const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T

/** Varied by number, spread over the last 70 days, some in the running hour; every seventh without an agent. */
export function traffic(nowMs: number): TestEvent[] {
  return Array.from({ length: 1_400 }, (_, n) => {
    const occurredAt = new Date(n < 60 ? nowMs - n * 100 : nowMs - n * 4_300_000).toISOString()
    const agent = {
      class: pick(['crawler', 'dom', 'webmcp'], n),
      trust: pick(['detected', 'verified'], n >> 2),
      vendor: pick(['GPTBot', 'Operator', 'constructor', ''], n >> 1),
      name: pick(['GPTBot', 'ChatGPT-User', '', 'toString', null], n >> 3),
      purpose: pick(['training', null, 'user'], n >> 2),
      userAgent: `agent/${n % 3}`,
    }
    return event(`e${n}`, {
      occurredAt,
      siteId: pick(['shop', 'blog'], n >> 3),
      durationMs: ((n * 7_919) % 3_000) / 4,
      sessionId: `s${n % 40}`,
      type: pick(types, n >> 1),
      outcome: pick(['success', 'success', 'blocked', 'error'], n),
      tool: pick(['cart.add', 'checkout.pay'], n),
      agent: n % 7 === 0 ? null : agent,
      policy:
        n % 5 === 0 ? null : { decision: pick(['allow', 'deny'], n), ruleId: `r${n % 4}`, reason: 'why' },
      metadata: { page: `/p${n % 6}`, protocol: pick(['oauth2', 'bearer'], n), subject: `who${n % 9}` },
    })
  })
}

const memberOf: { [name: string]: (testEvent: TestEvent) => string | null | undefined } = {
  vendor: (testEvent) => testEvent.agent?.vendor,
  class: (testEvent) => testEvent.agent?.class,
  trust: (testEvent) => testEvent.agent?.trust,
  tool: (testEvent) => testEvent.tool,
  page: (testEvent) => testEvent.metadata.page,
  outcome: (testEvent) => testEvent.outcome,
  type: (testEvent) => testEvent.type,
  rule: (testEvent) => testEvent.policy?.ruleId,
}

/** Any of the same name, all of different ones. */
export function passes(testEvent: TestEvent, filters: { name: string; value: string }[]): boolean {
  const names = new Set(filters.map(({ name }) => name))
  return [...names].every((name) =>
    filters.some((filter) => filter.name === name && isSame(filter.value, memberOf[name]?.(testEvent) ?? '')),
  )
}

/** A type may end in `.*`, which is a prefix. */
function isSame(filter: string, value: string): boolean {
  return filter === value || (filter.endsWith('.*') && value.startsWith(filter.slice(0, -1)))
}
