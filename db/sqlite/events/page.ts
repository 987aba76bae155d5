/** A page of events, newest first by (occurredAt, seq): the walk of traces and Logs. */
import type { Database } from 'bun:sqlite'
import type { EventFilter, EventPage, EventPageQuery, EventPosition, StoredEvent } from '../../store.ts'
import type { Zone } from './block-table.ts'
import type { Clause } from './filter-codes.ts'
import { readBlock, type OpenBlock } from './open-block.ts'
import { seqOf } from './place.ts'
import { partsOf, type Part } from './walk.ts'

interface Found {
  at: number
  seq: number
  block: OpenBlock
  row: number
}

export interface Bounds {
  sinceMs: number // inclusive
  before: EventPosition // exclusive
  ceilingSeq: number // inclusive
}

/**
 * Parts, and the blocks in each, are taken by the newest time they hold; once the page is full, the first one that
 * is older than its last event ends the search. `inTime` throws when the read has taken too long.
 */
export function readPage(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: EventPageQuery,
  ceilingSeq: number,
  inTime: () => void,
): EventPage {
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
  return opened(found.slice(0, query.limit), { next, ceilingSeq }, query.charsMax ?? Infinity)
}

/** Opens the texts of the rows, until they are too long together: then the page ends before the first one too many. */
function opened(
  rows: Found[],
  { next, ceilingSeq }: Pick<EventPage, 'next' | 'ceilingSeq'>,
  charsMax: number,
): EventPage {
  const events: StoredEvent[] = []
  let chars = 0
  for (const { block, row } of rows) {
    const event = block.event(row)
    chars += event.json.length
    const last = events.at(-1)
    if (last !== undefined && chars > charsMax)
      return { events, next: { occurredAtMs: last.occurredAtMs, seq: last.seq }, ceilingSeq }
    events.push(event)
  }
  return { events, next, ceilingSeq }
}

export function boundsOf(
  { filter, before }: { filter: EventFilter; before: EventPosition | null },
  ceilingSeq: number,
): Bounds {
  const until = { occurredAtMs: filter.untilMs ?? Infinity, seq: 0 }
  const isEarlier = before !== null && before.occurredAtMs < until.occurredAtMs
  return { sinceMs: filter.sinceMs ?? -Infinity, before: isEarlier ? before : until, ceilingSeq }
}

export function overlaps(
  { minAt, maxAt }: { minAt: number; maxAt: number },
  { sinceMs, before }: Bounds,
): boolean {
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
  add: (found: Found) => void,
): void {
  const block = readBlock(db, zone, clauses)
  if (block === null) return
  for (let row = 0; row < block.rows; row++) {
    if (!part.mayMatch(zone, row)) continue
    const at = block.at(row)
    const seq = block.firstSeq + row
    if (at < sinceMs || at > before.occurredAtMs || (at === before.occurredAtMs && seq >= before.seq))
      continue
    if (seq > ceilingSeq || !block.matches(row, clauses)) continue
    add({ at, seq, block, row })
  }
}

/** Keeps the newest `size` of what is added. */
function newestOf(size: number) {
  let found: Found[] = []
  let oldestAt = -Infinity
  const order = (a: Found, b: Found) => b.at - a.at || b.seq - a.seq

  function cut(): void {
    found = found.sort(order).slice(0, size)
    if (found.length === size) oldestAt = found[size - 1]!.at
  }

  return {
    add(one: Found): void {
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
    sorted(): Found[] {
      cut()
      return found
    },
  }
}
