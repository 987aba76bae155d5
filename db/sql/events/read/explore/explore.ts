/** Measures the stored events by the values of one field, or of a member of their metadata, for Explore. */
import { nothingExplored } from '../../../../contract/explore.ts'
import type { Explored, ExploredNumbers, ExploreQuery } from '../../../../contract/explore.ts'
import type { Database } from '../../../database.ts'
import { isSliceOver, type Sliced } from '../../../threads/slices.ts'
import { type OpenBlock, type Zone, readAhead, readBlock } from '../../blocks/block-table.ts'
import { extra, segmentEvents, seqOf } from '../../blocks/block.ts'
import { hashSpan, isHash, member, termTexts } from '../../blocks/fields.ts'
import { textsAhead } from '../../blocks/read-ahead.ts'
import { fieldClause, filterClauses, type Clause } from '../../index/filter-codes.ts'
import { hourSpan, noOffset } from '../../paths/columns.ts'
import { hourMs } from '../../rollups/counts.ts'
import { bucketOf } from '../../rollups/sketches.ts'
import { expiredOf, stepAt } from '../filtered-counts.ts'
import { partsOf, type Part } from '../walk.ts'
import { readMembers, type Members } from './members.ts'
import { exploreRollups } from './rollups.ts'
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

/**
 * From the rollups where they count the same, otherwise from columns, and from texts for members of the metadata. Reads
 * the newest blocks first and yields its progress. Without time there are no numbers, because none would be exact.
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
    ...also.map(({ by, values }) => fieldClause(db, org, hashSeed, member[by], values)),
  ]
  const steps = edges.length - 1
  const groups = groupsOf(steps)
  const tally = tallyOf(measure, steps)
  const [since = 0, until = 0] = [edges[0], edges.at(-1)]
  const expired = expiredOf(db, org, clauses, since, until)
  if (yield* exploreRollups(db, org, query, clauses, groups, tally))
    return result(query, groups, tally, expired)
  const scan = scanner(db, org, query, clauses, groups, tally)
  const parts = partsOf(db, org, indexed, 0).filter((part) => part.maxAt >= since && part.minAt < until)
  const events = parts.reduce((sum, { firstSeq, lastSeq }) => sum + lastSeq + 1 - firstSeq, 0)
  let before = 0
  for (const part of parts.reverse()) {
    yield before / events
    if (performance.now() > endMs) return nothingExplored(query, false)
    const next = before + part.lastSeq + 1 - part.firstSeq
    if (scan.addSegment(part)) {
      before = next
      continue
    }
    const zones = part.zones().filter(({ minAt, maxAt }) => maxAt >= since && minAt < until)
    for (const zone of bothAhead(db, zones, scan.needsTexts)) {
      if (isSliceOver()) yield (before + seqOf(zone.place) - part.firstSeq) / events
      if (performance.now() > endMs) return nothingExplored(query, false)
      const block = readBlock(db, zone, clauses)
      if (block !== null) yield* scan.add(block, part, zone)
    }
    before = next
  }
  return result(query, groups, tally, expired)
}

function tallyOf(measure: ExploreQuery['measure'], steps: number): Tally {
  const share = { p50: 0.5, p95: 0.95, p99: 0.99 }[measure as string]
  if (share !== undefined) return quantileTally(steps, share)
  return measure === 'sessions' || measure === 'subjects' ? distinctTally(steps) : sumTally(steps)
}

/** The columns of the blocks, and where they are needed their texts, before they are opened. */
function* bothAhead(db: Database, zones: Zone[], needsTexts: (zone: Zone) => boolean): Generator<Zone> {
  const withTexts = new Set(zones.filter(needsTexts))
  const texts = textsAhead(db, [...withTexts], ({ place }) => place)[Symbol.iterator]()
  try {
    for (const zone of readAhead(db, zones)) {
      if (withTexts.has(zone)) texts.next()
      yield zone
    }
  } finally {
    texts.return?.()
  }
}

/** Rows between two checks of the slice where texts are read: 256 large events take 35 ms. */
const rowsPerCheck = 64

function scanner(
  db: Database,
  org: number,
  query: ExploreQuery,
  clauses: readonly Clause[],
  groups: Groups,
  tally: Tally,
) {
  const { edges, measure, by, metadata = [] } = query
  const paths = pathsOf(query)
  const members = paths.length === 0 ? null : readMembers(db, org, paths)
  const filters = metadata.map(({ values }) => new Set(values))
  const groupOf = grouper(db, org, query, groups, members)
  const amountOf = amounts(measure, members, by !== null && typeof by === 'object' ? 1 : 0)
  const [since = 0, until = 0] = [edges[0], edges.at(-1)]
  const firstFilter = paths.length - filters.length
  const stepOf = new Int32Array(hourSpan)
  const isOfPaths = clauses.length === 0 && needsOnlyPaths(query)
  const passes = (): boolean =>
    filters.every((values, index) => values.has(members!.text(firstFilter + index) ?? ''))
  return {
    needsTexts: (zone: Zone): boolean => members?.needsTexts(zone) === true,
    /** A sealed segment without reading its blocks; false when they have to be read. */
    addSegment({ segment }: Part): boolean {
      if (members === null || segment === null || !isOfPaths) return false
      const hours = members.openSegment(segment)
      if (hours === null) return false
      fillSteps(stepOf, edges, hours.base)
      const [group, amount] = [groupOf(null), amountOf(null)]
      for (let position = 0; position < segmentEvents; position++) {
        const step = stepOf[hours.offsets[position]!]!
        if (step < 0) continue
        members.readAt(position)
        if (filters.length > 0 && !passes()) continue
        const measured = amount(position)
        if (measured !== null) tally.add(group(position), step, measured)
      }
      return true
    },
    *add(block: OpenBlock, part: Part, zone: Zone): Sliced<void> {
      const [times, types] = [block.codes(extra.at), block.codes(member.type)]
      const group = groupOf(block)
      const amount = amountOf(block)
      members?.open(block, zone)
      let step = 0
      for (let row = 0; row < block.rows; row++) {
        const at = times[row]!
        if (types[row] === 0 || at < since || at >= until || !part.mayMatch(zone, row)) continue
        if (clauses.length > 0 && !block.matches(row, clauses)) continue
        if (members !== null) {
          if (row % rowsPerCheck === 0 && isSliceOver()) yield
          members.read(row)
          if (filters.length > 0 && !passes()) continue
        }
        const measured = amount(row)
        if (measured === null) continue
        step = stepAt(edges, at, step)
        tally.add(group(row), step, measured)
      }
    },
  }
}

/** Whether members of the metadata and the hours of events are all that a query asks for. */
function needsOnlyPaths({ by, measure, edges }: ExploreQuery): boolean {
  const isOfEvents = measure === 'events' || measure === 'bytes' || measure === 'tokens'
  return isOfEvents && (by === null || typeof by === 'object') && edges.every((edge) => edge % hourMs === 0)
}

/** The steps of hours, by their distance from a first one; -1 outside of all steps. */
function fillSteps(stepOf: Int32Array, edges: readonly number[], baseHour: number): void {
  const placeOf = (edge: number) => Math.min(Math.max(edge / hourMs - baseHour, 0), noOffset)
  stepOf.fill(-1)
  for (let step = 0; step < edges.length - 1; step++)
    stepOf.fill(step, placeOf(edges[step]!), placeOf(edges[step + 1]!))
}

/** The members that are read: first that of the groups, then those of the measure, then those of the filters. */
function pathsOf({ by, measure, metadata = [] }: ExploreQuery): string[] {
  const ofMeasure = { bytes: ['bytes'], tokens: ['tokens', 'tokens.input', 'tokens.output'] }[
    measure as string
  ]
  return [
    ...(by !== null && typeof by === 'object' ? [by.metadata] : []),
    ...(ofMeasure ?? []),
    ...metadata.map(({ path }) => path),
  ]
}

/** Without a block, members of positions are read. */
type OfRows<T> = (block: OpenBlock | null) => (row: number) => T

/** The group of each row. */
function grouper(
  db: Database,
  org: number,
  { by }: ExploreQuery,
  groups: Groups,
  members: Members | null,
): OfRows<number> {
  if (by === null) {
    const all = groups.of('all')
    return () => () => all
  }
  const ofText = (text: string | null): number => (text === null ? missingGroup : groups.of(text))
  if (typeof by === 'object') {
    const byCode: number[] = []
    return () => () => {
      const code = members!.code(0)
      return code < 0 ? ofText(members!.text(0)) : (byCode[code] ??= ofText(members!.text(0)))
    }
  }
  if (by === 'sessionId') return (block) => (row) => groups.of(JSON.parse(block!.session(row)) as string)
  const index = member[by]
  const texts = termTexts(db, org, index)
  const known = new Map<number, number>([[0, missingGroup]]) // code -> group
  return (block) => {
    const codes = block!.codes(index)
    return (row) => {
      const code = codes[row]!
      if (isHash(code)) return ofText(block!.hashedText(index, row))
      let group = known.get(code)
      if (group === undefined) known.set(code, (group = ofText(texts.get(code) ?? '')))
      return group
    }
  }
}

/** What is measured of each row; null: nothing. */
function amounts(
  measure: ExploreQuery['measure'],
  members: Members | null,
  slot: number,
): OfRows<number | null> {
  if (measure === 'sessions' || measure === 'subjects') {
    const index = measure === 'sessions' ? member.sessionId : member.subject
    return (block) => {
      const codes = block!.codes(index)
      return (row) => (codes[row] === 0 ? null : codes[row]! % hashSpan)
    }
  }
  if (measure === 'bytes') return () => () => members!.number(slot)
  if (measure === 'tokens') return () => () => tokensOf(members!, slot)
  if (measure === 'events' || measure === 'errors') return () => () => 1
  return (block) => {
    const durations = block!.codes(extra.duration)
    return (row) => (durations[row]! < 0 ? null : bucketOf(durations[row]!))
  }
}

/** A number, or an object of two. */
function tokensOf(members: Members, slot: number): number | null {
  const whole = members.number(slot)
  if (whole !== null) return whole
  const [input, output] = [members.number(slot + 1), members.number(slot + 2)]
  return input === null && output === null ? null : (input ?? 0) + (output ?? 0)
}

/** The largest groups by themselves, all others together. */
function result(query: ExploreQuery, groups: Groups, tally: Tally, expired: number): Explored {
  const { values } = groups
  const named = values.map((_, group) => group).slice(missingGroup + 1)
  const sorted = named
    .filter((group) => tally.size(group) > 0)
    .sort((a, b) => tally.size(b) - tally.size(a) || (values[a]! < values[b]! ? -1 : 1))
  const shown = query.by === null ? [] : sorted.slice(0, query.rowsMax)
  const others = [...sorted.slice(shown.length), otherGroup]
  const all = [otherGroup, missingGroup, ...named]
  const sets = [all, [missingGroup], others, ...shown.map((group) => [group])]
  const [whole, missing, other, ...rows] = tally.numbers(sets) as [
    ...[ExploredNumbers, ExploredNumbers, ExploredNumbers],
    ...ExploredNumbers[],
  ]
  const isGrouped = query.by !== null
  return {
    rows: rows.map((numbers, index) => ({ value: values[shown[index]!]!, ...numbers })),
    missing: isGrouped && missing.events > 0 ? missing : null,
    other: isGrouped && other.events > 0 ? { values: others.length - 1, ...other } : null,
    all: whole,
    isCut: groups.isCut() || tally.isCut?.() === true,
    expired,
    complete: true,
  }
}
