/** Which rollup rows a query means: hours, sites, types, outcomes as codes. */
import type { Database } from 'bun:sqlite'
import { member } from './members.ts'
import { hourMs } from './rollup-counts.ts'
import { termTexts } from './term-texts.ts'

export interface HourRange {
  from: number
  until: number // exclusive
}

/** Both ends are cut down to the hour (contract §7). */
export function hourRange(sinceMs: number, untilMs: number | null): HourRange {
  const until = untilMs === null ? Number.MAX_SAFE_INTEGER : Math.floor(untilMs / hourMs)
  return { from: Math.floor(sinceMs / hourMs), until }
}

/** The codes of the sites asked for, or null for all. */
export function siteCodes(
  db: Database,
  org: number,
  siteIds: string[] | undefined,
): ReadonlySet<number> | null {
  return codesOf(db, org, member.siteId, siteIds, (text, wanted) => text === wanted)
}

/** A wanted type may end in `.*`. */
export function typeCodes(
  db: Database,
  org: number,
  types: string[] | undefined,
): ReadonlySet<number> | null {
  return codesOf(db, org, member.type, types, (text, wanted) =>
    wanted.endsWith('.*') ? text.startsWith(wanted.slice(0, -1)) : text === wanted,
  )
}

/** What a query asks of the folded rows of a member. */
export interface FoldedRows {
  org: number
  index: number
  sites: ReadonlySet<number> | null
  types: ReadonlySet<number> | null
}

/**
 * `columns` of the folded rows in a range. Filtered in SQL: making a row here costs five times as much as passing over
 * it there. Summed by the caller and not by GROUP BY, which would sort every row first.
 */
export function foldedRows(
  db: Database,
  columns: string,
  { org, index, sites, types }: FoldedRows,
  { from, until }: HourRange,
): number[][] {
  const within = (column: string, codes: ReadonlySet<number> | null): [string, string[]] =>
    codes === null
      ? ['', []]
      : [` AND ${column} IN (SELECT value FROM json_each(?))`, [JSON.stringify([...codes])]]
  const [siteSql, siteCodes] = within('site', sites)
  const [typeSql, typeCodes] = within('type', types)
  const sql = `SELECT ${columns} FROM rollup_value WHERE org = ? AND member = ? AND hour >= ? AND hour < ?`
  return db
    .query<unknown, (number | string)[]>(sql + siteSql + typeSql)
    .values(org, index, from, until, ...siteCodes, ...typeCodes) as number[][]
}

function codesOf(
  db: Database,
  org: number,
  index: number,
  wanted: string[] | undefined,
  fits: (text: string, wanted: string) => boolean,
): ReadonlySet<number> | null {
  if (wanted === undefined || wanted.length === 0) return null
  const terms = [...termTexts(db, org, index)]
  return new Set(terms.filter(([, text]) => wanted.some((one) => fits(text, one))).map(([code]) => code))
}
