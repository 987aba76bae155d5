/** Drops rollups of old hours without events. Counts outlive events by up to 400 days. */
import type { Database } from 'bun:sqlite'
import { countUnfolded } from '../rollups/fold.ts'
import { noteRewrite } from '../rollups/hours.ts'
import { hourMs } from '../rollups/counts.ts'
import type { Sliced } from '../../threads/slices.ts'

/** Rollup rows per step, of hours and of values each: 20 to 90 ms. */
const rowsMax = 4_096

/** Inside a transaction. Rows that count a live event stay, so that `verify` finds each event counted. */
export function dropRollups(db: Database, org: number, beforeMs: number): { rows: number; done: boolean } {
  const asked = Math.floor(beforeMs / hourMs)
  const before = boundedHour(db, org, asked)
  const totals = db.query(
    `UPDATE event_type_total SET events = events - ifnull((SELECT sum(expired) FROM rollup_metric
       WHERE org = ?1 AND hour < ?2 AND live = 0 AND type = event_type_total.type), 0) WHERE org = ?1`,
  )
  totals.run(org, before)
  let rows = db
    .query('DELETE FROM rollup_metric WHERE org = ? AND hour < ? AND live = 0')
    .run(org, before).changes
  const values = db.query(
    `DELETE FROM rollup_value WHERE (org, member, hour, site, type, outcome, code) IN (
         SELECT org, member, hour, site, type, outcome, code FROM rollup_value
         WHERE org = ?1 AND member = ?2 AND hour < ?3 AND live = 0 LIMIT ${rowsMax})`,
  )
  const kept = db.query<{ member: number }, [number]>(
    'SELECT DISTINCT member FROM rollup_value WHERE org = ? ORDER BY member',
  )
  if (rows > 0) noteRewrite(db, org)
  for (const { member } of kept.all(org)) {
    rows += values.run(org, member, before).changes
    if (rows >= rowsMax) return { rows, done: false }
  }
  db.query('DELETE FROM event_type_total WHERE org = ? AND events = 0').run(org)
  return { rows, done: before === asked }
}

/** The hour before which about one step's rows of events by hour are stored; at least one hour. */
function boundedHour(db: Database, org: number, asked: number): number {
  const hours = db.query<{ hour: number }, [number, number, number]>(
    'SELECT hour FROM rollup_metric WHERE org = ?1 AND hour < ?2 AND live = 0 ORDER BY hour LIMIT 1 OFFSET ?3',
  )
  const beyond = hours.get(org, asked, rowsMax)
  return beyond === null ? asked : Math.max(beyond.hour, hours.get(org, asked, 0)!.hour + 1)
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
