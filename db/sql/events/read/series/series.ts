/** Measures over time under any filter, by the values of one field: from rollups for whole hours, else from columns. */
import type { Database } from '../../../database.ts'
import type { Series, SeriesFilter, SeriesGroup, SeriesQuery } from '../../../../contract/event-series.ts'
import { isSliceOver, type Sliced } from '../../../slices.ts'
import { extra } from '../../blocks/block.ts'
import { type OpenBlock, readAhead, readBlock } from '../../blocks/block-table.ts'
import { isHash, member, otherCode, termTexts } from '../../blocks/fields.ts'
import { fieldClause, filterClauses } from '../../index/filter-codes.ts'
import { bucketOf } from '../../rollups/sketches.ts'
import { readMembers, tokenPaths, tokensOf, type Members } from '../explore/members.ts'
import { stepAt } from '../filtered-counts.ts'
import { boundsOf, newestFirst, newestZones, overlaps } from '../page.ts'
import { partsOf } from '../../index/walk.ts'
import { addDistinct, addDuration, cellsOf, makeRoom, noPairs, quantiles } from './cells.ts'
import type { Cells, Reading } from './cells.ts'
import { addRollups, planOf } from './rollups.ts'
import { hourMs } from '../../../../contract/units.ts'

export function* readSeries(db: Database, org: number, hashSeed: number, query: SeriesQuery): Sliced<Series> {
  const { edges, by: dimension, part } = query
  const clausesOf = ({ filter, also = [] }: SeriesFilter) => [
    ...filterClauses(db, org, hashSeed, filter),
    ...also.map(({ by: field, values }) => fieldClause(db, org, hashSeed, member[field], values)),
  ]
  const reading: Reading = {
    db,
    org,
    value: query.value ?? null,
    steps: edges.length - 1,
    edges,
    indexed: filterClauses(db, org, hashSeed, query.filter),
    clauses: clausesOf(query),
    part: part === undefined ? null : clausesOf(part),
    groupMember: dimension === null ? null : member[dimension],
    groups: new Map(),
    found: noPairs(query.value ?? null),
    unfolded: new Map(),
    endMs: performance.now() + query.budgetMs,
  }
  const plan = planOf(reading)
  const { spans, hours } = split(edges, plan !== null)
  let sinceMs = yield* addColumns(reading, spans)
  if (plan !== null && hours.size > 0) sinceMs = Math.max(sinceMs, yield* addRollups(reading, plan, hours))
  const completeMs = edges.find((edge) => edge >= sinceMs) ?? edges.at(-1)!
  return {
    groups: namedGroups(reading, query),
    sinceMs: completeMs,
    rollups: plan !== null && hours.size > 0,
  }
}

/** The result for an organization without events. */
export function noSeries({ edges, by: dimension, part, value }: SeriesQuery): Series {
  const zeros = edges.slice(1).map(() => 0)
  const empty = { group: '', events: zeros, part: part ? zeros : [], values: value ? zeros : [] }
  return { groups: dimension === null ? [empty] : [], sinceMs: edges[0] ?? 0, rollups: false }
}

/** The whole hours of each step, and the spans of time that are left for columns. */
function split(edges: readonly number[], hourly: boolean): { hours: Map<number, number>; spans: Span[] } {
  const hours = new Map<number, number>() // hour -> step
  const spans: Span[] = []
  const add = (sinceMs: number, untilMs: number, step: number) => {
    if (sinceMs < untilMs) spans.push({ sinceMs, untilMs, step })
  }
  for (let step = 0; step + 1 < edges.length; step++) {
    const sinceMs = edges[step]!
    const untilMs = edges[step + 1]!
    const first = Math.ceil(sinceMs / hourMs)
    const end = Math.floor(untilMs / hourMs)
    if (!hourly || first >= end) add(sinceMs, untilMs, step)
    else {
      add(sinceMs, first * hourMs, step)
      for (let hour = first; hour < end; hour++) hours.set(hour, step)
      add(end * hourMs, untilMs, step)
    }
  }
  return { hours, spans }
}

interface Span {
  sinceMs: number
  untilMs: number
  step: number
}

// ---------------------------------------------------------------- columns

/** Newest first, so that only the oldest part is missing when the budget ends. Returns the first complete moment. */
function* addColumns(reading: Reading, spans: readonly Span[]): Sliced<number> {
  const { db, org, indexed, clauses } = reading
  const first = spans[0]
  const last = spans.at(-1)
  if (first === undefined || last === undefined) return -Infinity
  const timeRange = { sinceMs: first.sinceMs, untilMs: last.untilMs }
  const bounds = boundsOf({ filter: timeRange, before: null }, Number.MAX_SAFE_INTEGER)
  const edges = [...spans.map(({ sinceMs }) => sinceMs), last.untilMs]
  const isIn = ({ minAt, maxAt }: { minAt: number; maxAt: number }) =>
    spans.length > 64 || spans.some(({ sinceMs, untilMs }) => maxAt >= sinceMs && minAt < untilMs)
  const members = reading.value === 'tokens' ? readMembers(db, org, tokenPaths) : null
  const parts = partsOf(db, org, indexed, 0).filter((part) => overlaps(part, bounds) && isIn(part))
  for (const [index, part] of parts.sort(newestFirst).entries()) {
    if (isSliceOver()) yield
    for (const zone of readAhead(db, newestZones(part, bounds).filter(isIn))) {
      if (isSliceOver()) yield
      const newestLeft = Math.max(zone.maxAt, parts[index + 1]?.maxAt ?? zone.maxAt)
      if (performance.now() > reading.endMs || !makeRoom(reading, newestLeft + 1))
        return Math.min(newestLeft + 1, last.untilMs)
      const block = readBlock(db, zone, clauses)
      if (block === null) continue
      members?.open(block, zone)
      const mayMatch = clauses.length === 0 ? null : (row: number) => part.mayMatch(zone, row)
      addBlock(reading, block, { spans, edges, members, mayMatch })
    }
  }
  return -Infinity
}

interface Adding {
  spans: readonly Span[]
  edges: readonly number[]
  members: Members | null // of tokens
  mayMatch: ((row: number) => boolean) | null // null: every row
}

function addBlock(reading: Reading, block: OpenBlock, { spans, edges, members, mayMatch }: Adding): void {
  const { clauses, part, groupMember, value } = reading
  const times = block.codes(extra.at)
  const codes = groupMember === null ? null : block.codes(groupMember)
  const hashes = value === 'sessions' || value === 'subjects' ? block.codes(distinct[value]) : null
  const durations = value === 'p95' ? block.codes(extra.duration) : null
  const firstMs = edges[0]!
  const lastMs = edges.at(-1)!
  const isOne = codes === null ? cellsOf(reading, 0) : null
  let cells = isOne!
  // The group, and the distinct value, of the event before, which are often the same.
  let last = -1
  let lastHash = 0
  const types = clauses.length === 0 ? block.codes(member.type) : null // 0: a deleted event
  const tokens = members === null || members.isMissing() ? null : members
  let near = 0
  let span = spans[near]!
  for (let row = 0; row < block.rows; row++) {
    const atMs = times[row]!
    if (atMs < firstMs || atMs >= lastMs || mayMatch?.(row) === false) continue
    // Most events are in the span of the one before.
    if (atMs < span.sinceMs || atMs >= span.untilMs) {
      near = stepAt(edges, atMs, near)
      span = spans[near]!
      lastHash = 0
    }
    if (atMs >= span.untilMs || !(types === null ? block.matches(row, clauses) : types[row] !== 0)) continue
    const code = codes === null ? 0 : isHash(codes[row]!) ? otherCode : codes[row]!
    if (codes !== null && code === 0) continue
    if (isOne === null && code !== last) {
      cells = cellsOf(reading, code)
      last = code
      lastHash = 0
    }
    if (durations !== null) {
      if (durations[row]! >= 0) addDuration(reading, cells, span.step, bucketOf(durations[row]!), 1)
      continue
    }
    cells.events[span.step]!++
    if (part !== null && block.matches(row, part)) cells.part[span.step]!++
    if (hashes !== null && hashes[row] !== lastHash) {
      lastHash = hashes[row]!
      addDistinct(reading, cells, span.step, lastHash)
    }
    if (tokens === null) continue
    tokens.read(row)
    cells.values[span.step]! += tokensOf(tokens, 0) ?? 0
  }
}

const distinct = { sessions: member.sessionId, subjects: member.subject }

// ---------------------------------------------------------------- result

function namedGroups(reading: Reading, query: SeriesQuery): SeriesGroup[] {
  const { db, org, groups, groupMember, value, steps, part } = reading
  const texts = groupMember === null ? null : termTexts(db, org, groupMember)
  const total = ({ events }: Cells) => events.reduce((sum, count) => sum + count, 0)
  const p95 = value === 'p95' ? quantiles(reading, 0.95) : null
  const valuesOf = (cells: Cells): number[] =>
    p95 === null ? [...cells.values] : Array.from({ length: steps }, (_, step) => p95(cells, step))
  if (groupMember === null && groups.size === 0) return noSeries(query).groups
  return [...groups]
    .map(([code, cells]) => ({ code, cells, events: total(cells) }))
    .filter(({ events }) => events > 0 || groupMember === null)
    .sort((a, b) => b.events - a.events || a.code - b.code)
    .slice(0, query.groupsMax)
    .map(({ code, cells }) => ({
      group: texts === null ? '' : code === otherCode ? null : (texts.get(code) ?? ''),
      events: [...cells.events],
      part: part === null ? [] : [...cells.part],
      values: valuesOf(cells),
    }))
}
