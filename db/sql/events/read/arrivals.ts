/** Reads events in arrival order: the tail that live streams and webhooks follow, and counts of a range. */
import { lastSeqOf, readAhead, readBlock, storedLastSeq, type Zone } from '../blocks/block-table.ts'
import { textFinder } from '../blocks/texts.ts'
import { seqOf } from '../blocks/block.ts'
import { eventAt } from './page.ts'
import { provenanceReader } from './provenance.ts'
import { partsOf } from '../index/walk.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import type { Database } from '../../database.ts'
import type { EventCountQuery, EventTail, EventTailQuery, StoredEvent } from '../../../contract/store.ts'
import type { Clause } from '../blocks/clause.ts'

/** Events in arrival order, for the live stream and webhooks. */
export function* readTail(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: Omit<EventTailQuery, 'exceptKeys'> & { exceptKeys: ReadonlySet<number> },
): Sliced<EventTail> {
  const { afterSeq, limit, bytesMax = Infinity, exceptKeys } = query
  const provenanceOf = query.provenance === true ? provenanceReader(db, org) : null
  const since = query.filter.sinceMs ?? -Infinity
  const until = query.filter.untilMs ?? Infinity
  const events: StoredEvent[] = []
  let bytes = 0
  for (const part of partsOf(db, org, clauses, afterSeq)) {
    if (isSliceOver()) yield
    const isRead = (zone: Zone) => lastSeqOf(zone) > afterSeq && zone.maxAt >= since && zone.minAt < until
    for (const zone of readAhead(db, part.zones().filter(isRead))) {
      if (isSliceOver()) yield
      const block = readBlock(db, zone, clauses)
      if (block === null) continue
      for (let row = Math.max(0, afterSeq + 1 - block.firstSeq); row < block.rows; row++) {
        const atMs = block.at(row)
        if (atMs < since || atMs >= until || !part.mayMatch(zone, row) || !block.matches(row, clauses))
          continue
        if (exceptKeys.size > 0 && exceptKeys.has(block.key(row))) continue
        const last = events.at(-1)
        if (events.length === limit) return { events, lastSeq: last?.seq ?? afterSeq }
        const event = eventAt(block, row, provenanceOf)
        bytes += Buffer.byteLength(event.json)
        if (last !== undefined && bytes > bytesMax) return { events, lastSeq: last.seq }
        events.push(event)
      }
    }
  }
  return { events, lastSeq: Math.max(afterSeq, storedLastSeq(db, org)) }
}

/** Ends a step, so that no snapshot stays open for long. The caller continues after `lastSeq`. */
const stepMs = 100

export function* countEvents(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  { filter, afterSeq, ceilingSeq }: EventCountQuery,
  exceptKeys: ReadonlySet<number> = new Set(),
  budgetMs = stepMs,
): Sliced<{ count: number; lastSeq: number }> {
  const since = filter.sinceMs ?? -Infinity
  const until = filter.untilMs ?? Infinity
  const hasText = filter.text === undefined ? null : textFinder(filter.text)
  const endMs = performance.now() + budgetMs
  let count = 0
  for (const part of partsOf(db, org, clauses, afterSeq)) {
    if (part.firstSeq > ceilingSeq) break
    if (part.maxAt < since || part.minAt >= until) continue
    if (isSliceOver()) yield
    const isRead = (zone: Zone) =>
      lastSeqOf(zone) > afterSeq &&
      seqOf(zone.place) <= ceilingSeq &&
      zone.maxAt >= since &&
      zone.minAt < until
    for (const zone of readAhead(db, part.zones().filter(isRead))) {
      const firstSeq = seqOf(zone.place)
      const lastSeq = lastSeqOf(zone)
      if (isSliceOver()) yield
      const block = readBlock(db, zone, clauses)
      if (block !== null) {
        for (let row = Math.max(0, afterSeq + 1 - firstSeq); row < block.rows; row++) {
          const atMs = block.at(row)
          if (hasText !== null && isSliceOver()) yield // 256 large events take 35 ms
          if (atMs < since || atMs >= until || firstSeq + row > ceilingSeq || !part.mayMatch(zone, row))
            continue
          if (exceptKeys.size > 0 && exceptKeys.has(block.key(row))) continue
          if (block.matches(row, clauses) && (hasText === null || hasText(block, row))) count++
        }
      }
      if (performance.now() > endMs) return { count, lastSeq: Math.min(lastSeq, ceilingSeq) }
    }
  }
  return { count, lastSeq: ceilingSeq }
}
