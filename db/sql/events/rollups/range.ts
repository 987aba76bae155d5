/** Translates a query's hours, sites, types and outcomes into rollup rows. */
import type { Database } from '../../database.ts'
import { fieldAndCode, type DayGroup } from './counts.ts'
import { member, termTexts } from '../blocks/fields.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { hourMs } from '../../../contract/units.ts'

export interface HourRange {
  from: number
  until: number // exclusive
}

/** Both ends are rounded down to the hour (contract §7). */
export function hourRange(sinceMs: number, untilMs: number | null): HourRange {
  const until = untilMs === null ? Number.MAX_SAFE_INTEGER : Math.floor(untilMs / hourMs)
  return { from: Math.floor(sinceMs / hourMs), until }
}

/** The first hour of an hour's step. */
export function stepStarts(
  { stepMs, edges }: { stepMs: number | null; edges?: number[] },
  range: HourRange,
): (hour: number) => number {
  if (edges !== undefined) {
    const starts = edges.map((ms) => Math.floor(ms / hourMs))
    let last = 0 // hours mostly come in order
    return (hour) => {
      if (!(starts[last]! <= hour)) last = 0
      while (last + 1 < starts.length && starts[last + 1]! <= hour) last++
      return starts[last] ?? range.from
    }
  }
  if (stepMs === null) return () => range.from
  const stepHours = Math.max(1, Math.floor(stepMs / hourMs))
  return (hour) => hour - (hour % stepHours)
}

/** The codes of the requested sites, or null for all. */
export function siteCodes(
  db: Database,
  org: number,
  siteIds: string[] | undefined,
): ReadonlySet<number> | null {
  return codesOf(db, org, member.siteId, siteIds, (text, requested) => text === requested)
}

/** A requested type may end in `.*`. */
export function typeCodes(
  db: Database,
  org: number,
  types: string[] | undefined,
): ReadonlySet<number> | null {
  return codesOf(db, org, member.type, types, (text, requested) =>
    requested.endsWith('.*') ? text.startsWith(requested.slice(0, -1)) : text === requested,
  )
}

/** The conditions of a query on the folded rows of a field. */
export interface FoldedRows {
  org: number
  index: number
  sites: ReadonlySet<number> | null
  types: ReadonlySet<number> | null
  codes?: ReadonlySet<number> | null
}

/**
 * Visits `columns` of the folded rows in a range, in the order of their key. Filters in SQL: making a row here costs
 * five times as much as skipping it there. The caller sums, because GROUP BY would sort every row first.
 */
export function* foldedRows(
  db: Database,
  columns: string,
  { org, index, sites, types, codes = null }: FoldedRows,
  range: HourRange,
  visit: (row: number[]) => void,
): Sliced<void> {
  const inClause = (column: string, codes: ReadonlySet<number> | null): [string, string[]] =>
    codes === null
      ? ['', []]
      : [` AND ${column} IN ${db.dialect.numbersOf('?')}`, [JSON.stringify([...codes])]]
  const [siteSql, siteCodes] = inClause('site', sites)
  const [typeSql, typeCodes] = inClause('type', types)
  const [codeSql, ownCodes] = inClause('code', codes)
  const sql = `SELECT ${columns} FROM rollup_value WHERE org = ? AND member = ?`
  const order = ` ORDER BY ${ofValues.ordered.join()}` // a database may read the table instead of its index
  const read = (inChunk: string, key: number[]) =>
    db
      .query<unknown, (number | string)[]>(sql + inChunk + siteSql + typeSql + codeSql + order)
      .values(org, index, ...key, ...siteCodes, ...typeCodes, ...ownCodes) as number[][]
  yield* inChunks(db, ofValues, [org, index], range, (inChunk, key) => read(inChunk, key).forEach(visit))
}

/** The values of a field in unfolded groups, under the same conditions as the folded rows. */
export function* unfoldedValues<G extends DayGroup>(
  groups: Iterable<G>,
  { index, sites, types }: FoldedRows,
  { from, until }: HourRange,
): Generator<{ code: number; events: number; group: G }> {
  for (const group of groups) {
    const { hour, site, type, values } = group
    if (hour < from || hour >= until) continue
    if (sites?.has(site) === false || types?.has(type) === false) continue
    for (const [key, events] of values) {
      const [fieldIndex, code] = fieldAndCode(key)
      if (fieldIndex === index) yield { code, events, group }
    }
  }
}

/** A rollup table and its key: first the columns that every row of a read shares, then those that order its rows. */
interface RollupTable {
  name: string
  shared: string
  ordered: string[]
}

export const ofValues = {
  name: 'rollup_value',
  shared: 'org = ? AND member = ?',
  ordered: ['hour', 'site', 'type', 'outcome', 'code'],
}
export const ofMetrics = {
  name: 'rollup_metric',
  shared: 'org = ?',
  ordered: ['hour', 'site', 'type', 'outcome'],
}

/** Rows per chunk, 2 to 6 ms: one hour of a hostile sender may have a million. */
const chunkRows = 8_192

/** Visits a range of a rollup table in chunks of its key, each as a condition and its values. */
export function* inChunks(
  db: Database,
  { name, shared, ordered }: RollupTable,
  prefix: number[],
  { from, until }: HourRange,
  visit: (inChunk: string, key: number[]) => void,
): Sliced<void> {
  const key = ordered.join(', ')
  const places = ordered.map(() => '?').join(', ')
  const last = db.query<unknown, number[]>(
    `SELECT ${key} FROM ${name} WHERE ${shared} AND (${key}) > (${places}) AND hour < ?
     ORDER BY ${key} LIMIT 1 OFFSET ${chunkRows - 1}`,
  )
  const startOf = (hour: number) => ordered.map((_, index) => (index === 0 ? hour : -1))
  const inChunk = ` AND (${key}) > (${places}) AND (${key}) <= (${places})`
  for (let afterKey = startOf(from); ;) {
    const [end] = last.values(...prefix, ...afterKey, until) as number[][]
    visit(inChunk, [...afterKey, ...(end ?? startOf(until))])
    if (end === undefined) return
    afterKey = end
    if (isSliceOver()) yield
  }
}

function codesOf(
  db: Database,
  org: number,
  index: number,
  requested: string[] | undefined,
  fits: (text: string, requested: string) => boolean,
): ReadonlySet<number> | null {
  if (requested === undefined || requested.length === 0) return null
  const terms = [...termTexts(db, org, index)]
  return new Set(
    terms
      .filter(([, text]) => requested.some((requestedText) => fits(text, requestedText)))
      .map(([code]) => code),
  )
}
