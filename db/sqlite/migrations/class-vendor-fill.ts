/** Counts by class and vendor for what an earlier schema folded without them: once, in the migration's transaction. */
import type { Database } from 'bun:sqlite'
import { readColumns, zonesBetween } from '../events/blocks/block-table.ts'
import { extra } from '../events/blocks/block.ts'
import { member } from '../events/blocks/fields.ts'
import { seqOf } from '../events/blocks/row-key.ts'
import {
  childOf,
  classVendorMember,
  hourMs,
  outcomesSpan,
  pairCode,
  typesSpan,
} from '../events/rollups/counts.ts'

/** Events that retention has taken by then stay uncounted: nothing says any more which pair they had. */
export function fillClassVendor(db: Database): void {
  const orgs = db.query<{ num: number; folded: number }, []>(
    'SELECT num, folded_seq AS folded FROM event_org',
  )
  for (const { num, folded } of orgs.all()) fillOrg(db, num, folded)
}

function fillOrg(db: Database, org: number, folded: number): void {
  const byHour = new Map<number, Map<number, Map<number, number>>>() // hour -> site, type and outcome -> pair -> events
  for (const zone of zonesBetween(db, org, 1, folded + 1)) {
    const block = readColumns(db, zone.place)
    if (block === null) continue
    const [types, outcomes, sites] = [member.type, member.outcome, member.siteId].map(block.column)
    const [classes, vendors, times] = [member.class, member.vendor, extra.at].map(block.column)
    const end = Math.min(block.rows, folded + 1 - seqOf(zone.place))
    for (let row = 0; row < end; row++) {
      if (types![row] === 0) continue // taken away
      const group = (sites![row]! * typesSpan + types![row]!) * outcomesSpan + outcomes![row]!
      const pairs = childOf(childOf(byHour, Math.floor(times![row]! / hourMs)), group)
      const pair = pairCode(classes![row]!, vendors![row]!)
      pairs.set(pair, (pairs.get(pair) ?? 0) + 1)
    }
  }
  const add = db.query(
    `INSERT INTO rollup_value (org, member, hour, site, type, outcome, code, live) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const [hour, groups] of byHour) {
    for (const [group, pairs] of groups) {
      const siteAndType = Math.floor(group / outcomesSpan)
      const key = [hour, Math.floor(siteAndType / typesSpan), siteAndType % typesSpan, group % outcomesSpan]
      for (const [pair, events] of pairs) add.run(org, classVendorMember, ...key, pair, events)
    }
  }
}
