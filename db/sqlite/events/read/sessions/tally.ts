/** What is summed up of a session, event by event in any order, as codes and positions. */
import type { EventPosition } from '../../../../contract/store.ts'
import type { Zone } from '../../blocks/block-table.ts'

/** An event's place and its members as codes (members.ts). */
export interface SessionRow {
  at: number
  seq: number
  zone: Zone
  row: number
  siteId: number
  type: number
  outcome: number
  class: number
  vendor: number
  trust: number
}

export interface Tally {
  events: number
  firstAt: number
  lastAt: number
  sites: Map<number, EventPosition> // where each appeared first
  types: Map<number, number> // events
  outcomes: Map<number, number>
  agent: (SessionRow & { height: number }) | null // the latest of the highest trust
}

export function emptyTally(): Tally {
  return {
    events: 0,
    firstAt: Infinity,
    lastAt: -Infinity,
    sites: new Map(),
    types: new Map(),
    outcomes: new Map(),
    agent: null,
  }
}

/** `heightOf` tells trusts apart; the row may be used again by whoever gave it. */
export function addToTally(tally: Tally, row: SessionRow, heightOf: (row: SessionRow) => number): void {
  const { at, seq } = row
  tally.events++
  if (at < tally.firstAt) tally.firstAt = at
  if (at > tally.lastAt) tally.lastAt = at
  tally.types.set(row.type, (tally.types.get(row.type) ?? 0) + 1)
  tally.outcomes.set(row.outcome, (tally.outcomes.get(row.outcome) ?? 0) + 1)
  const site = tally.sites.get(row.siteId)
  if (site === undefined) tally.sites.set(row.siteId, { occurredAtMs: at, seq })
  else if (at < site.occurredAtMs || (at === site.occurredAtMs && seq < site.seq)) {
    site.occurredAtMs = at
    site.seq = seq
  }
  if (row.class === 0 && row.vendor === 0 && row.trust === 0) return
  const height = heightOf(row)
  const { agent } = tally
  const isBetter =
    agent === null ||
    height > agent.height ||
    (height === agent.height && (at > agent.at || (at === agent.at && seq > agent.seq)))
  if (isBetter) tally.agent = { ...row, height }
}
