/** Measures over time under any filter, by the values of one field: from rollups for whole hours, else from columns. */
import type { Database } from '../../database.ts'
import type {
  Series,
  SeriesFilter,
  SeriesGroup,
  SeriesQuery,
  SeriesValue,
} from '../../../contract/event-series.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'
import { extra } from '../blocks/block.ts'
import { type OpenBlock, readAhead, readBlock } from '../blocks/block-table.ts'
import { agentField, agentsByCode, fieldAt, isHash, member, otherCode, termTexts } from '../blocks/fields.ts'
import { fieldClause, filterClauses, type Clause } from '../index/filter-codes.ts'
import { durationMember, hourMs } from '../rollups/counts.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { foldedRows, inChunks, ofMetrics, unfoldedValues, type HourRange } from '../rollups/range.ts'
import { bucketOf, bucketsMax, quantile } from '../rollups/sketches.ts'
import { stepAt } from './filtered-counts.ts'
import { boundsOf, newestFirst, newestZones, overlaps } from './page.ts'
import { partsOf, type Part } from './walk.ts'

/** Distinct values, or buckets of durations, of all groups and steps together. One more ends the query. */
const cellsMax = 500_000

/** What a step of a group has counted so far. */
interface Cells {
  events: Float64Array
  part: Float64Array
  sums: Float64Array // of tokens
  sets: Map<number, Set<number>> // by step
  buckets: Map<number, Map<number, number>> // by step
}

interface Reading {
  db: Database
  org: number
  value: SeriesValue | null
  steps: number
  indexed: Clause[] // the clauses that a segment index covers
  clauses: Clause[]
  part: Clause[] | null
  groupMember: number | null
  groups: Map<number, Cells> // by code; 0 without a field to group by
  cells: number
  endMs: number
}

export function* readSeries(db: Database, org: number, hashSeed: number, query: SeriesQuery): Sliced<Series> {
  const { edges, by, part } = query
  const clausesOf = ({ filter, also = [] }: SeriesFilter) => [
    ...filterClauses(db, org, hashSeed, filter),
    ...also.map(({ by, values }) => fieldClause(db, org, hashSeed, member[by], values)),
  ]
  const reading: Reading = {
    ...{ db, org, value: query.value ?? null, steps: edges.length - 1 },
    indexed: filterClauses(db, org, hashSeed, query.filter),
    clauses: clausesOf(query),
    part: part === undefined ? null : clausesOf(part),
    groupMember: by === null ? null : member[by],
    ...{ groups: new Map(), cells: 0, endMs: performance.now() + query.budgetMs },
  }
  const plan = planOf(reading)
  const { spans, hours } = split(edges, plan !== null)
  let sinceMs = yield* addColumns(reading, spans)
  if (plan !== null && hours.size > 0 && !(yield* addRollups(reading, plan, hours))) sinceMs = edges.at(-1)!
  const done = edges.find((edge) => edge >= sinceMs) ?? edges.at(-1)!
  return { groups: namedGroups(reading, query), sinceMs: done, rollups: plan !== null && hours.size > 0 }
}

/** The result for an organization without events. */
export function noSeries({ edges, by, part, value }: SeriesQuery): Series {
  const none = edges.slice(1).map(() => 0)
  const empty = { group: '', events: none, part: part ? none : [], values: value ? none : [] }
  return { groups: by === null ? [empty] : [], sinceMs: edges[0] ?? 0, rollups: false }
}

function cellsOf({ groups, steps }: Reading, code: number): Cells {
  let cells = groups.get(code)
  if (cells === undefined) {
    const numbers = () => new Float64Array(steps)
    cells = { events: numbers(), part: numbers(), sums: numbers(), sets: new Map(), buckets: new Map() }
    groups.set(code, cells)
  }
  return cells
}

// ---------------------------------------------------------------- rollups

/** How rollups answer: the field whose values they count, or events alone. */
interface Plan {
  /** The rollups' field; null: `rollup_metric`. */
  filter: number | null
  part: number | null
  durations: boolean
}

const inEveryRow: readonly number[] = [member.siteId, member.type, member.outcome]
const ofAgents: readonly number[] = [member.vendor, member.name, member.purpose]

/**
 * Rollups count sites, types and outcomes together with at most one other field, and only events that have it. Null:
 * they cannot answer.
 */
function planOf({ value, clauses, part, groupMember }: Reading): Plan | null {
  if (value !== null && value !== 'p95') return null
  const all = [...clauses, ...(part ?? [])]
  if (
    all.some(({ codes, member: at }) =>
      [...codes].some((code) => isHash(code) || (code === 0 && !inEveryRow.includes(at))),
    )
  )
    return null
  const fieldOf = (members: number[]): number | null | undefined => {
    const own = [...new Set(members.filter((at) => !inEveryRow.includes(at)))]
    const [first] = own
    if (first === undefined) return null
    const isNamed = own.includes(member.name) || own.includes(member.purpose)
    if (isNamed && own.every((at) => ofAgents.includes(at))) return agentField
    return own.length === 1 && fieldAt(first)!.counted ? first : undefined
  }
  const grouped = groupMember === null ? [] : [groupMember]
  const filter = fieldOf([...clauses.map((clause) => clause.member), ...grouped])
  const both = fieldOf([...all.map((clause) => clause.member), ...grouped])
  if (filter === undefined || both === undefined) return null
  // Durations are counted by tool, and only of events with a tool.
  if (value === 'p95')
    return filter === member.tool && part === null ? { filter, part: null, durations: true } : null
  return { filter, part: both, durations: false }
}

/** The whole hours of each step, and the spans of time that are left for columns. */
function split(edges: readonly number[], hourly: boolean): { hours: Map<number, number>; spans: Span[] } {
  const hours = new Map<number, number>() // hour -> step
  const spans: Span[] = []
  const add = (sinceMs: number, untilMs: number, step: number) => {
    if (sinceMs < untilMs) spans.push({ sinceMs, untilMs, step })
  }
  for (let step = 0; step + 1 < edges.length; step++) {
    const [sinceMs, untilMs] = [edges[step]!, edges[step + 1]!]
    const [first, end] = [Math.ceil(sinceMs / hourMs), Math.floor(untilMs / hourMs)]
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

/** False when there is too much. */
function* addRollups(reading: Reading, plan: Plan, hours: ReadonlyMap<number, number>): Sliced<boolean> {
  const { clauses, part } = reading
  const all = [...hours.keys()]
  const range = { from: all[0]!, until: all.at(-1)! + 1 }
  const stepOf = (hour: number) => hours.get(hour)
  if (plan.durations) {
    yield* rollupRows(reading, durationMember, clauses, range, (hour, group, code, count) => {
      const step = stepOf(hour)
      if (step !== undefined) addDuration(reading, cellsOf(reading, group), step, code, count)
    })
    return reading.cells <= cellsMax
  }
  yield* rollupRows(reading, plan.filter, clauses, range, (hour, group, _, count) => {
    const step = stepOf(hour)
    if (step !== undefined) cellsOf(reading, group).events[step]! += count
  })
  if (part !== null)
    yield* rollupRows(reading, plan.part, [...clauses, ...part], range, (hour, group, _, count) => {
      const step = stepOf(hour)
      if (step !== undefined) cellsOf(reading, group).part[step]! += count
    })
  return performance.now() <= reading.endMs
}

type VisitRow = (hour: number, group: number, bucket: number, count: number) => void

/** Visits the rollup rows that match all clauses, with the code of their group, folded or not. */
function* rollupRows(
  reading: Reading,
  index: number | null,
  clauses: readonly Clause[],
  range: HourRange,
  visit: VisitRow,
): Sliced<void> {
  const { db, org, groupMember } = reading
  const agents = index === agentField ? agentsByCode(db, org) : null
  const allowed = (at: number) => {
    const sets = clauses.filter((clause) => clause.member === at).map(({ codes }) => codes)
    return sets.length === 0 ? null : sets.reduce((a, b) => new Set([...a].filter((code) => b.has(code))))
  }
  const [sites, types, outcomes] = inEveryRow.map(allowed) as [Codes, Codes, Codes]
  const own = clauses.filter((clause) => !inEveryRow.includes(clause.member))

  /** The code of a field in a row of the rollups. */
  const codeOf = (at: number, site: number, type: number, outcome: number, code: number): number => {
    if (at === member.siteId) return site
    if (at === member.type) return type
    if (at === member.outcome) return outcome
    if (agents === null) return index === durationMember ? Math.floor(code / bucketsMax) : code
    const agent = agents.get(code)
    const [vendor, name, purpose] = agent ? [agent.vendor, agent.name, agent.purpose] : []
    return (at === member.vendor ? vendor : at === member.name ? name : purpose) ?? otherCode
  }
  const add = (hour: number, site: number, type: number, outcome: number, code: number, count: number) => {
    if (outcomes?.has(outcome) === false || count === 0) return
    for (const clause of own) if (!clause.codes.has(codeOf(clause.member, site, type, outcome, code))) return
    const group = groupMember === null ? 0 : codeOf(groupMember, site, type, outcome, code)
    if (groupMember === null || group !== 0) visit(hour, group, code % bucketsMax, count)
  }

  if (index === null) {
    const inSet = (name: string, codes: Codes): [string, string[]] =>
      codes === null
        ? ['', []]
        : [` AND ${name} IN ${db.dialect.numbersOf('?')}`, [JSON.stringify([...codes])]]
    const filters = [inSet('site', sites), inSet('type', types), inSet('outcome', outcomes)]
    const where = filters.map(([text]) => text).join('')
    const values = filters.flatMap(([, codes]) => codes)
    const sql = 'SELECT hour, site, type, outcome, live + expired FROM rollup_metric WHERE org = ?'
    yield* inChunks(db, ofMetrics, [org], range, (inChunk, key) => {
      const rows = db
        .query<unknown, (number | string)[]>(sql + inChunk + where)
        .values(org, ...key, ...values)
      for (const [hour, site, type, outcome, count] of rows as number[][])
        add(hour!, site!, type!, outcome!, 0, count!)
    })
    for (const { hour, site, type, outcome, events } of (yield* countUnfolded(db, org, [])).groups()) {
      if (hour < range.from || hour >= range.until) continue
      if (sites?.has(site) === false || types?.has(type) === false) continue
      add(hour, site, type, outcome, 0, events)
    }
    return
  }
  const only = own.length === 1 && index === own[0]!.member ? own[0]!.codes : null
  const counted = { org, index, sites, types, codes: only }
  const columns = 'hour, site, type, outcome, code, live + expired'
  yield* foldedRows(db, columns, counted, range, ([hour, site, type, outcome, code, count]) =>
    add(hour!, site!, type!, outcome!, code!, count!),
  )
  const unfolded = yield* countUnfolded(db, org, [index])
  for (const { code, events, group } of unfoldedValues(unfolded.groups(), counted, range))
    add(group.hour, group.site, group.type, group.outcome, code, events)
}

type Codes = ReadonlySet<number> | null

function addDuration(reading: Reading, cells: Cells, step: number, bucketCode: number, count: number): void {
  const bucket = bucketCode % bucketsMax
  let buckets = cells.buckets.get(step)
  if (buckets === undefined) cells.buckets.set(step, (buckets = new Map()))
  const known = buckets.get(bucket)
  if (known === undefined) reading.cells++
  buckets.set(bucket, (known ?? 0) + count)
  cells.events[step]! += count
}

// ---------------------------------------------------------------- columns

/** Newest first, so that only the oldest part is missing when the budget ends. Returns the first complete moment. */
function* addColumns(reading: Reading, spans: readonly Span[]): Sliced<number> {
  const { db, org, indexed, clauses } = reading
  const [first, last] = [spans[0], spans.at(-1)]
  if (first === undefined || last === undefined) return -Infinity
  const within = { sinceMs: first.sinceMs, untilMs: last.untilMs }
  const bounds = boundsOf({ filter: within, before: null }, Number.MAX_SAFE_INTEGER)
  const edges = [...spans.map(({ sinceMs }) => sinceMs), last.untilMs]
  const isIn = ({ minAt, maxAt }: { minAt: number; maxAt: number }) =>
    spans.length > 64 || spans.some(({ sinceMs, untilMs }) => maxAt >= sinceMs && minAt < untilMs)
  const parts = partsOf(db, org, indexed, 0).filter((part) => overlaps(part, bounds) && isIn(part))
  for (const [index, part] of parts.sort(newestFirst).entries()) {
    if (isSliceOver()) yield
    for (const zone of readAhead(db, newestZones(part, bounds).filter(isIn))) {
      if (isSliceOver()) yield
      if (performance.now() > reading.endMs || reading.cells > cellsMax) {
        const newestLeft = Math.max(zone.maxAt, parts[index + 1]?.maxAt ?? zone.maxAt)
        return Math.min(newestLeft + 1, last.untilMs)
      }
      const block = readBlock(db, zone, clauses)
      if (block !== null) addBlock(reading, block, (row) => part.mayMatch(zone, row), { spans, edges })
    }
  }
  return -Infinity
}

function addBlock(
  reading: Reading,
  block: OpenBlock,
  mayMatch: (row: number) => boolean,
  { spans, edges }: { spans: readonly Span[]; edges: readonly number[] },
): void {
  const { clauses, part, groupMember, value } = reading
  const times = block.codes(extra.at)
  const codes = groupMember === null ? null : block.codes(groupMember)
  const [firstMs, lastMs] = [edges[0]!, edges.at(-1)!]
  let near = 0
  for (let row = 0; row < block.rows; row++) {
    const at = times[row]!
    if (at < firstMs || at >= lastMs || !mayMatch(row)) continue
    near = stepAt(edges, at, near)
    const span = spans[near]!
    if (at >= span.untilMs || !block.matches(row, clauses)) continue
    const code = codes === null ? 0 : isHash(codes[row]!) ? otherCode : codes[row]!
    if (codes !== null && code === 0) continue
    const cells = cellsOf(reading, code)
    if (value === 'p95') {
      const duration = block.code(extra.duration, row)
      if (duration >= 0) addDuration(reading, cells, span.step, bucketOf(duration), 1)
      continue
    }
    cells.events[span.step]!++
    if (part !== null && block.matches(row, part)) cells.part[span.step]!++
    if (value === 'tokens') cells.sums[span.step]! += tokensOf(block.event(row).json)
    else if (value !== null) addDistinct(reading, cells, span.step, block.code(distinct[value], row))
  }
}

const distinct = { sessions: member.sessionId, subjects: member.subject }

function addDistinct(reading: Reading, cells: Cells, step: number, code: number): void {
  if (code === 0) return
  let set = cells.sets.get(step)
  if (set === undefined) cells.sets.set(step, (set = new Set()))
  const before = set.size
  set.add(code)
  reading.cells += set.size - before
}

/** `metadata.tokens` is a number, or an object of input and output tokens. */
function tokensOf(json: string): number {
  if (!json.includes('"tokens"')) return 0
  const { metadata } = JSON.parse(json) as { metadata?: { tokens?: unknown } | null }
  const tokens = metadata?.tokens
  if (typeof tokens !== 'object' || tokens === null) return positive(tokens)
  const { input, output } = tokens as { input?: unknown; output?: unknown }
  return positive(input) + positive(output)
}

function positive(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

// ---------------------------------------------------------------- result

function namedGroups(
  { db, org, groups, groupMember, value, steps, part }: Reading,
  query: SeriesQuery,
): SeriesGroup[] {
  const texts = groupMember === null ? null : termTexts(db, org, groupMember)
  const total = ({ events }: Cells) => events.reduce((sum, count) => sum + count, 0)
  const valueAt = (cells: Cells, step: number): number => {
    if (value === 'p95') return quantile(cells.buckets.get(step) ?? new Map(), 0.95)
    return value === 'tokens' ? cells.sums[step]! : (cells.sets.get(step)?.size ?? 0)
  }
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
      values: value === null ? [] : Array.from({ length: steps }, (_, step) => valueAt(cells, step)),
    }))
}
