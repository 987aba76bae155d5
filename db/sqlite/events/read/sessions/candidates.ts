/** Finds the sessions with the newest matching events, newest first. */
import { readBlock } from '../../blocks/open-block.ts'
import { boundsOf, endsBefore, newestFirst, newestZones, overlaps, type Bounds, type Span } from '../page.ts'
import { partsOf, type Part } from '../walk.ts'
import { isSliceOver, type Sliced } from '../../../threads/slices.ts'
import type { Database } from 'bun:sqlite'
import type { SessionPageQuery } from '../../../../contract/sessions.ts'
import type { EventPosition } from '../../../../contract/store.ts'
import type { Zone } from '../../blocks/block-table.ts'
import type { Clause } from '../../index/filter-codes.ts'

/** What a query of sessions needs of one snapshot of an organization's log. */
export interface LogView {
  db: Database
  org: number
  hashSeed: number
}

export interface Candidate {
  id: string
  newest: EventPosition // its newest matching event after the walk's position
  before: EventPosition | null // a position of the walk before it reaches the session
}

export interface Walk extends Pick<SessionPageQuery, 'filter'> {
  clauses: readonly Clause[]
  ceilingSeq: number
  told: Set<string> // sessions that were candidates before, as JSON text
  endMs: number
}

interface Scan extends Walk {
  db: Database
  bounds: Bounds
  newest: Map<string, EventPosition> // by session as JSON text
  isPruned: boolean
}

/**
 * Visits parts, and the blocks in each, by their newest time. The search ends at what is older than the last of `count`
 * candidates. When time is up it ends where everything newer was examined, possibly without a candidate. `next` is null
 * when no event is left.
 */
export function* nextCandidates(
  { db, org }: LogView,
  walk: Walk,
  before: EventPosition | null,
  count: number,
): Sliced<{ candidates: Candidate[]; next: EventPosition | null }> {
  const { clauses, ceilingSeq, endMs } = walk
  const bounds = boundsOf({ filter: walk.filter, before }, ceilingSeq)
  const scan: Scan = { ...walk, db, bounds, newest: new Map(), isPruned: false }
  const parts = partsOf(db, org, clauses, 0).filter((part) => overlaps(part, bounds))
  parts.sort(newestFirst)
  for (const [index, part] of parts.entries()) {
    const zones = newestZones(part, bounds)
    for (const [at, zone] of zones.entries()) {
      if (isSliceOver()) yield
      scanZone(scan, part, zone)
      const isLate = performance.now() > endMs
      const left = newestOf(zones[at + 1], parts[index + 1])
      if (left === null || (scan.newest.size < count && !isLate)) continue
      prune(scan, count)
      const settled = settledAfter(scan.newest, left)
      if (settled.length < count && !isLate) continue
      const next = settled.length === count ? settled.at(-1)![1] : endOf(left)
      if (settled.length === 0 && !isEarlier(next, bounds.before)) continue // the walk would not advance
      return { candidates: candidatesOf(settled, before, walk.told), next }
    }
  }
  prune(scan, count)
  const found = [...scan.newest]
  const next = scan.isPruned ? (found.at(-1)?.[1] ?? null) : null
  return { candidates: candidatesOf(found, before, walk.told), next }
}

/** Sorts and keeps the newest ones. A dropped session that proves newer is added again. */
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

/** The candidates newer than all that is left to examine. */
function settledAfter(newest: ReadonlyMap<string, EventPosition>, left: Span): Found[] {
  const found = [...newest]
  const end = found.findIndex(([, position]) => !endsBefore(left, position))
  return end < 0 ? found : found.slice(0, end)
}

export function newestOf(zone: Span | undefined, part: Span | undefined): Span | null {
  if (zone === undefined || part === undefined) return zone ?? part ?? null
  return newestFirst(zone, part) <= 0 ? zone : part
}

/** The position before which everything in it lies. */
function endOf({ maxAt, lastSeq }: Span): EventPosition {
  return { occurredAtMs: maxAt, seq: lastSeq + 1 }
}

function isEarlier(a: EventPosition, b: EventPosition): boolean {
  return a.occurredAtMs < b.occurredAtMs || (a.occurredAtMs === b.occurredAtMs && a.seq < b.seq)
}

function candidatesOf(found: Found[], start: EventPosition | null, told: Set<string>): Candidate[] {
  return found.map(([text, newest], index) => {
    told.add(text)
    return { id: JSON.parse(text) as string, newest, before: found[index - 1]?.[1] ?? start }
  })
}
