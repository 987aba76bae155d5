/** Measures the stored events by the values of one field, or of a member of their metadata, for Explore. */
import { nothingExplored } from '../../../../contract/explore.ts'
import type { Explored, ExploredNumbers, ExploreQuery } from '../../../../contract/explore.ts'
import type { Database } from '../../../database.ts'
import { isSliceOver, type Sliced } from '../../../slices.ts'
import { type Zone, bothAhead, readBlock } from '../../blocks/block-table.ts'
import { seqOf } from '../../blocks/block.ts'
import { member } from '../../blocks/fields.ts'
import { fieldClause, filterClauses } from '../../index/filter-codes.ts'
import { expiredOf } from '../filtered-counts.ts'
import { partsOf } from '../../index/walk.ts'
import { exploreRollups } from './rollups.ts'
import { cutHours, scanner } from './scan.ts'
import {
  distinctTally,
  type Groups,
  groupsOf,
  missingGroup,
  otherGroup,
  quantileTally,
  sumTally,
  type Tally,
} from './groups.ts'
import { hourMs } from '../../../../contract/units.ts'

/**
 * Whole hours come from the rollups where they count the same, or from path columns. Everything else is read from
 * blocks, the newest ones first. Yields its progress. Without time there are no numbers, because none would be exact.
 */
export function* readExplore(
  db: Database,
  org: number,
  hashSeed: number,
  query: ExploreQuery,
): Sliced<Explored> {
  const endMs = performance.now() + query.budgetMs
  const { edges, filter, measure, also = [] } = query
  const outcomes = measure === 'errors' ? [fieldClause(db, org, hashSeed, member.outcome, ['error'])] : []
  const indexed = [...filterClauses(db, org, hashSeed, filter), ...outcomes]
  const clauses = [
    ...indexed,
    ...also.map(({ by: field, values }) => fieldClause(db, org, hashSeed, member[field], values)),
  ]
  const steps = edges.length - 1
  const groups = groupsOf(steps)
  const tally = tallyOf(measure, steps)
  const [since = 0, until = 0] = [edges[0], edges.at(-1)]
  const expired = expiredOf(db, org, clauses, since, until)
  const cut = cutHours(edges)
  const isCounted = yield* exploreRollups(db, org, query, clauses, groups, tally)
  if (isCounted && cut.size === 0) return result(query, groups, tally, expired)
  const overlaps = (span: Span): boolean =>
    span.maxAt >= since && span.minAt < until && (!isCounted || holdsHour(span, cut))
  const scan = scanner(db, org, query, clauses, groups, tally)
  const parts = partsOf(db, org, indexed, 0).filter(overlaps)
  const events = parts.reduce((sum, { firstSeq, lastSeq }) => sum + lastSeq + 1 - firstSeq, 0)
  let scannedEvents = 0
  for (const part of parts.reverse()) {
    yield scannedEvents / events
    if (performance.now() > endMs) return nothingExplored(query, false)
    const hasWhole = isCounted || scan.addSegment(part)
    const zones = part.zones().filter((zone) => overlaps(zone) && (!hasWhole || holdsHour(zone, cut)))
    for (const zone of bothAhead(db, zones, scan.needsTexts)) {
      if (isSliceOver()) yield (scannedEvents + seqOf(zone.place) - part.firstSeq) / events
      if (performance.now() > endMs) return nothingExplored(query, false)
      const block = readBlock(db, zone, clauses)
      if (block !== null) yield* scan.add(block, part, zone, hasWhole ? cut : null)
    }
    scannedEvents += part.lastSeq + 1 - part.firstSeq
  }
  return result(query, groups, tally, expired)
}

interface Span {
  minAt: number
  maxAt: number
}

/** Whether times of the span may be in any of these hours. */
function holdsHour({ minAt, maxAt }: Span, hours: ReadonlySet<number>): boolean {
  const first = Math.floor(minAt / hourMs)
  const last = Math.floor(maxAt / hourMs)
  if (last - first < hours.size) {
    for (let hour = first; hour <= last; hour++) if (hours.has(hour)) return true
    return false
  }
  for (const hour of hours) if (hour >= first && hour <= last) return true
  return false
}

function tallyOf(measure: ExploreQuery['measure'], steps: number): Tally {
  const share = { p50: 0.5, p95: 0.95, p99: 0.99 }[measure as string]
  if (share !== undefined) return quantileTally(steps, share)
  return measure === 'sessions' || measure === 'subjects' ? distinctTally(steps) : sumTally(steps)
}

/** The largest groups by themselves, all others together. */
function result(query: ExploreQuery, groups: Groups, tally: Tally, expired: number): Explored {
  const { values } = groups
  const valueGroups = values.map((_, group) => group).slice(missingGroup + 1)
  const sorted = valueGroups
    .filter((group) => tally.size(group) > 0)
    .sort((a, b) => tally.size(b) - tally.size(a) || (values[a]! < values[b]! ? -1 : 1))
  const shown = query.by === null ? [] : sorted.slice(0, query.rowsMax)
  const otherGroups = [...sorted.slice(shown.length), otherGroup]
  const allGroups = [otherGroup, missingGroup, ...valueGroups]
  const sets = [allGroups, [missingGroup], otherGroups, ...shown.map((group) => [group])]
  const [whole, missing, otherNumbers, ...rows] = tally.numbers(sets) as [
    ExploredNumbers,
    ExploredNumbers,
    ExploredNumbers,
    ...ExploredNumbers[],
  ]
  const isGrouped = query.by !== null
  return {
    rows: rows.map((numbers, index) => ({ value: values[shown[index]!]!, ...numbers })),
    missing: isGrouped && missing.events > 0 ? missing : null,
    other: isGrouped && otherNumbers.events > 0 ? { values: otherGroups.length - 1, ...otherNumbers } : null,
    all: whole,
    isCut: groups.isCut() || tally.isCut?.() === true,
    expired,
    complete: true,
  }
}
