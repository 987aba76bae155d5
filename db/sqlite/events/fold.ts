/** Rollups: counts by hour, folded now and then up to a watermark; readers add the arrivals behind it themselves. */
import type { Database } from 'bun:sqlite'
import { eachBlockAfter } from './block-table.ts'
import { extra } from './block.ts'
import { member } from './members.ts'
import type { PackedColumns } from './number-columns.ts'

/*
 * event_org.folded_seq is the watermark: rollup rows count exactly the arrivals up to it. It moves in the transaction
 * that adds the counts, so nothing is ever counted twice or forgotten, and a crash leaves nothing to rebuild.
 */
export const hourMs = 3_600_000

/** Arrivals behind the watermark at most: reading them costs a query about 4 ms. */
export const foldEvents = 32_768

export interface MetricCount {
  hour: number
  site: number
  type: number
  outcome: number
  count: number
}

export type MetricCounts = Map<string, MetricCount>

/** Adds events of a block; removed ones are none. */
export function countMetrics(counts: MetricCounts, block: PackedColumns, rows: Iterable<number>): void {
  const types = block.column(member.type)
  const sites = block.column(member.siteId)
  const outcomes = block.column(member.outcome)
  const times = block.column(extra.at)
  for (const row of rows) {
    const type = types[row]!
    if (type === 0) continue
    const hour = Math.floor(times[row]! / hourMs)
    const key = `${hour} ${sites[row]} ${type} ${outcomes[row]}`
    const known = counts.get(key)
    if (known !== undefined) known.count++
    else counts.set(key, { hour, site: sites[row]!, type, outcome: outcomes[row]!, count: 1 })
  }
}

/** Inside a transaction: counts what is past the watermark and moves it to the last stored arrival. */
export function fold(db: Database, org: { num: number; foldedSeq: number; storedSeq: number }): void {
  const counts: MetricCounts = new Map()
  eachBlockAfter(db, org.num, org.foldedSeq, (block, rows) => countMetrics(counts, block, rows))
  addMetrics(db, org.num, counts.values(), 1)
  db.query('UPDATE event_org SET folded_seq = ? WHERE num = ?').run(org.storedSeq, org.num)
  org.foldedSeq = org.storedSeq
}

/** Adds counts to the rollups, or with sign -1 takes them away; rows and totals that come to nothing go. */
export function addMetrics(db: Database, org: number, counts: Iterable<MetricCount>, sign: 1 | -1): void {
  const add = db.query(
    `INSERT INTO rollup_metric (org, hour, site, type, outcome, live) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET live = live + excluded.live`,
  )
  const totals = new Map<number, number>()
  for (const { hour, site, type, outcome, count } of counts) {
    add.run(org, hour, site, type, outcome, sign * count)
    totals.set(type, (totals.get(type) ?? 0) + sign * count)
  }
  const addTotal = db.query(
    `INSERT INTO event_type_total (org, type, events) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET events = events + excluded.events`,
  )
  for (const [type, count] of totals) addTotal.run(org, type, count)
  if (sign === 1) return
  db.query('DELETE FROM rollup_metric WHERE org = ? AND live = 0 AND expired = 0').run(org)
  db.query('DELETE FROM event_type_total WHERE org = ? AND events = 0').run(org)
}
