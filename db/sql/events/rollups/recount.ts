/** Recounts one hour from its events, and compares rollup rows, stored and counted (expected: no difference). */
import type { WrongRows } from './checksums.ts'
import { foldState, noteRewrite } from './hours.ts'
import {
  classVendorField,
  dayDurationMember,
  dayHours,
  dayOf,
  distinctMember,
  durationMember,
  fieldAndCode,
  rollupCounts,
  rollupFields,
  type DayGroup,
  type RollupCounts,
  type RollupGroup,
} from './counts.ts'
import { dropDays } from './stored-days.ts'
import { extra, seqMax, seqOf } from '../blocks/block.ts'
import { partsOf } from '../index/walk.ts'
import { readColumns, type Zone } from '../blocks/block-table.ts'
import { agentField, fieldAt, judgementField } from '../blocks/fields.ts'
import type { Database } from '../../database.ts'
import type { RollupRepair } from '../../../contract/store.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'
import { hourMs } from '../../../contract/units.ts'

/** Blocks per slice: about 8 ms. A day of ten million events takes 15 s, and its reader answers others meanwhile. */
const sliceBlocks = 24

/** How often a count may start again. Then it takes one long slice, or it might never end. */
const restartsMax = 20

interface CountRange {
  fromMs: number
  untilMs: number // exclusive
  /** The blocks that may hold events of that time and reach past a seq, in arrival order. */
  zonesAfter(db: Database, org: number, afterSeq: number): Iterable<Zone>
}

interface FoldedCount<C> {
  /**
   * One slice, inside its own read transaction. Null until the last slice, which returns all counts up to the
   * watermark.
   */
  step(db: Database, org: number): C | null
  /** In the transaction of the last step: also the unfolded arrivals. */
  rest(db: Database, org: number): C
}

/**
 * Counts in arrival order, so that events folded meanwhile are counted too. Every other change of counts, such as
 * retention, raises event_org.rewrites and starts the count again.
 */
export function countFolded<C extends Pick<RollupCounts, 'add'>>(
  range: CountRange,
  begin: () => C,
  blocksMax = sliceBlocks,
): FoldedCount<C> {
  let counts = begin()
  let countedSeq = 0
  let rewrites: number | null = null
  let restarts = -1

  /** Whether all arrivals up to a seq are counted. */
  function countUpTo(db: Database, org: number, lastSeq: number, blocks: number): boolean {
    for (const { place, events } of range.zonesAfter(db, org, countedSeq)) {
      const first = seqOf(place)
      if (first > lastSeq) break
      if (blocks-- === 0) return false
      const end = Math.min(events, lastSeq + 1 - first)
      const block = readColumns(db, place)
      if (block !== null) addRows(counts, block, Math.max(0, countedSeq + 1 - first), end, range)
      countedSeq = Math.max(countedSeq, first + end - 1)
    }
    return true
  }

  return {
    step(db, org) {
      const state = foldState(db, org)
      if (state?.rewrites !== rewrites) {
        rewrites = state?.rewrites ?? null
        counts = begin()
        countedSeq = 0
        restarts++
      }
      const blocks = restarts < restartsMax ? blocksMax : Infinity
      return countUpTo(db, org, state?.foldedSeq ?? 0, blocks) ? counts : null
    },
    rest(db, org) {
      countUpTo(db, org, seqMax, Infinity)
      return counts
    },
  }
}

/** Run by run, because each call opens the columns again. */
function addRows(
  counts: Pick<RollupCounts, 'add'>,
  block: PackedColumns,
  first: number,
  end: number,
  { fromMs, untilMs }: CountRange,
): void {
  const times = block.column(extra.at)
  const isInRange = (row: number) => times[row]! >= fromMs && times[row]! < untilMs
  for (let row = first; row < end; row++) {
    if (!isInRange(row)) continue
    const from = row
    while (row < end && isInRange(row)) row++
    counts.add(block, from, row)
  }
}

export interface Recounting {
  /** One slice, as in `countFolded`. The last one returns the differences to the rollups' `live` counts. */
  step(db: Database, org: number): RollupRepair[] | null
}

/** The last hour of a day completes the day. */
export function recounting(hourStartMs: number, blocksMax?: number): Recounting {
  const hour = Math.floor(hourStartMs / hourMs)
  const closesDay = hour % dayHours === dayHours - 1
  const firstHour = closesDay ? hour + 1 - dayHours : hour
  const range = { fromMs: firstHour * hourMs, untilMs: (hour + 1) * hourMs }
  const zonesAfter = (db: Database, org: number, seq: number) => indexedZones(db, org, seq, range)
  const counting = countFolded({ ...range, zonesAfter }, rollupCounts, blocksMax)
  const ofHour = (key: RowKey) => !isDayRow(key) && hourOf(key) === hour

  return {
    step(db, org) {
      const counts = counting.step(db, org)
      if (counts === null) return null
      const hourDifferences = differencesOf(db, org, hour, counts, ofHour)
      return closesDay
        ? [...hourDifferences, ...differencesOf(db, org, firstHour, counts, isDayRow)]
        : hourDifferences
    },
  }
}

/** The same for the rows of one day that checksums found wrong, in the blocks of `zonesAfter`. */
export function recountingWrong(
  wrong: readonly WrongRows[],
  zonesAfter: CountRange['zonesAfter'],
  blocksMax?: number,
): Recounting {
  const firstHour = dayOf(wrong[0]!.hour)
  const range = { fromMs: firstHour * hourMs, untilMs: (firstHour + dayHours) * hourMs, zonesAfter }
  const fields = rollupFields.filter((field) => wrong.some(({ isWrong }) => isWrong(field)))
  const counting = countFolded(range, () => rollupCounts(fields), blocksMax)

  return {
    step(db, org) {
      const counts = counting.step(db, org)
      if (counts === null) return null
      return wrong.flatMap(({ hour, isWrong }) =>
        differencesOf(db, org, hour, counts, (key) => hourOf(key) === hour && isWrong(memberOf(key))),
      )
    },
  }
}

/** By the segments, whose rows contain their times. */
function* indexedZones(
  db: Database,
  org: number,
  afterSeq: number,
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): Generator<Zone> {
  const mayHold = ({ minAt, maxAt }: { minAt: number; maxAt: number }) => maxAt >= fromMs && minAt < untilMs
  for (const part of partsOf(db, org, [], afterSeq).filter(mayHold)) {
    for (const zone of part.zones())
      if (mayHold(zone) && seqOf(zone.place) + zone.events - 1 > afterSeq) yield zone
  }
}

function differencesOf(
  db: Database,
  org: number,
  hour: number,
  counts: RollupCounts,
  isIncluded: (row: RowKey) => boolean,
): RollupRepair[] {
  const included = (rows: Iterator<[RowKey, number]>) =>
    Iterator.from(rows).filter(([row]) => isIncluded(row))
  const counted = new Map(included(countedRows(counts.groups(), counts.days())))
  const stored = included(storedRows(db, org, hour))
  return Array.from(rowDifferences(stored, counted), ([row, difference]) => ({ row, difference }))
}

/** Inside a transaction. Differences stay valid whatever was folded or expired since they were found. */
export function repairRollups(db: Database, org: number, repairs: readonly RollupRepair[]): void {
  for (const { row, difference } of repairs) addToRow(db, org, row, difference)
  dropDays(
    db,
    org,
    repairs.map(({ row }) => hourOf(row)),
  )
  noteRewrite(db, org)
  db.query('DELETE FROM event_type_total WHERE org = ?').run(org)
  db.query(
    `INSERT INTO event_type_total (org, type, events)
     SELECT org, type, sum(live + expired) FROM rollup_metric WHERE org = ? GROUP BY type`,
  ).run(org)
}

/** `hour site type outcome` is the key of a row of rollup_metric; followed by `field code`, of rollup_value. */
type RowKey = string

function* countedRows(groups: Iterable<RollupGroup>, days: Iterable<DayGroup>): Generator<[RowKey, number]> {
  for (const { hour, site, type, outcome, events, values } of groups) {
    const key = `${hour} ${site} ${type} ${outcome}`
    yield [key, events]
    for (const [value, count] of values) yield [`${key} ${fieldAndCode(value).join(' ')}`, count]
  }
  for (const { hour, site, type, values } of days) {
    for (const [value, count] of values)
      yield [`${hour} ${site} ${type} 0 ${fieldAndCode(value).join(' ')}`, count]
  }
}

/** Of a whole day: rows without an outcome. */
function isDayRow(key: RowKey): boolean {
  return key.split(' ')[3] === '0'
}

function hourOf(key: RowKey): number {
  return Number(key.split(' ', 1)[0])
}

function memberOf(key: RowKey): number | null {
  const member = key.split(' ')[4]
  return member === undefined ? null : Number(member)
}

/** The stored `live` counts of an hour. */
function* storedRows(db: Database, org: number, hour: number): Generator<[RowKey, number]> {
  const key = "hour || ' ' || site || ' ' || type || ' ' || outcome"
  const metrics = db.query<StoredRow, [number, number]>(
    `SELECT ${key} AS key, live FROM rollup_metric WHERE org = ? AND hour = ?`,
  )
  for (const { key, live } of metrics.iterate(org, hour)) yield [key, live]
  const values = db.query<StoredRow, [number, number, number]>(
    `SELECT ${key} || ' ' || member || ' ' || code AS key, live
     FROM rollup_value WHERE org = ? AND hour = ? AND member = ?`,
  )
  for (const member of storedMembers(db, org))
    for (const { key, live } of values.iterate(org, hour, member)) yield [key, live]
}

interface StoredRow {
  key: string
  live: number
}

/** The fields with rows, by one step in the index for each. */
function storedMembers(db: Database, org: number): number[] {
  const next = db.query<{ next: number | null }, [number, number]>(
    'SELECT min(member) AS next FROM rollup_value WHERE org = ? AND member > ?',
  )
  const members: number[] = []
  for (let last = Number.MIN_SAFE_INTEGER; ;) {
    const nextMember = next.get(org, last)?.next ?? null
    if (nextMember === null) return members
    members.push((last = nextMember))
  }
}

/** The differences between stored and counted rows: how much the stored one is too small. Empties `counted`. */
function* rowDifferences(
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
function addToRow(db: Database, org: number, key: RowKey, difference: number): void {
  const table = key.split(' ').length === 4 ? 'rollup_metric' : 'rollup_value'
  const columns = ['org', 'hour', 'site', 'type', 'outcome', 'member', 'code']
  const numbers = [org, ...key.split(' ').map(Number)]
  const keyColumns = columns.slice(0, numbers.length)
  db.query(
    `INSERT INTO ${table} (live, ${keyColumns.join()}) VALUES (?, ${keyColumns.map(() => '?').join()})
     ON CONFLICT (${keyColumns.join()}) DO UPDATE SET live = ${table}.live + excluded.live`,
  ).run(difference, ...numbers)
  const isRow = keyColumns.map((name) => `${name} = ?`).join(' AND ')
  db.query(`DELETE FROM ${table} WHERE ${isRow} AND live = 0 AND expired = 0`).run(...numbers)
}

const sketches = new Map<number, string>([
  [agentField, 'agent'],
  [judgementField, 'judgement'],
  [durationMember, 'duration'],
  [dayDurationMember, 'duration and day'],
  [classVendorField, 'class and vendor'],
  [distinctMember.session, 'session'],
  [distinctMember.subject, 'subject'],
])

/** For people: "the rollup of 2026-06-01T12:00:00.000Z" or "the rollup by tool of …". */
export function rowName(key: RowKey): string {
  const member = memberOf(key)
  return `the rollup${member === null ? '' : ` by ${fieldName(member)}`} of ${isoHour(hourOf(key))}`
}

export function dayName(member: number, day: number): string {
  return `the sums by ${fieldName(member)} of the day from ${isoHour(day)}`
}

function fieldName(member: number): string {
  return sketches.get(member) ?? fieldAt(member)?.name ?? 'an unknown field'
}

const isoHour = (hour: number): string => new Date(hour * hourMs).toISOString()
