/** Finds the sessions whose newest matching event comes next, newest first. */
import type { Database } from 'bun:sqlite'
import type { SessionPageQuery } from '../../session-store.ts'
import type { EventPosition } from '../../store.ts'
import type { Zone } from '../events/block-table.ts'
import type { Clause } from '../events/filter-codes.ts'
import { readBlock } from '../events/open-block.ts'
import { boundsOf, newestFirst, overlaps, type Bounds } from '../events/page.ts'
import { seqOf } from '../events/place.ts'
import { partsOf, type Part } from '../events/walk.ts'
import type { LogView } from './log-view.ts'

export interface Candidate {
  id: string
  newest: EventPosition // of its events that match and come after where the walk stands
  before: EventPosition | null // where a walk stands that has yet to meet it
}

export interface Walk extends Pick<SessionPageQuery, 'filter'> {
  clauses: readonly Clause[]
  ceilingSeq: number
  told: Set<string> // sessions that were candidates already, as JSON text
  endMs: number
}

interface Scan extends Walk {
  db: Database
  bounds: Bounds
  newest: Map<string, EventPosition> // by session as JSON text
  isPruned: boolean
}

/**
 * Parts, and the blocks in each, are taken by the newest time they hold; what is older than the last of `count`
 * candidates ends the search. When time is up it ends at the first candidate that nothing left can come before. `next`
 * is null when no event is left to look at.
 */
export function nextCandidates(
  { db, org, inTime }: LogView,
  walk: Walk,
  before: EventPosition | null,
  count: number,
): { candidates: Candidate[]; next: EventPosition | null } {
  const { clauses, ceilingSeq, endMs } = walk
  const bounds = boundsOf({ filter: walk.filter, before }, ceilingSeq)
  const scan: Scan = { ...walk, db, bounds, newest: new Map(), isPruned: false }
  const meets = (one: Zone | Part) => overlaps(one, bounds)
  const parts = partsOf(db, org, clauses, 0).filter((part) => part.firstSeq <= ceilingSeq && meets(part))
  parts.sort(newestFirst)
  for (const [index, part] of parts.entries()) {
    const zones = part.zones().filter((zone) => seqOf(zone.place) <= ceilingSeq && meets(zone))
    zones.sort(newestFirst)
    for (const [at, zone] of zones.entries()) {
      inTime()
      scanZone(scan, part, zone)
      const isLate = performance.now() > endMs
      const left = Math.max(zones[at + 1]?.maxAt ?? -Infinity, parts[index + 1]?.maxAt ?? -Infinity)
      if (left === -Infinity || (scan.newest.size < count && !isLate)) continue
      prune(scan, count)
      const settled = settledAfter(scan.newest, Math.min(left, bounds.before.occurredAtMs))
      const last = settled.at(-1)?.[1]
      if (last === undefined || (settled.length < count && !isLate)) continue
      const next = settled.length === count ? last : { occurredAtMs: left, seq: ceilingSeq + 1 }
      return { candidates: candidatesOf(settled, before, walk.told), next }
    }
  }
  prune(scan, count)
  const found = [...scan.newest]
  const next = scan.isPruned ? (found.at(-1)?.[1] ?? null) : null
  return { candidates: candidatesOf(found, before, walk.told), next }
}

/** Sorts, and keeps the newest ones. One that goes and turns out to be newer comes again. */
function prune(scan: Scan, count: number): void {
  const sorted = [...scan.newest].sort(([, a], [, b]) => b.occurredAtMs - a.occurredAtMs || b.seq - a.seq)
  if (sorted.length > count) scan.isPruned = true
  scan.newest = new Map(sorted.slice(0, count))
}

function scanZone({ db, bounds, clauses, told, newest }: Scan, part: Part, zone: Zone): void {
  const block = readBlock(db, zone, clauses)
  if (block === null) return
  const { sinceMs, before, ceilingSeq } = bounds
  for (let row = 0; row < block.rows; row++) {
    const at = block.at(row)
    const seq = block.firstSeq + row
    if (at < sinceMs || at > before.occurredAtMs || (at === before.occurredAtMs && seq >= before.seq))
      continue
    if (seq > ceilingSeq || !part.mayMatch(zone, row) || !block.matches(row, clauses)) continue
    const text = block.session(row)
    const known = newest.get(text)
    if (known === undefined) {
      if (!told.has(text)) newest.set(text, { occurredAtMs: at, seq })
    } else if (at > known.occurredAtMs || (at === known.occurredAtMs && seq > known.seq)) {
      known.occurredAtMs = at
      known.seq = seq
    }
  }
}

type Found = [text: string, newest: EventPosition]

/** Those that are newer than all that is left to look at. */
function settledAfter(newest: ReadonlyMap<string, EventPosition>, left: number): Found[] {
  const found = [...newest]
  const end = found.findIndex(([, { occurredAtMs }]) => occurredAtMs <= left)
  return end < 0 ? found : found.slice(0, end)
}

function candidatesOf(found: Found[], start: EventPosition | null, told: Set<string>): Candidate[] {
  return found.map(([text, newest], index) => {
    told.add(text)
    return { id: JSON.parse(text) as string, newest, before: found[index - 1]?.[1] ?? start }
  })
}
