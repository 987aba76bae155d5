/** Rollups: counts by hour, folded now and then up to a watermark; readers count the arrivals behind it themselves. */
import type { Database } from 'bun:sqlite'
import { eachBlockAfter } from './block-table.ts'
import { memberAndCode, rollupCounts, type RollupCounts } from './rollup-counts.ts'

/*
 * event_org.folded_seq is the watermark: rollup rows count exactly the arrivals up to it. It moves in the transaction
 * that adds the counts, so nothing is ever counted twice or forgotten, and a crash leaves nothing to rebuild.
 *   rollup_metric      events by hour, site, type, outcome
 *   rollup_value       the same again for each value of each counted member (rollup-counts.ts)
 *   (sketches and durations of a day: the same with 0 for the outcome)
 *   event_type_total   events by type over all time
 * `live` are events that are still there, `expired` those that retention took; metrics are the sum of both.
 */

/** Arrivals behind the watermark that start a fold: reading as many costs a query 1 to 10 ms. */
const behindMax = 16_384

/** Rollup rows of one fold that start it sooner: even when each event has an hour of its own, no commit takes long. */
const entriesMax = 8_192

/** Stands for the outcome in rows that count a whole day. */
const ofDay = 0

/** What the writer keeps of an organization for its rollups. */
export interface Folding {
  num: number
  foldedSeq: number
  storedSeq: number
  unfolded: RollupCounts // of the arrivals behind the watermark
}

export function isFoldDue({ foldedSeq, storedSeq, unfolded }: Folding): boolean {
  return storedSeq - foldedSeq >= behindMax || unfolded.entries() >= entriesMax
}

/** Inside a transaction: adds what is behind the watermark and moves it to the last stored arrival. */
export function fold(db: Database, org: Folding): void {
  addToRollups(db, org.num, org.unfolded, 1)
  db.query('UPDATE event_org SET folded_seq = ? WHERE num = ?').run(org.storedSeq, org.num)
  org.foldedSeq = org.storedSeq
  org.unfolded = rollupCounts()
}

/**
 * Counts what is behind the watermark from the blocks: a reader's way, and the writer's after a start. Only the values
 * of the `wanted` members, null for all: of 16,384 arrivals counting everything takes 10 ms, events alone 2.
 */
export function countUnfolded(
  db: Database,
  org: number,
  wanted: readonly number[] | null = null,
): RollupCounts {
  const counts = rollupCounts(wanted)
  const row = db
    .query<{ folded: number }, [number]>('SELECT folded_seq AS folded FROM event_org WHERE num = ?')
    .get(org)
  eachBlockAfter(db, org, row?.folded ?? 0, counts.add)
  return counts
}

/** Adds counts to the rollups, or with sign -1 takes them away; rows that come to nothing go. */
export function addToRollups(db: Database, org: number, counts: RollupCounts, sign: 1 | -1): void {
  const addMetric = db.query(
    `INSERT INTO rollup_metric (org, hour, site, type, outcome, live) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET live = live + excluded.live`,
  )
  const addValue = db.query(
    `INSERT INTO rollup_value (org, member, hour, site, type, outcome, code, live) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET live = live + excluded.live`,
  )
  const totals = new Map<number, number>()
  for (const { hour, site, type, outcome, events, values } of counts.groups()) {
    addMetric.run(org, hour, site, type, outcome, sign * events)
    totals.set(type, (totals.get(type) ?? 0) + sign * events)
    for (const [key, count] of values) {
      const [member, code] = memberAndCode(key)
      addValue.run(org, member, hour, site, type, outcome, code, sign * count)
    }
  }
  for (const { hour, site, type, values } of counts.days()) {
    for (const [key, count] of values) {
      const [member, code] = memberAndCode(key)
      addValue.run(org, member, hour, site, type, ofDay, code, sign * count)
    }
  }
  const addTotal = db.query(
    `INSERT INTO event_type_total (org, type, events) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET events = events + excluded.events`,
  )
  for (const [type, count] of totals) addTotal.run(org, type, count)
  if (sign === 1) return
  for (const table of ['rollup_metric', 'rollup_value']) {
    db.query(`DELETE FROM ${table} WHERE org = ? AND live = 0 AND expired = 0`).run(org)
  }
  db.query('DELETE FROM event_type_total WHERE org = ? AND events = 0').run(org)
}

/** Moves counts from `live` to `expired`: metrics, their sum, stay as they are. */
export function expireInRollups(db: Database, org: number, counts: RollupCounts): void {
  const metric = db.query(
    `UPDATE rollup_metric SET live = live - ?1, expired = expired + ?1
     WHERE org = ? AND hour = ? AND site = ? AND type = ? AND outcome = ?`,
  )
  const value = db.query(
    `UPDATE rollup_value SET live = live - ?1, expired = expired + ?1
     WHERE org = ? AND member = ? AND hour = ? AND site = ? AND type = ? AND outcome = ? AND code = ?`,
  )
  for (const { hour, site, type, outcome, events, values } of counts.groups()) {
    metric.run(events, org, hour, site, type, outcome)
    for (const [key, count] of values) {
      const [member, code] = memberAndCode(key)
      value.run(count, org, member, hour, site, type, outcome, code)
    }
  }
  for (const { hour, site, type, values } of counts.days()) {
    for (const [key, count] of values) {
      const [member, code] = memberAndCode(key)
      value.run(count, org, member, hour, site, type, ofDay, code)
    }
  }
}
