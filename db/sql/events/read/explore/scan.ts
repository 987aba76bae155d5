/** What a query reads of each event: the group that it belongs to, and what is measured of it. */
import type { ExploreQuery } from '../../../../contract/explore.ts'
import { keylessIds } from '../../../../contract/provenance.ts'
import type { Database } from '../../../database.ts'
import { isSliceOver, type Sliced } from '../../../slices.ts'
import type { OpenBlock, Zone } from '../../blocks/block-table.ts'
import { extra, segmentEvents } from '../../blocks/block.ts'
import { hashSpan, isHash, member, termTexts } from '../../blocks/fields.ts'
import type { Clause } from '../../blocks/clause.ts'
import { hourSpan, noOffset } from '../../paths/columns.ts'
import { bucketOf } from '../../rollups/sketches.ts'
import { stepAt } from '../filtered-counts.ts'
import { textFinder } from '../../blocks/texts.ts'
import type { Part } from '../../index/walk.ts'
import { type Groups, missingGroup, type Tally } from './groups.ts'
import { type CodedSegment, measureSegment } from './segment.ts'
import { readMembers, tokenPaths, tokensOf, type Members } from './members.ts'
import { hourMs } from '../../../../contract/units.ts'

/** Rows between two checks of the slice where texts are read: 256 large events take 35 ms. */
const rowsPerCheck = 64

interface Scanner {
  needsTexts(zone: Zone): boolean
  /** The whole hours of a sealed segment without reading its blocks; false when they have to be read. */
  addSegment(part: Part): boolean
  /** Events of a block, those of some hours or all. */
  add(block: OpenBlock, part: Part, zone: Zone, hourSet: ReadonlySet<number> | null): Sliced<void>
}

export function scanner(
  db: Database,
  org: number,
  query: ExploreQuery,
  clauses: readonly Clause[],
  groups: Groups,
  tally: Tally,
): Scanner {
  const { edges, measure, by: dimension, metadata = [], filter } = query
  const paths = pathsOf(query)
  const members = paths.length === 0 ? null : readMembers(db, org, paths)
  const filters = metadata.map(({ values }) => new Set(values))
  const groupOf = grouper(db, org, query, groups, members)
  const amountOf = amounts(measure, members, dimension !== null && typeof dimension === 'object' ? 1 : 0)
  const hasText = filter.text === undefined ? null : textFinder(filter.text)
  const [since = 0, until = 0] = [edges[0], edges.at(-1)]
  const stepOf = new Int32Array(hourSpan)
  const isOfPaths = clauses.length === 0 && needsOnlyPaths(query)
  const passes = (): boolean =>
    filters.every((values, index) => values.has(members!.text(paths.length - filters.length + index) ?? ''))
  return {
    needsTexts: (zone) => hasText !== null || members?.needsTexts(zone) === true,
    addSegment({ segment }) {
      if (members === null || segment === null || !isOfPaths) return false
      const hours = members.openSegment(segment)
      if (hours === null) return false
      fillSteps(stepOf, edges, hours.base)
      const { offsets } = hours
      const coded = { ...codedSegment(query, paths.length, members, groups), offsets, stepOf }
      if (measureSegment({ ...coded, steps: edges.length - 1 }, tally)) return true
      const group = groupOf(null)
      const amount = amountOf(null)
      for (let position = 0; position < segmentEvents; position++) {
        const step = stepOf[offsets[position]!]!
        if (step < 0) continue
        members.readAt(position)
        if (filters.length > 0 && !passes()) continue
        const measured = amount(position)
        if (measured !== null) tally.add(group(position), step, measured)
      }
      return true
    },
    *add(block, part, zone, hourSet) {
      const times = block.codes(extra.at)
      const types = block.codes(member.type)
      const group = groupOf(block)
      const amount = amountOf(block)
      members?.open(block, zone)
      let step = 0
      for (let row = 0; row < block.rows; row++) {
        const atMs = times[row]!
        if (types[row] === 0 || atMs < since || atMs >= until || !part.mayMatch(zone, row)) continue
        if (hourSet?.has(Math.floor(atMs / hourMs)) === false) continue
        if (clauses.length > 0 && !block.matches(row, clauses)) continue
        if (members !== null) {
          if (row % rowsPerCheck === 0 && isSliceOver()) yield
          members.read(row)
          if (filters.length > 0 && !passes()) continue
        }
        const measured = amount(row)
        if (measured === null) continue
        if (hasText !== null) {
          if (isSliceOver()) yield
          if (!hasText(block, row)) continue
        }
        // Most events are in the step of the one before.
        if (atMs < edges[step]! || atMs >= edges[step + 1]!) step = stepAt(edges, atMs, step)
        tally.add(group(row), step, measured)
      }
    },
  }
}

/** Whether members of the metadata and the hours of events are all that a query asks for. */
function needsOnlyPaths({ by: dimension, measure, filter }: ExploreQuery): boolean {
  const isOfEvents = measure === 'events' || measure === 'bytes' || measure === 'tokens'
  return isOfEvents && (dimension === null || typeof dimension === 'object') && filter.text === undefined
}

/** The hours, as numbers, in which a step ends and another begins. */
export function cutHours(edges: readonly number[]): Set<number> {
  return new Set(edges.filter((edge) => edge % hourMs !== 0).map((edge) => Math.floor(edge / hourMs)))
}

/** The steps of hours, by their distance from a first one; -1 outside of all steps, and in two of them. */
function fillSteps(stepOf: Int32Array, edges: readonly number[], baseHour: number): void {
  const placeOf = (hour: number) => Math.min(Math.max(hour - baseHour, 0), noOffset)
  stepOf.fill(-1)
  for (let step = 0; step < edges.length - 1; step++) {
    const from = Math.ceil(edges[step]! / hourMs)
    const until = Math.floor(edges[step + 1]! / hourMs)
    stepOf.fill(step, placeOf(from), placeOf(until))
  }
}

/** The members that are read: first that of the groups, then those of the measure, then those of the filters. */
function pathsOf({ by: dimension, measure, metadata = [] }: ExploreQuery): string[] {
  const ofMeasure = { bytes: ['bytes'], tokens: tokenPaths }[measure as string]
  return [
    ...(dimension !== null && typeof dimension === 'object' ? [dimension.metadata] : []),
    ...(ofMeasure ?? []),
    ...metadata.map(({ path }) => path),
  ]
}

/** The columns of the open segment, in the order of `pathsOf`. */
function codedSegment(
  { by: dimension, measure, metadata = [] }: ExploreQuery,
  paths: number,
  members: Members,
  groups: Groups,
): Pick<CodedSegment, 'by' | 'groupOf' | 'measured' | 'filters'> {
  const columns = Array.from({ length: paths }, (_, slot) => members.column(slot))
  const byMember = dimension === null ? null : columns[0]!
  const firstFilter = paths - metadata.length
  return {
    by: byMember,
    groupOf: (code) => (byMember === null ? groups.of('all') : groups.ofText(byMember.text(code))),
    measured: measure === 'events' ? null : columns.slice(byMember === null ? 0 : 1, firstFilter),
    filters: metadata.map(({ values }, index) => ({
      column: columns[firstFilter + index]!,
      values: new Set(values),
    })),
  }
}

/** Codes below are indexes of an array, which is read in a third of the time of a map. */
const arrayMax = 65_536

/** Without a block, members of positions are read. */
type OfRows<T> = (block: OpenBlock | null) => (row: number) => T

/** The group of each row. */
function grouper(
  db: Database,
  org: number,
  { by: dimension }: ExploreQuery,
  groups: Groups,
  members: Members | null,
): OfRows<number> {
  if (dimension === null) {
    const wholeGroup = groups.of('all')
    return () => () => wholeGroup
  }
  if (typeof dimension === 'object') {
    const byCode: number[] = []
    return () => () => {
      const code = members!.code(0)
      return code < 0 ? groups.ofText(members!.text(0)) : (byCode[code] ??= groups.ofText(members!.text(0)))
    }
  }
  if (dimension === 'sessionId')
    return (block) => (row) => groups.of(JSON.parse(block!.session(row)) as string)
  const index = member[dimension]
  const texts = termTexts(db, org, index)
  const groupByCode: number[] = [missingGroup] // by code
  const largeCodeGroups = new Map<number, number>() // by code too large for an array
  const isKeyless = (text: string): boolean => dimension === 'key' && keylessIds.includes(text)
  return (block) => {
    const codes = block!.codes(index)
    return (row) => {
      const code = codes[row]!
      if (isHash(code)) return groups.ofText(block!.hashedText(index, row))
      const group = code < arrayMax ? groupByCode[code] : largeCodeGroups.get(code)
      if (group !== undefined) return group
      const text = texts.get(code) ?? ''
      const newGroup = isKeyless(text) ? missingGroup : groups.ofText(text)
      if (code < arrayMax) groupByCode[code] = newGroup
      else largeCodeGroups.set(code, newGroup)
      return newGroup
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
