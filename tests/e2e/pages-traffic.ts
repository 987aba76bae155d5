/** Events for the tests of the pages of counts, and the counts that a page must show of them, made one by one. */
import { event, type TestEvent } from '../support/events.ts'

const hourMs = 3_600_000
const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T

/** 900 events of two sites over the last fourteen days and a bit, most of them in the last seven. */
export function pageTraffic(nowMs: number): TestEvent[] {
  return Array.from({ length: 900 }, (_, n) => {
    const blocked = n % 6 === 1
    const vendor = pick(['GPTBot', 'Operator', 'ClaudeBot', 'House Agent'], n >> 2)
    return event(`p${n}`, {
      occurredAt: new Date(nowMs - 60_000 - Math.floor((n * n * 15 * 24 * hourMs) / 810_000)).toISOString(),
      siteId: n % 3 === 0 ? 'blog' : 'shop',
      sessionId: `session-${n >> 3}`,
      type: pick(['agent.detected', 'authz.evaluated', 'auth.identity_presented', 'tool.executed'], n),
      outcome: blocked ? 'blocked' : 'success',
      durationMs: 20 + (n % 100) * 8,
      tool: pick(['cart.add', 'checkout.pay'], n >> 1),
      agent: {
        class: pick(['crawler', 'dom', 'webmcp'], n >> 2),
        trust: pick(['detected', 'declared', 'verified', 'linked'], n >> 2),
        vendor,
        userAgent: `${vendor}/1.0`,
      },
      policy: {
        decision: blocked ? 'deny' : 'allow',
        ruleId: 'tool:checkout.pay',
        reason: 'trust below verified',
      },
      metadata: { page: '/checkout', protocol: pick(['oauth2', 'bearer'], n >> 2), subject: `who-${n % 5}` },
    })
  })
}

export interface Wanted {
  type?: string
  siteId?: string
  outcome?: string
  vendor?: string
}

export function matching(events: TestEvent[], criteria: Wanted, since: string, until: string): TestEvent[] {
  return events.filter(
    (sentEvent) =>
      sentEvent.occurredAt >= since &&
      sentEvent.occurredAt < until &&
      (criteria.type === undefined || sentEvent.type === criteria.type) &&
      (criteria.siteId === undefined || sentEvent.siteId === criteria.siteId) &&
      (criteria.outcome === undefined || sentEvent.outcome === criteria.outcome) &&
      (criteria.vendor === undefined || sentEvent.agent.vendor === criteria.vendor),
  )
}

/** The last N days (contract §19): from N × 24 hours before the running hour to its end. */
export function runningRange(days: number, nowMs: number): { since: string; until: string } {
  const startMs = Math.floor(nowMs / hourMs) * hourMs
  const at = (ms: number): string => new Date(ms).toISOString()
  return { since: at(startMs - days * 24 * hourMs), until: at(startMs + hourMs) }
}

/** As many days before a range. */
export function earlier(range: { since: string }, days: number): { since: string; until: string } {
  const sinceMs = Date.parse(range.since) - days * 24 * hourMs
  return { since: new Date(sinceMs).toISOString(), until: range.since }
}
