/** Counts the stored events that match a filter by outcome and time, newest first: the bars above Logs. */
import type { Database } from '../../database.ts'
import type { EventHistogram, HistogramQuery } from '../../../contract/store.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { type OpenBlock, type Zone, readAhead, readBlock } from '../blocks/block-table.ts'
import { member, termTexts } from '../blocks/fields.ts'
import { filterClauses } from '../index/filter-codes.ts'
import type { Clause } from '../blocks/clause.ts'
import { boundsOf, newestFirst, newestZones, overlaps } from './page.ts'
import { textFinder } from '../blocks/texts.ts'
import { stepAt } from './filtered-counts.ts'
import { partsOf, type Part } from '../index/walk.ts'

interface Counting {
  clauses: readonly Clause[]
  edges: readonly number[]
  sinceMs: number // inclusive
  untilMs: number // exclusive
  hasText: ((block: OpenBlock, row: number) => boolean) | null
  endMs: number
  counts: Map<number, number> // by outcome and step
}

/**
 * Blocks are read newest first, so only the oldest part is missing when the budget ends. Without a text only columns
 * are read. With one, the texts near the events that match the other filters are searched, on the reader thread.
 */
export function* readHistogram(
  db: Database,
  org: number,
  hashSeed: number,
  { filter, edges, budgetMs }: HistogramQuery,
): Sliced<EventHistogram> {
  const [firstEdge = 0, lastEdge = 0] = [edges[0], edges.at(-1)]
  const clauses = filterClauses(db, org, hashSeed, filter)
  const counting: Counting = {
    clauses,
    edges,
    counts: new Map(),
    sinceMs: Math.max(firstEdge, filter.sinceMs ?? firstEdge),
    untilMs: Math.min(lastEdge, filter.untilMs ?? lastEdge),
    hasText: filter.text === undefined ? null : textFinder(filter.text),
    endMs: performance.now() + budgetMs,
  }
  const timeRange = { sinceMs: counting.sinceMs, untilMs: counting.untilMs }
  const bounds = boundsOf({ filter: timeRange, before: null }, Number.MAX_SAFE_INTEGER)
  const parts = partsOf(db, org, clauses, 0).filter((part) => overlaps(part, bounds))
  let exactSinceMs = firstEdge
  search: for (const [index, part] of parts.sort(newestFirst).entries()) {
    if (isSliceOver()) yield
    for (const zone of readAhead(db, newestZones(part, bounds))) {
      if (isSliceOver()) yield
      if (yield* countZone(db, part, zone, counting)) continue
      const newestLeft = Math.max(zone.maxAt, parts[index + 1]?.maxAt ?? zone.maxAt)
      exactSinceMs = Math.min(newestLeft + 1, lastEdge)
      break search
    }
  }
  const outcomes = termTexts(db, org, member.outcome)
  const rows = Array.from(counting.counts, ([key, count]) => ({
    outcome: outcomes.get(Math.floor(key / edges.length)) ?? '',
    startMs: edges[key % edges.length]!,
    count,
  }))
  return { rows, exactSinceMs }
}

/** False when the budget ended before the last row. */
function* countZone(db: Database, part: Part, zone: Zone, counting: Counting): Sliced<boolean> {
  const { clauses, edges, sinceMs, untilMs, hasText, endMs, counts } = counting
  if (performance.now() > endMs) return false
  const block = readBlock(db, zone, clauses)
  if (block === null) return true
  const outcomes = block.codes(member.outcome)
  let step = 0
  for (let row = 0; row < block.rows; row++) {
    const atMs = block.at(row)
    if (atMs < sinceMs || atMs >= untilMs || !part.mayMatch(zone, row) || !block.matches(row, clauses))
      continue
    if (hasText !== null) {
      if (isSliceOver()) yield // 256 large events take 35 ms
      if (performance.now() > endMs) return false
      if (!hasText(block, row)) continue
    }
    step = stepAt(edges, atMs, step)
    const key = outcomes[row]! * edges.length + step
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return true
}
