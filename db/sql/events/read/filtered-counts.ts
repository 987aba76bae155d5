/** Counts the stored events that match any filter by type, outcome, values and time, from their columns. */
import type { Database } from '../../database.ts'
import type { BreakdownBy, CountedBy, FilteredCounts, FilteredCountsQuery } from '../../../contract/store.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { type OpenBlock, type Zone, readAhead, readBlock } from '../blocks/block-table.ts'
import { isKnownVerdict } from '../../../contract/provenance.ts'
import { codeOfTerm, filterClauses, fieldClause } from '../index/filter-codes.ts'
import type { Clause } from '../blocks/clause.ts'
import {
  agentField,
  agentNames,
  fieldAt,
  isHash,
  judgementField,
  member,
  otherCode,
  termTexts,
  vouchedField,
} from '../blocks/fields.ts'
import { judgementTexts } from './breakdown.ts'
import { extra, seqOf } from '../blocks/block.ts'
import { outcomesSpan } from '../rollups/counts.ts'
import { foldState } from '../rollups/hours.ts'
import { cachedRows, matchesMax, partsOf, type Part, type Rows } from '../index/walk.ts'
import { hourMs } from '../../../contract/units.ts'

/** The limit of a breakdown by rollups: further values count as one. */
const valuesMax = 1_000

type Counts = Map<number, number> // by code, outcome and step

interface Counting {
  edges: readonly number[]
  time: number // the column that `edges` divide
  arrivals: { afterSeq: number; untilSeq: number }
  exceptKeys: ReadonlySet<number>
  clauses: readonly Clause[] // all of them; the index covers only some
  vouched: VouchedCodes
  types: Counts
  breakdowns: { counts: Counts; first: number; second: number | null; types: ReadonlySet<number> | null }[]
}

/**
 * Rollups count one field at a time, so a filter on two fields counts events one by one. `complete` is false after the
 * budget, with no counts, because none would be exact.
 */
export function* readFilteredCounts(
  db: Database,
  org: number,
  hashSeed: number,
  query: FilteredCountsQuery,
  exceptKeys: ReadonlySet<number>,
): Sliced<FilteredCounts> {
  const { edges, by: timeBasis = 'occurred', breakdowns, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const indexed = filterClauses(db, org, hashSeed, query.filter)
  const counting = countingOf(db, org, { hashSeed, indexed, exceptKeys }, query)
  const { arrivals, clauses } = counting
  const rewrites = isPlain(counting) ? foldState(db, org)?.rewrites : undefined
  const rowCache =
    rewrites === undefined ? null : cachedRows(db, { org, rewrites }, clauses, fieldsOf(counting))
  const [since = 0, until = 0] = [edges[0], edges.at(-1)]
  const overlaps = ({ minAt, maxAt }: { minAt: number; maxAt: number }) =>
    timeBasis === 'received' || (maxAt >= since && minAt < until)
  for (const part of partsOf(db, org, indexed, arrivals.afterSeq)) {
    if (part.firstSeq > arrivals.untilSeq) break
    if (!overlaps(part)) continue
    if (isSliceOver()) yield
    let rows = rowCache?.get(part.segment)
    if (rows === undefined) {
      const keptColumns = rowCache !== null && isFew(part) ? fieldsOf(counting).map((): number[] => []) : null
      const zones = part.zones()
      const neededZones = keptColumns
        ? zones
        : zones.filter((zone) => overlaps(zone) && holdsArrival(zone, arrivals))
      for (const zone of readAhead(db, neededZones)) {
        if (isSliceOver()) yield
        if (performance.now() > endMs) return { rows: [], breakdowns: [], expired: 0, complete: false }
        const block = readBlock(db, zone, clauses)
        if (block === null) continue
        if (keptColumns === null) countBlock(counting, block, part, zone)
        else keepRows(keptColumns, counting, block, part, zone)
      }
      if (keptColumns !== null) rows = rowCache?.set(part.segment, keptColumns)
    }
    if (rows !== undefined) countRows(counting, rows, 0, rows.rows, null)
  }
  return {
    rows: typeRows(db, org, counting),
    breakdowns: breakdowns.map((breakdown, index) =>
      breakdownRows(db, org, breakdown, counting.breakdowns[index]!.counts, edges),
    ),
    expired: expiredOf(db, org, clauses, since, until),
    complete: true,
  }
}

interface Asked {
  hashSeed: number
  indexed: readonly Clause[]
  exceptKeys: ReadonlySet<number>
}

function countingOf(
  db: Database,
  org: number,
  { hashSeed, indexed, exceptKeys }: Asked,
  { also = [], edges, by: timeBasis = 'occurred', arrivals = everyArrival, breakdowns }: FilteredCountsQuery,
): Counting {
  const extraClauses = also.map(({ by: field, values }) =>
    fieldClause(db, org, hashSeed, member[field], values),
  )
  return {
    edges,
    arrivals,
    exceptKeys,
    clauses: [...indexed, ...extraClauses],
    types: new Map(),
    time: timeBasis === 'occurred' ? extra.at : extra.received,
    vouched: vouchedCodes(db, org),
    breakdowns: breakdowns.map(({ by: field, and, types }) => ({
      counts: new Map(),
      first: field === 'agent' ? agentField : columnFor(field),
      second: and === undefined ? null : columnFor(and),
      types: types === undefined ? null : fieldClause(db, org, hashSeed, member.type, types).codes,
    })),
  }
}

/** The column of a counted field; that of `vouched` is made of two. */
function columnFor(dimension: CountedBy): number {
  if (dimension === 'judgement') return judgementField
  return dimension === 'vouched' ? vouchedField : member[dimension]
}

/** The codes of a field, one per row. A known verdict is vouched for unless its sender gave it. */
function codesIn(rows: Rows, field: number, { sender, verdicts }: VouchedCodes): Float64Array {
  if (field !== vouchedField) return rows.codes(field)
  const judges = rows.codes(member.judgedBy)
  return rows
    .codes(member.verdict)
    .map((code, row) => (judges[row] === sender || !verdicts.has(code) ? 0 : code))
}

/** The codes of known verdicts, and of the judge of those that only their sender gave; -1: nobody reported one. */
interface VouchedCodes {
  sender: number
  verdicts: ReadonlySet<number>
}

function vouchedCodes(db: Database, org: number): VouchedCodes {
  const verdicts = [...termTexts(db, org, member.verdict)].filter(([, text]) => isKnownVerdict(text))
  return {
    sender: codeOfTerm(db, org, member.judgedBy, 'sender') ?? -1,
    verdicts: new Set(verdicts.map(([code]) => code)),
  }
}

const everyArrival = { afterSeq: 0, untilSeq: Number.MAX_SAFE_INTEGER }

function holdsArrival(
  { place, events }: Zone,
  { afterSeq, untilSeq }: { afterSeq: number; untilSeq: number },
) {
  const firstSeq = seqOf(place)
  return firstSeq <= untilSeq && firstSeq + events - 1 > afterSeq
}

/** The sealed rows of such a query are the same for all its times. */
const isPlain = ({ time, arrivals, exceptKeys }: Counting): boolean =>
  time === extra.at && arrivals === everyArrival && exceptKeys.size === 0

/** All that is counted of a row. */
function fieldsOf({ breakdowns }: Counting): number[] {
  const values = breakdowns
    .flatMap(({ first, second }) => (second === null ? [first] : [first, second]))
    .flatMap((field) => (field === vouchedField ? [member.verdict, member.judgedBy] : [field]))
  return [...new Set([extra.at, member.type, member.outcome, ...values])]
}

function isFew(part: Part): boolean {
  const candidates = part.candidates()
  return candidates !== null && candidates <= matchesMax
}

/** Appends the matching rows of a block to the columns. */
function keepRows(columns: number[][], counting: Counting, block: OpenBlock, part: Part, zone: Zone): void {
  const codes = fieldsOf(counting).map((field) => block.codes(field))
  for (let row = 0; row < block.rows; row++) {
    if (!part.mayMatch(zone, row) || !block.matches(row, counting.clauses)) continue
    for (const [columnIndex, column] of columns.entries()) column.push(codes[columnIndex]![row]!)
  }
}

function countBlock(counting: Counting, block: OpenBlock, part: Part, zone: Zone): void {
  const { arrivals, exceptKeys, clauses } = counting
  const first = Math.max(0, arrivals.afterSeq + 1 - block.firstSeq)
  const end = Math.min(block.rows, arrivals.untilSeq + 1 - block.firstSeq)
  countRows(counting, block, first, end, (row) => {
    if (!part.mayMatch(zone, row) || !block.matches(row, clauses)) return false
    return exceptKeys.size === 0 || !exceptKeys.has(block.key(row))
  })
}

/** Counts rows that match, all of them without `matches`. */
function countRows(
  { edges, time, types, breakdowns, vouched }: Counting,
  rows: Rows,
  first: number,
  end: number,
  matches: ((row: number) => boolean) | null,
): void {
  const steps = edges.length
  const typeCodes = rows.codes(member.type)
  const outcomes = rows.codes(member.outcome)
  const columns = breakdowns.map(({ first, second }) => ({
    first: codesIn(rows, first, vouched),
    second: second === null ? null : codesIn(rows, second, vouched),
  }))
  const times = rows.codes(time)
  let step = 0
  for (let row = first; row < end; row++) {
    const atMs = times[row]!
    if (atMs < edges[0]! || atMs >= edges[steps - 1]! || matches?.(row) === false) continue
    step = stepAt(edges, atMs, step)
    const place = outcomes[row]! * steps + step
    add(types, typeCodes[row]! * outcomesSpan * steps + place)
    for (const [index, breakdown] of breakdowns.entries()) {
      if (breakdown.types?.has(typeCodes[row]!) === false) continue
      const { first, second } = columns[index]!
      const code = valueOf(first[row]!)
      if (second !== null)
        add(breakdown.counts, (code * pairSpan + valueOf(second[row]!)) * outcomesSpan * steps + place)
      else if (code !== 0) add(breakdown.counts, code * outcomesSpan * steps + place)
    }
  }
}

/** Hashed values count as one, as in rollups. Interned ones are few (blocks/fields.ts). */
const hashedCode = 8_191
const pairSpan = 8_192
const valueOf = (code: number): number => (isHash(code) ? hashedCode : code)

function add(counts: Counts, key: number): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Events of a block have close times, so the next one is usually in the same step. */
export function stepAt(edges: readonly number[], atMs: number, near: number): number {
  let step = near
  let end = near + 1
  if (edges[near]! <= atMs && atMs < edges[end]!) return near
  if (edges[near]! > atMs) step = 0
  else end = edges.length - 1
  while (step + 1 < end) {
    const middle = (step + end) >>> 1
    if (edges[middle]! <= atMs) step = middle
    else end = middle
  }
  return step
}

interface Cell {
  code: number
  outcome: number
  startMs: number
  count: number
}

function cellsOf(counts: Counts, edges: readonly number[]): Cell[] {
  const steps = edges.length
  return Array.from(counts, ([key, count]) => ({
    code: Math.floor(key / (outcomesSpan * steps)),
    outcome: Math.floor(key / steps) % outcomesSpan,
    startMs: edges[key % steps]!,
    count,
  }))
}

function typeRows(db: Database, org: number, { types, edges }: Counting): FilteredCounts['rows'] {
  const texts = termTexts(db, org, member.type)
  const outcomes = termTexts(db, org, member.outcome)
  return cellsOf(types, edges).map(({ code, outcome, startMs, count }) => ({
    type: texts.get(code) ?? '',
    outcome: outcomes.get(outcome) ?? '',
    startMs,
    count,
  }))
}

function breakdownRows(
  db: Database,
  org: number,
  { by: dimension, and }: BreakdownBy,
  counts: Counts,
  edges: readonly number[],
): FilteredCounts['breakdowns'][number] {
  const outcomes = termTexts(db, org, member.outcome)
  const first = namesOf(db, org, dimension)
  const second = and === undefined ? null : namesOf(db, org, and)
  const cells = second === null ? withOther(cellsOf(counts, edges)) : cellsOf(counts, edges)
  return cells.map(({ code, outcome, startMs, count }) => ({
    value: first(second === null ? code : Math.floor(code / pairSpan)),
    and: second === null ? null : second(code % pairSpan),
    outcome: outcomes.get(outcome) ?? '',
    startMs,
    count,
  }))
}

/** Null: beyond the value limit; '': the field is missing. */
function namesOf(db: Database, org: number, dimension: BreakdownBy['by']): (code: number) => string | null {
  if (dimension === 'agent') {
    const agentOf = agentNames(db, org)
    return (code) => JSON.stringify(agentOf(code))
  }
  const texts =
    dimension === 'judgement'
      ? judgementTexts(db, org)
      : termTexts(db, org, dimension === 'vouched' ? member.verdict : member[dimension])
  return (code) => (code === hashedCode ? null : (texts.get(code) ?? ''))
}

function withOther(cells: Cell[]): Cell[] {
  const sums = new Map<number, number>()
  for (const { code, count } of cells) if (code !== hashedCode) sums.set(code, (sums.get(code) ?? 0) + count)
  if (sums.size <= valuesMax) return cells
  const frequent = new Set(
    [...sums]
      .sort(([a, x], [b, y]) => y - x || a - b)
      .slice(0, valuesMax)
      .map(([code]) => code),
  )
  return cells.map((cell) => (frequent.has(cell.code) ? cell : { ...cell, code: hashedCode }))
}

/**
 * An upper bound of the expired events of this time that may have matched. Rollups still count them, by one field at a
 * time, so the field with the fewest gives the bound. 0 means that nothing has expired.
 */
export function expiredOf(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  sinceMs: number,
  untilMs: number,
): number {
  const hours = [Math.floor(sinceMs / hourMs), Math.ceil(untilMs / hourMs)] as const
  const columns = new Map([
    [member.siteId, 'site'],
    [member.type, 'type'],
    [member.outcome, 'outcome'],
  ])
  const conditions = ['org = ? AND hour >= ? AND hour < ?']
  const bound: (number | string)[] = [org, ...hours]
  for (const { member: index, codes } of clauses) {
    const column = columns.get(index)
    if (column === undefined) continue
    conditions.push(`${column} IN ${db.dialect.numbersOf('?')}`)
    bound.push(JSON.stringify([...codes]))
  }
  const sum = (table: string, extraConditions: string[], values: (number | string)[]) =>
    db
      .query<{ expired: number | null }, (number | string)[]>(
        `SELECT sum(expired) AS expired FROM ${table} WHERE ${[...conditions, ...extraConditions].join(' AND ')}`,
      )
      .get(...bound, ...values)?.expired ?? 0
  let fewest = sum('rollup_metric', [], [])
  for (const { member: index, codes } of clauses) {
    if (fewest === 0) return 0
    // Rollups count events that have the field, so they cannot answer a filter for events without it.
    if (columns.has(index) || codes.has(0) || !fieldAt(index)?.counted) continue
    const counted = [...codes].map((code) => (isHash(code) ? otherCode : code))
    const extraConditions = ['member = ?', `code IN ${db.dialect.numbersOf('?')}`]
    fewest = Math.min(fewest, sum('rollup_value', extraConditions, [index, JSON.stringify(counted)]))
  }
  return fewest
}
