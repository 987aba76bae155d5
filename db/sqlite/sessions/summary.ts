/** Sums up a session while its events go by, newest first. */
import type { Session } from '../../session-store.ts'
import type { StoredEvent } from '../../store.ts'

interface Members {
  siteId: string
  sessionId: string
  type: string
  outcome: string
  agent?: { class?: string | null; vendor?: string | null; trust?: string | null } | null
}

/** Known trusts, rising; any other counts as less. */
const ladder = ['detected', 'declared', 'verified', 'linked']

export function sessionSummary(id: string) {
  const siteIds = new Set<string>()
  const byPillar = new Map<string, number>()
  const byOutcome = new Map<string, number>()
  let events = 0
  let firstSeenAtMs = Infinity
  let lastSeenAtMs = -Infinity
  let best: { height: number; class: string | null; vendor: string | null; trust: string | null } | null =
    null

  function add({ json, occurredAtMs }: StoredEvent): void {
    const event = JSON.parse(json) as Members
    events++
    firstSeenAtMs = Math.min(firstSeenAtMs, occurredAtMs)
    lastSeenAtMs = Math.max(lastSeenAtMs, occurredAtMs)
    siteIds.delete(event.siteId) // the last to be added is the first that appeared
    siteIds.add(event.siteId)
    count(byPillar, event.type.split('.', 1)[0] ?? event.type)
    count(byOutcome, event.outcome)
    const { agent } = event
    if (!agent || (!agent.class && !agent.vendor && !agent.trust)) return
    const height = ladder.indexOf(agent.trust ?? '')
    // The newest comes first, so that among equals the one already there is the latest.
    if (best !== null && height <= best.height) return
    best = {
      height,
      class: agent.class || null,
      vendor: agent.vendor || null,
      trust: agent.trust || null,
    }
  }

  return {
    add,
    events: () => events,
    result: (isCut: boolean): Session => ({
      id,
      siteIds: [...siteIds].reverse(),
      firstSeenAtMs,
      lastSeenAtMs,
      events,
      isCut,
      class: best?.class ?? null,
      vendor: best?.vendor ?? null,
      trust: best?.trust ?? null,
      byPillar: Object.fromEntries(byPillar),
      byOutcome: Object.fromEntries(byOutcome),
    }),
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
