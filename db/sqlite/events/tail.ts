/** Events in arrival order: what the live stream and webhook positions read. */
import type { Database } from 'bun:sqlite'
import type { EventFilter, EventTail, StoredEvent } from '../../store.ts'
import type { Clause } from './filter-codes.ts'
import { readBlock } from './open-block.ts'
import { storedLastSeq } from './org-state.ts'
import { seqOf } from './place.ts'
import { partsOf } from './walk.ts'

export function readTail(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: { filter: EventFilter; afterSeq: number; limit: number; exceptKeys: ReadonlySet<number> },
  inTime: () => void,
): EventTail {
  const { afterSeq, limit, exceptKeys } = query
  const since = query.filter.sinceMs ?? -Infinity
  const until = query.filter.untilMs ?? Infinity
  const events: StoredEvent[] = []
  for (const part of partsOf(db, org, clauses, afterSeq)) {
    inTime()
    for (const zone of part.zones()) {
      if (seqOf(zone.place) + zone.events - 1 <= afterSeq || zone.maxAt < since || zone.minAt >= until)
        continue
      inTime()
      const block = readBlock(db, zone, clauses)
      if (block === null) continue
      for (let row = Math.max(0, afterSeq + 1 - block.firstSeq); row < block.rows; row++) {
        const at = block.at(row)
        if (at < since || at >= until || !part.mayMatch(zone, row) || !block.matches(row, clauses)) continue
        if (exceptKeys.size > 0 && exceptKeys.has(block.key(row))) continue
        if (events.length === limit) return { events, lastSeq: events.at(-1)?.seq ?? afterSeq }
        events.push(block.event(row))
      }
    }
  }
  return { events, lastSeq: Math.max(afterSeq, storedLastSeq(db, org)) }
}
