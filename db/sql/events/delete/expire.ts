/** Retention: measures stored events, deletes the oldest blocks in bounded steps, and later drops their rollups. */
import { deleteBlocks, readColumns } from '../blocks/block-table.ts'
import { extra, placeOf, segmentEvents, seqOf } from '../blocks/block.ts'
import { countUnfolded, expireInRollups } from '../rollups/fold.ts'
import { noteRewrite } from '../rollups/hours.ts'
import { rollupCounts } from '../rollups/counts.ts'
import { dropNetworksBefore } from '../blocks/networks.ts'
import { dropPathsBefore } from '../paths/columns.ts'
import type { Database } from '../../database.ts'
import type { ExpireCommand } from '../../../contract/event-counts.ts'
import type { DeletedIds } from '../dedupe/deleted-ids.ts'
import type { OrgState } from '../write/org-state.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { hourMs } from '../../../contract/units.ts'

/*
 * A block expires when all its events arrived before the given time, so an event may outlast it by the time a block
 * takes to fill. Blocks expire in arrival order: one that follows a younger block stays, whatever its time. A time in
 * the future comes from a wrong clock; such a block expires with the next one whose time is plausible. Segment indexes
 * expire with their blocks, and an id older than retention is new again.
 */
interface Expired {
  events: number
  /** Whether nothing that old remains. */
  done: boolean
}

type ExpireLimit = Pick<ExpireCommand, 'receivedBeforeMs' | 'beforeSeq' | 'receivedUntilMs'>

/** Limits of one step, and so of how long an append may wait for it. */
export interface StepBounds {
  blocksMax: number
  /** Rollup rows changed; the last block may exceed it. */
  rollupRowsMax: number
}

/** Inside a transaction. The organization's rollups must be folded. Deletes at least one block when one is old. */
export function expireBlocks(
  db: Database,
  org: OrgState,
  limit: ExpireLimit,
  { blocksMax, rollupRowsMax }: StepBounds,
  ids: DeletedIds,
): Expired {
  const counts = rollupCounts()
  const laterAge = ageAfter(db, org, limit)
  let events = 0
  let firstKept = org.storedSeq + 1
  let expired = 0
  let last = 0
  let isDone = true
  for (const place of oldestBlocks(db, org, blocksMax + 1)) {
    const block = readColumns(db, place)
    if (block === null) continue
    const age = ageOf(block, seqOf(place), limit)
    const isOld = (age === 'unknown' ? laterAge(place) : age) === 'old'
    if (!isOld || expired === blocksMax || counts.entries() >= rollupRowsMax) {
      firstKept = seqOf(place)
      isDone = !isOld
      break
    }
    const previousEvents = counts.events()
    counts.add(block, 0, block.rows)
    events += counts.events() - previousEvents
    ids.expires(org.num, place)
    last = place
    expired++
  }
  if (expired === 0) return { events: 0, done: isDone }
  deleteBlocks(db, placeOf(org.num, 0), last)
  expireInRollups(db, org.num, counts)
  noteRewrite(db, org.num) // no row has another sum, but the blocks that show which hours folds changed are deleted
  db.query('UPDATE event_org SET last_seq = ? WHERE num = ?').run(org.storedSeq, org.num)
  dropSegments(db, org, firstKept)
  dropPathsBefore(db, org.num, firstKept)
  dropNetworksBefore(db, org.num, firstKept)
  ids.expired(org.num, firstKept)
  return { events, done: isDone }
}

type Age = 'old' | 'young' | 'unknown'

function ageOf(block: PackedColumns, seq: number, limit: ExpireLimit): Age {
  if (seq + block.rows <= (limit.beforeSeq ?? 0)) return 'old'
  const until = limit.receivedUntilMs ?? Infinity
  let age: Age = 'unknown'
  for (const received of block.column(extra.received)) {
    if (received > until) continue
    if (received >= limit.receivedBeforeMs) return 'young'
    age = 'old'
  }
  return age
}

/** Blocks read singly after one with a wrong clock; later ones at growing distances. */
const lookedAtMax = 256

/**
 * The next block with a plausible time: what arrived before an old block is old. Caches it for all blocks before it,
 * because a clock that was wrong for hours leaves thousands.
 */
function ageAfter(db: Database, org: OrgState, limit: ExpireLimit): (place: number) => Age {
  let cachedAge: { place: number; age: Age } | null = null
  return (place) => {
    if (cachedAge !== null && place < cachedAge.place) return cachedAge.age
    for (let offset = 1; ; offset += offset < lookedAtMax ? 1 : Math.ceil(offset / 2)) {
      const next = blockAfter(db, org, place, offset)
      const block = next === null ? null : readColumns(db, next)
      if (next === null) return 'unknown'
      const age = block === null ? 'unknown' : ageOf(block, seqOf(next), limit)
      if (age === 'unknown') continue
      cachedAge = { place: next, age }
      return age
    }
  }
}

function oldestBlocks(db: Database, { num, foldedSeq }: OrgState, limit: number): number[] {
  return db
    .query<{ place: number }, [number, number, number]>(
      'SELECT place FROM event_block WHERE place >= ? AND place <= ? ORDER BY place LIMIT ?',
    )
    .all(placeOf(num, 0), placeOf(num, foldedSeq), limit)
    .map(({ place }) => place)
}

/** The block this many blocks later; null when there are fewer. */
function blockAfter(
  db: Database,
  { num, foldedSeq }: OrgState,
  place: number,
  offset: number,
): number | null {
  const blockQuery = db.query<{ place: number }, [number, number, number]>(
    'SELECT place FROM event_block WHERE place >= ? AND place <= ? ORDER BY place LIMIT 1 OFFSET ?',
  )
  return blockQuery.get(place, placeOf(num, foldedSeq), offset)?.place ?? null
}

function dropSegments(db: Database, org: OrgState, firstKept: number): void {
  const firstSegment = Math.floor(firstKept / segmentEvents)
  const expiredSegments = db
    .query<{ segment: number }, [number, number]>(
      'SELECT segment FROM event_segment WHERE org = ? AND segment < ?',
    )
    .all(org.num, firstSegment)
  if (expiredSegments.length === 0) return
  db.query('DELETE FROM event_posting WHERE org = ? AND segment < ?').run(org.num, firstSegment)
  db.query('DELETE FROM event_posting_rest WHERE org = ? AND segment < ?').run(org.num, firstSegment)
  db.query('DELETE FROM event_posting_filter WHERE org = ? AND segment < ?').run(org.num, firstSegment)
  db.query('DELETE FROM event_segment WHERE org = ? AND segment < ?').run(org.num, firstSegment)
}

/** Rollup rows per step, of hours and of values each: 20 to 90 ms. */
const rowsMax = 4_096

/** Inside a transaction. Rows that count a live event stay, so that `verify` finds each event counted. */
export function dropRollups(db: Database, org: number, beforeMs: number): { rows: number; done: boolean } {
  const limit = Math.floor(beforeMs / hourMs)
  const boundHour = boundedHour(db, org, limit)
  const totals = db.query(
    `UPDATE event_type_total SET events = events - coalesce((SELECT sum(expired) FROM rollup_metric
       WHERE org = ?1 AND hour < ?2 AND live = 0 AND type = event_type_total.type), 0) WHERE org = ?1`,
  )
  totals.run(org, boundHour)
  let rows = db
    .query('DELETE FROM rollup_metric WHERE org = ? AND hour < ? AND live = 0')
    .run(org, boundHour).changes
  db.query('DELETE FROM rollup_day WHERE org = ? AND day < ?').run(org, boundHour)
  const values = db.query(
    `DELETE FROM rollup_value WHERE (org, member, hour, site, type, outcome, code) IN (
         SELECT org, member, hour, site, type, outcome, code FROM rollup_value
         WHERE org = ?1 AND member = ?2 AND hour < ?3 AND live = 0 LIMIT ${rowsMax})`,
  )
  const members = db.query<{ member: number }, [number]>(
    'SELECT DISTINCT member FROM rollup_value WHERE org = ? ORDER BY member',
  )
  for (const { member } of members.all(org)) {
    rows += values.run(org, member, boundHour).changes
    if (rows >= rowsMax) break
  }
  if (rows > 0) noteRewrite(db, org)
  if (rows >= rowsMax) return { rows, done: false }
  db.query('DELETE FROM event_type_total WHERE org = ? AND events = 0').run(org)
  return { rows, done: boundHour === limit }
}

/** The hour before which about one step's rows of events by hour are stored; at least one hour. */
function boundedHour(db: Database, org: number, limit: number): number {
  const hours = db.query<{ hour: number }, [number, number, number]>(
    'SELECT hour FROM rollup_metric WHERE org = ?1 AND hour < ?2 AND live = 0 ORDER BY hour LIMIT 1 OFFSET ?3',
  )
  const beyond = hours.get(org, limit, rowsMax)
  return beyond === null ? limit : Math.max(beyond.hour, hours.get(org, limit, 0)!.hour + 1)
}

/** Of the rollups and of the events that are not folded yet. */
export function* firstHour(db: Database, org: number): Sliced<number | null> {
  const row = db
    .query<{ hour: number | null }, [number]>('SELECT min(hour) AS hour FROM rollup_metric WHERE org = ?')
    .get(org)
  let first = row?.hour ?? Infinity
  const unfolded = yield* countUnfolded(db, org, [])
  for (const { hour } of unfolded.groups()) first = Math.min(first, hour)
  return first === Infinity ? null : first * hourMs
}

interface Size {
  place: number
  bytes: number
}

/** Rows of bodies measured at a time: about 5 ms. */
const chunkRows = 1_024

/**
 * Visits the blocks of an organization, newest first, until `visit` stops it. Blocks that share a row of bodies have
 * equal shares of its bytes.
 */
function* eachSize(db: Database, org: number, visit: (block: Size) => boolean): Sliced<void> {
  const bodies = db.query<Size, [number, number]>(
    `SELECT place, length(ids) + length(bodies) AS bytes FROM event_body WHERE place >= ? AND place < ?
     ORDER BY place DESC LIMIT ${chunkRows}`,
  )
  const columns = db.query<Size, [number, number]>(
    `SELECT place, length(columns) AS bytes FROM event_block WHERE place >= ? AND place < ? ORDER BY place DESC`,
  )
  for (let until = placeOf(org + 1, 0); ;) {
    const rows = bodies.all(placeOf(org, 0), until)
    const last = rows.at(-1)
    if (last === undefined) return
    const blocks = columns.all(last.place, until)
    let next = 0
    for (const row of rows) {
      const first = next
      while (next < blocks.length && blocks[next]!.place >= row.place) next++
      const share = row.bytes / (next - first)
      for (const { place, bytes } of blocks.slice(first, next))
        if (visit({ place, bytes: bytes + share })) return
    }
    until = last.place
    if (isSliceOver()) yield
  }
}

export function* eventBytes(db: Database, org: number): Sliced<number> {
  let sum = 0
  yield* eachSize(db, org, ({ bytes }) => {
    sum += bytes
    return false
  })
  return Math.round(sum)
}

/** The arrival number just after the newest block that no longer fits, or null when all fit. */
export function* cutoffForBytes(db: Database, org: number, bytesMax: number): Sliced<number | null> {
  let sum = 0
  let beyond: number | null = null
  yield* eachSize(db, org, ({ place, bytes }) => {
    sum += bytes
    if (sum > bytesMax) beyond = place
    return beyond !== null
  })
  const columns = beyond === null ? null : readColumns(db, beyond)
  return columns === null || beyond === null ? null : seqOf(beyond) + columns.rows
}
