/** The naive model of the trust that sessions reached, counted one by one, for tests of the engine and the API. */

export interface SeenEvent {
  sessionId: string
  siteId: string
  type: string
  atMs: number
  trust: string | null
}

interface Asked {
  since: string
  until: string
  siteIds?: string[]
}

const ladder = ['detected', 'declared', 'verified', 'linked']
const dayMs = 24 * 3_600_000

/** Detections of the range by the highest trust of any event of their session, up to a day around the range. */
export function trustModel(
  events: SeenEvent[],
  { since, until, siteIds = [] }: Asked,
  counts: (index: number) => boolean = () => true,
) {
  const sinceMs = Date.parse(since)
  const untilMs = Date.parse(until)
  const heights = new Map<string, number>()
  for (const { sessionId, trust, atMs } of events) {
    if (atMs < sinceMs - dayMs || atMs >= untilMs + dayMs) continue
    heights.set(sessionId, Math.max(heights.get(sessionId) ?? -1, ladder.indexOf(trust ?? '')))
  }
  const rows = new Map<number, { events: number; sessions: Set<string> }>()
  for (const [index, { sessionId, type, siteId, atMs }] of events.entries()) {
    if (!counts(index)) continue
    if (type !== 'agent.detected' || atMs < sinceMs || atMs >= untilMs) continue
    if (siteIds.length > 0 && !siteIds.includes(siteId)) continue
    const height = heights.get(sessionId) ?? -1
    const row = rows.get(height) ?? { events: 0, sessions: new Set<string>() }
    row.events++
    row.sessions.add(sessionId)
    rows.set(height, row)
  }
  return [...rows]
    .sort(([a], [b]) => b - a)
    .map(([height, row]) => ({
      trust: ladder[height] ?? null,
      events: row.events,
      sessions: row.sessions.size,
    }))
}
