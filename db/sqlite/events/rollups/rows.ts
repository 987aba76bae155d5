/** Rollup rows by key, stored and recounted, so that both can be compared. */
import type { Database } from 'bun:sqlite'
import { agentField, fieldAt } from '../blocks/fields.ts'
import {
  classVendorField,
  dayDurationMember,
  distinctMember,
  durationMember,
  hourMs,
  fieldAndCode,
  type RollupCounts,
} from './counts.ts'

/** `hour site type outcome` is the key of a row of rollup_metric; followed by `field code`, of rollup_value. */
export type RowKey = string

export function countedRows(counts: RollupCounts): Map<RowKey, number> {
  const rows = new Map<RowKey, number>()
  for (const { hour, site, type, outcome, events, values } of counts.groups()) {
    const key = `${hour} ${site} ${type} ${outcome}`
    rows.set(key, events)
    for (const [value, count] of values) rows.set(`${key} ${fieldAndCode(value).join(' ')}`, count)
  }
  for (const [key, count] of countedDayRows(counts)) rows.set(key, count)
  return rows
}

function* countedDayRows(counts: RollupCounts): Generator<[RowKey, number]> {
  for (const { hour, site, type, values } of counts.days()) {
    for (const [value, count] of values)
      yield [`${hour} ${site} ${type} 0 ${fieldAndCode(value).join(' ')}`, count]
  }
}

/** Of a whole day: rows without an outcome. */
export function isDayRow(key: RowKey): boolean {
  return key.split(' ')[3] === '0'
}

/** The stored `live` counts, of one hour or of all. */
export function* storedRows(db: Database, org: number, hour: number | null): Generator<[RowKey, number]> {
  const key = "hour || ' ' || site || ' ' || type || ' ' || outcome"
  const within = 'org = ?1 AND (?2 IS NULL OR hour = ?2)'
  const queries = [
    `SELECT ${key} AS key, live FROM rollup_metric WHERE ${within}`,
    `SELECT ${key} || ' ' || member || ' ' || code AS key, live FROM rollup_value WHERE ${within}`,
  ]
  for (const sql of queries) {
    const rows = db.query<{ key: string; live: number }, [number, number | null]>(sql)
    for (const { key, live } of rows.iterate(org, hour)) yield [key, live]
  }
}

/** The differences between stored and counted rows: how much the stored one is too small. Empties `counted`. */
export function* rowDifferences(
  stored: Iterable<[RowKey, number]>,
  counted: Map<RowKey, number>,
): Generator<[RowKey, number]> {
  for (const [key, live] of stored) {
    const difference = (counted.get(key) ?? 0) - live
    counted.delete(key)
    if (difference !== 0) yield [key, difference]
  }
  yield* counted
}

/** Adds to a stored row, inside a transaction, and deletes a row that reaches zero. */
export function addToRow(db: Database, org: number, key: RowKey, difference: number): void {
  const table = key.split(' ').length === 4 ? 'rollup_metric' : 'rollup_value'
  const columns = ['org', 'hour', 'site', 'type', 'outcome', 'member', 'code']
  const numbers = [org, ...key.split(' ').map(Number)]
  const named = columns.slice(0, numbers.length)
  db.query(
    `INSERT INTO ${table} (live, ${named.join()}) VALUES (?, ${named.map(() => '?').join()})
     ON CONFLICT DO UPDATE SET live = live + excluded.live`,
  ).run(difference, ...numbers)
  const isRow = named.map((name) => `${name} = ?`).join(' AND ')
  db.query(`DELETE FROM ${table} WHERE ${isRow} AND live = 0 AND expired = 0`).run(...numbers)
}

const sketches = new Map<number, string>([
  [agentField, 'agent'],
  [durationMember, 'duration'],
  [dayDurationMember, 'duration and day'],
  [classVendorField, 'class and vendor'],
  [distinctMember.session, 'session'],
  [distinctMember.subject, 'subject'],
])

/** For people: "the rollup of 2026-06-01T12:00:00.000Z" or "the rollup by tool of …". */
export function rowName(key: RowKey): string {
  const [hour, , , , member] = key.split(' ').map(Number)
  const by = member === undefined ? '' : ` by ${sketches.get(member) ?? fieldAt(member)?.name}`
  return `the rollup${by} of ${new Date(hour! * hourMs).toISOString()}`
}
