/** Sums of whole days in `rollup_day`: after a start the first query reads a month from thirty rows of a field. */
import {
  dayDurationMember,
  dayHours,
  dayOf,
  distinctMember,
  durationMember,
  outcomesSpan,
  rollupFields,
  typesSpan,
} from './counts.ts'
import { foldState, type FoldState } from './hours.ts'
import { foldedRows } from './range.ts'
import { registerAndRank, registers } from './sketches.ts'
import { atOnce, type Sliced } from '../../slices.ts'
import type { Database } from '../../database.ts'
import { countsRetentionDays } from '../../../rules/retention-days.ts'

/*
 * The rows of hours remain what counts. A change to any of them deletes the sums of its day in the same transaction.
 * Sums are made in spare time, once per sealed segment (event_org.summed), when the day has been over for two hours.
 *   sums   zstd. Of a field doubles: `columns` for each site, type, outcome and code, column by column, in order of the
 *          first hour. Of a sketch the ranks of each site: the site as a double, then a byte for each register.
 *          Empty for a field with few rows, which is read from its hours.
 */
const columns = ['site', 'code', 'type', 'outcome', 'firstHour', 'lastHour', 'live', 'expired'] as const

/** One column after the other. */
export type DayColumns = { [name in (typeof columns)[number]]: Float64Array }

function isSketch(member: number): boolean {
  return member === distinctMember.session || member === distinctMember.subject
}

/** Durations have rows of days, or are read from hours. */
const fields = rollupFields.filter((field) => field !== durationMember && field !== dayDurationMember)

/** A field with fewer rows in a day is read from them as quickly. */
const rowsMin = 256
/** When a day is over, late arrivals are rare. */
const closedAfterHours = dayHours + 2
/** Older ones have no sums: someone may send events of each day since 1970. */
const daysMax = countsRetentionDays
/**
 * Made at a time, newest days first. Then the rest waits for a minute: a sender of old events changes many days again
 * and again, and after an upgrade all of them are missing.
 */
const madeMax = 512
const pauseMs = 60_000

/** In the transaction that changes counts of these hours. */
export function dropDays(db: Database, org: number, hours: Iterable<number>): void {
  if (db.query('SELECT 1 FROM rollup_day WHERE org = ? LIMIT 1').get(org) === null) return
  const days = new Set(Iterator.from(hours).map(dayOf))
  const sql = `DELETE FROM rollup_day WHERE org = ? AND member IN (${fields.join()}) AND day = ?`
  db.runEach(
    sql,
    [...days].map((day) => [org, day]),
  )
}

/** The stored sums of a field from one day to before another, by day. */
export function storedDays(
  db: Database,
  { org, index }: { org: number; index: number },
  { from, until }: { from: number; until: number },
): Map<number, () => DayColumns> {
  const rows = db.query<{ day: number; sums: Uint8Array }, number[]>(
    'SELECT day, sums FROM rollup_day WHERE org = ? AND member = ? AND day >= ? AND day < ?',
  )
  const dayRows = rows.all(org, index, from, until).filter(({ sums }) => sums.length > 0)
  return new Map(dayRows.map(({ day, sums }) => [day, () => unpack(sums)]))
}

/** Whether a day has sums, which may be empty. */
export function hasStoredDay(
  db: Database,
  { org, index, day }: { org: number; index: number; day: number },
): boolean {
  const sql = 'SELECT 1 FROM rollup_day WHERE org = ? AND member = ? AND day = ?'
  return db.query(sql).get(org, index, day) !== null
}

/** The sketches of a day by site: the highest rank of each register. Null: they are read from their rows. */
export function storedSketches(
  db: Database,
  { org, index, day }: { org: number; index: number; day: number },
): Map<number, Uint8Array> | null {
  const sql = 'SELECT sums FROM rollup_day WHERE org = ? AND member = ? AND day = ?'
  const row = db.query<{ sums: Uint8Array }, [number, number, number]>(sql).get(org, index, day)
  if (row === null || row.sums.length === 0) return null
  const bytes = inflated(row.sums)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const bySite = new Map<number, Uint8Array>()
  for (let offset = 0; offset < bytes.length; offset += siteBytes + registers)
    bySite.set(
      view.getFloat64(offset, true),
      bytes.subarray(offset + siteBytes, offset + siteBytes + registers),
    )
  return bySite
}

const siteBytes = 8

function packSketches(bySite: ReadonlyMap<number, Uint8Array>): Uint8Array {
  const parts = [...bySite].flatMap(([site, ranks]) => [new Uint8Array(Float64Array.of(site).buffer), ranks])
  return deflated(Buffer.concat(parts))
}

const deflated = (bytes: Uint8Array): Uint8Array =>
  Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level: 3 })
const inflated = (packed: Uint8Array): Uint8Array => Bun.zstdDecompressSync(packed as Uint8Array<ArrayBuffer>)

function pack(rows: readonly number[][]): Uint8Array {
  if (rows.length === 0) return new Uint8Array(0)
  const numbers = Float64Array.from({ length: rows.length * rows[0]!.length }, (_, index) => {
    return rows[index % rows.length]![Math.floor(index / rows.length)]!
  })
  return deflated(new Uint8Array(numbers.buffer))
}

function unpack(sums: Uint8Array): DayColumns {
  const bytes = inflated(sums)
  const numbers = new Float64Array(bytes.length / 8)
  new Uint8Array(numbers.buffer).set(bytes)
  const rows = numbers.length / columns.length
  const columnEntries = columns.map((name, column) => [
    name,
    numbers.subarray(column * rows, (column + 1) * rows),
  ])
  return Object.fromEntries(columnEntries) as DayColumns
}

interface Day {
  org: number
  member: number
  day: number // its first hour
}

const hourColumns = 'hour, site, type, outcome, code, live, expired'

/** Sums a day of a field from its rows of hours; empty when they are few. */
function* sumsOf(db: Database, { org, member, day }: Day): Sliced<Uint8Array> {
  const sum = isSketch(member) ? sketchSum() : columnSum()
  let read = 0
  const counted = { org, index: member, sites: null, types: null }
  yield* foldedRows(db, hourColumns, counted, { from: day, until: day + dayHours }, (row) => {
    read++
    sum.add(row as SumRow)
  })
  return read < rowsMin ? new Uint8Array(0) : sum.packed()
}

interface DaySum {
  add(row: SumRow): void
  packed(): Uint8Array
}

function sketchSum(): DaySum {
  const bySite = new Map<number, Uint8Array>()
  return {
    add([, site, , , code, live, expired]) {
      if (live + expired === 0) return
      const ranks = bySite.getOrInsertComputed(site, () => new Uint8Array(registers))
      const [register, rank] = registerAndRank(code)
      ranks[register] = Math.max(rank, ranks[register]!)
    },
    packed: () => packSketches(bySite),
  }
}

function columnSum(): DaySum {
  const groups = new Map<number, Map<number, number[]>>()
  return {
    add([hour, site, type, outcome, code, live, expired]) {
      const group = (site * typesSpan + type) * outcomesSpan + outcome
      const rows = groups.getOrInsertComputed(group, () => new Map())
      const row = rows.get(code)
      if (row === undefined) rows.set(code, [site, code, type, outcome, hour, hour, live, expired])
      else {
        row[5] = hour
        row[6]! += live
        row[7]! += expired
      }
    },
    packed: () => pack([...groups.values()].flatMap((rowsByCode) => [...rowsByCode.values()]).sort(byFirst)),
  }
}

type SumRow = [
  hour: number,
  site: number,
  type: number,
  outcome: number,
  code: number,
  live: number,
  expired: number,
]

/** The order in which the rows of hours would name them first. */
function byFirst(a: number[], b: number[]): number {
  for (const column of [4, 0, 2, 3, 1]) if (a[column] !== b[column]) return a[column]! - b[column]!
  return 0
}

/** Makes the sums that organizations lack. */
interface DayWork {
  /** Some milliseconds of it; false when there is nothing to do. `inTransaction` runs what writes. */
  step(inTransaction: (write: () => void) => void): boolean
  /** Makes some of an organization's, inside a transaction in which nobody else changes its counts. */
  makeSome(org: number): void
  /** A segment was sealed. */
  wake(): void
  /** A transaction was rolled back. */
  forget(): void
}

interface Plan {
  org: number
  segments: number // sealed when the plan was made
  missing: Day[] // the next one last; at most `madeMax`
  isAll: boolean // that is missing
}

/** What a call of `makeSome` makes: up to a second of work. */
const someMax = 64

export function dayWork(db: Database): DayWork {
  let mayBeDue = true
  let plan: Plan | null = null
  let pausedUntilMs = -Infinity
  let current: { day: Day; summing: Sliced<Uint8Array>; state: FoldState | null } | null = null

  function step(inTransaction: (write: () => void) => void): boolean {
    if (plan === null && performance.now() < pausedUntilMs) return false
    plan ??= nextPlan(db)
    if (plan === null) return false
    const day = current?.day ?? plan.missing.pop()
    if (day === undefined) {
      const { org, segments, isAll } = plan
      plan = null
      if (isAll) inTransaction(() => void moveOn(db, org, segments))
      else pausedUntilMs = performance.now() + pauseMs
      return true
    }
    current ??= { day, summing: sumsOf(db, day), state: foldState(db, day.org) }
    const slice = current.summing.next()
    if (!slice.done) return true
    const { state } = current
    current = null
    // A day whose counts may have changed meanwhile waits for the next segment.
    if (isSame(state, foldState(db, day.org))) inTransaction(() => write(db, day, slice.value))
    return true
  }

  return {
    step(inTransaction) {
      mayBeDue &&= step(inTransaction)
      return mayBeDue
    },
    makeSome(org) {
      const { missing, segments, isAll } = planOf(db, org)
      for (const day of missing.splice(-someMax).toReversed()) write(db, day, atOnce(sumsOf(db, day)))
      if (missing.length === 0 && isAll) moveOn(db, org, segments)
    },
    wake() {
      mayBeDue = true
    },
    forget() {
      plan = current = null
      mayBeDue = true
    },
  }
}

function isSame(previousState: FoldState | null, now: FoldState | null): boolean {
  return previousState?.rewrites === now?.rewrites && previousState?.foldedSeq === now?.foldedSeq
}

function write(db: Database, { org, member, day }: Day, sums: Uint8Array): void {
  db.query(
    `INSERT INTO rollup_day (org, member, day, sums) VALUES (?, ?, ?, ?)
     ON CONFLICT (org, member, day) DO UPDATE SET sums = excluded.sums`,
  ).run(org, member, day, sums)
}

function moveOn(db: Database, org: number, segments: number): void {
  db.query('UPDATE event_org SET summed = ? WHERE num = ?').run(segments, org)
}

function nextPlan(db: Database): Plan | null {
  const due = db.query<{ num: number }, []>('SELECT num FROM event_org WHERE summed < segments LIMIT 1').get()
  return due === null ? null : planOf(db, due.num)
}

function planOf(db: Database, org: number): Plan {
  const { segments } = db
    .query<{ segments: number }, [number]>('SELECT segments FROM event_org WHERE num = ?')
    .get(org)!
  const newest =
    db
      .query<{ hour: number | null }, [number]>('SELECT max(hour) AS hour FROM rollup_metric WHERE org = ?')
      .get(org)?.hour ?? 0
  const missing: Day[] = []
  const last = dayOf(newest - closedAfterHours)
  for (const member of fields) {
    const stored = new Set(daysOf(db, org, member))
    for (const day of countedDays(db, org, member, { from: last - daysMax * dayHours, last }))
      if (!stored.has(day)) missing.push({ org, member, day })
  }
  missing.sort((a, b) => a.day - b.day)
  return { org, segments, missing: missing.slice(-madeMax), isAll: missing.length <= madeMax }
}

function daysOf(db: Database, org: number, member: number): number[] {
  const sql = 'SELECT day FROM rollup_day WHERE org = ? AND member = ?'
  return db
    .query<{ day: number }, [number, number]>(sql)
    .all(org, member)
    .map(({ day }) => day)
}

/** The days with counts of a field, by one step in the index for each. */
function* countedDays(
  db: Database,
  org: number,
  member: number,
  { from, last }: { from: number; last: number },
): Generator<number> {
  const next = db.query<{ hour: number | null }, [number, number, number]>(
    'SELECT min(hour) AS hour FROM rollup_value WHERE org = ? AND member = ? AND hour >= ?',
  )
  for (;;) {
    const hour = next.get(org, member, from)?.hour ?? Infinity
    if (dayOf(hour) > last || hour === Infinity) return
    yield dayOf(hour)
    from = dayOf(hour) + dayHours
  }
}

/** For `verify`: the stored sums of all days, against the rows of hours. Each in its own slice. */
export function* wrongDays(db: Database, org: number): Generator<void, Day[]> {
  const wrong: Day[] = []
  const sql = 'SELECT sums FROM rollup_day WHERE org = ? AND member = ? AND day = ?'
  for (const member of storedFields(db, org)) {
    for (const day of daysOf(db, org, member)) {
      yield
      // Retention and late arrivals may have deleted it meanwhile.
      const stored = db.query<{ sums: Uint8Array }, number[]>(sql).get(org, member, day)?.sums
      if (stored === undefined) continue
      const sums = atOnce(sumsOf(db, { org, member, day }))
      if (!fields.includes(member) || !isEqual(stored, sums)) wrong.push({ org, member, day })
    }
  }
  return wrong
}

function storedFields(db: Database, org: number): number[] {
  const sql = 'SELECT DISTINCT member FROM rollup_day WHERE org = ? ORDER BY member'
  return db
    .query<{ member: number }, [number]>(sql)
    .all(org)
    .map(({ member }) => member)
}

/** Compressed by another release, the same sums may have other bytes. */
function isEqual(stored: Uint8Array, sums: Uint8Array): boolean {
  if (stored.length === 0 || sums.length === 0) return stored.length === sums.length
  try {
    return Buffer.compare(inflated(stored), inflated(sums)) === 0
  } catch {
    return false
  }
}
