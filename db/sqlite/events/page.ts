/** A page of events, newest first by (occurredAt, seq): the walk of traces and Logs. */
import type { Database } from 'bun:sqlite'
import type { EventFilter, EventPage, EventPageQuery, EventPosition } from '../../store.ts'
import type { Zone } from './block-table.ts'
import type { Clause } from './filter-codes.ts'
import { readBlock, type OpenBlock } from './open-block.ts'
import { seqOf } from './place.ts'
import { partsOf, type Part } from './walk.ts'

export interface FoundRow {
  at: number
  seq: number
  block: OpenBlock
  row: number
}

interface Bounds {
  sinceMs: number // inclusive
  before: EventPosition // exclusive
  ceilingSeq: number // inclusive
}

export function readPage(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: EventPageQuery,
  ceilingSeq: number,
  inTime: () => void,
): EventPage {
  const { rows, next } = newestRows(db, org, clauses, query, ceilingSeq, inTime)
  return { events: rows.map(({ block, row }) => block.event(row)), next, ceilingSeq }
}

/**
 * Parts, and the blocks in each, are taken by the newest time they hold; once the page is full, the first one that
 * is older than its last event ends the search. `inTime` throws when the read has taken too long.
 */
export function newestRows(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: Pick<EventPageQuery, 'filter' | 'limit' | 'before'>,
  ceilingSeq: number,
  inTime: () => void,
): { rows: FoundRow[]; next: EventPosition | null } {
  const bounds = boundsOf(query, ceilingSeq)
  const best = newestOf(query.limit + 1)
  const parts = partsOf(db, org, clauses, 0).filter(
    (part) => part.firstSeq <= ceilingSeq && overlaps(part, bounds),
  )
  for (const part of parts.sort(newestFirst)) {
    if (best.isFull() && part.maxAt < best.oldestAt()) break
    inTime()
    const zones = part.zones().filter((zone) => seqOf(zone.place) <= ceilingSeq && overlaps(zone, bounds))
    for (const zone of zones.sort(newestFirst)) {
      if (best.isFull() && zone.maxAt < best.oldestAt()) break
      inTime()
      scanBlock(db, part, zone, clauses, bounds, best.add)
    }
  }
  const found = best.sorted()
  const last = found[query.limit - 1]
  const next =
    found.length > query.limit && last !== undefined ? { occurredAtMs: last.at, seq: last.seq } : null
  return { rows: found.slice(0, query.limit), next }
}

function boundsOf(
  { filter, before }: { filter: EventFilter; before: EventPosition | null },
  ceilingSeq: number,
): Bounds {
  const until = { occurredAtMs: filter.untilMs ?? Infinity, seq: 0 }
  const isEarlier = before !== null && before.occurredAtMs < until.occurredAtMs
  return { sinceMs: filter.sinceMs ?? -Infinity, before: isEarlier ? before : until, ceilingSeq }
}

function overlaps({ minAt, maxAt }: { minAt: number; maxAt: number }, { sinceMs, before }: Bounds): boolean {
  return maxAt >= sinceMs && minAt <= before.occurredAtMs
}

export function newestFirst(a: { maxAt: number }, b: { maxAt: number }): number {
  return b.maxAt - a.maxAt
}

function scanBlock(
  db: Database,
  part: Part,
  zone: Zone,
  clauses: readonly Clause[],
  { sinceMs, before, ceilingSeq }: Bounds,
  add: (found: FoundRow) => void,
): void {
  const block = readBlock(db, zone)
  if (block === null) return
  for (let row = 0; row < block.rows; row++) {
    const at = block.at[row]!
    const seq = block.firstSeq + row
    if (at < sinceMs || at > before.occurredAtMs || (at === before.occurredAtMs && seq >= before.seq))
      continue
    if (seq > ceilingSeq || !part.mayMatch(zone, row) || !block.matches(row, clauses)) continue
    add({ at, seq, block, row })
  }
}

/** Keeps the newest `size` of what is added. */
function newestOf(size: number) {
  let found: FoundRow[] = []
  let oldestAt = -Infinity
  const order = (a: FoundRow, b: FoundRow) => b.at - a.at || b.seq - a.seq

  function cut(): void {
    found = found.sort(order).slice(0, size)
    if (found.length === size) oldestAt = found[size - 1]!.at
  }

  return {
    add(one: FoundRow): void {
      if (one.at < oldestAt) return
      found.push(one)
      if (found.length >= size * 4) cut()
    },
    isFull(): boolean {
      if (found.length < size) return false
      cut()
      return true
    },
    oldestAt: () => oldestAt,
    sorted(): FoundRow[] {
      cut()
      return found
    },
  }
}
