/** Takes everything of an organization out of the event tables; only its number and how far it counted stay. */
import type { Database } from 'bun:sqlite'
import { dropUnusedRuns } from './expire.ts'
import { noteRewrite } from '../cache/hours.ts'
import type { OrgState } from '../write/org-state.ts'
import { placeOf } from '../blocks/row-key.ts'

const tables = [
  'event_term',
  'event_segment',
  'event_posting',
  'event_posting_rest',
  'event_posting_filter',
  'event_type_total',
  'event_id_run',
  'rollup_metric',
  'rollup_value',
] as const

/** Inside a transaction. Returns the id runs that no organization needs any more. */
export function removeOrgEvents(db: Database, org: OrgState): number[] {
  for (const table of ['event_block', 'event_body']) {
    db.query(`DELETE FROM ${table} WHERE place >= ? AND place < ?`).run(
      placeOf(org.num, 0),
      placeOf(org.num + 1, 0),
    )
  }
  for (const table of tables) db.query(`DELETE FROM ${table} WHERE org = ?`).run(org.num)
  noteRewrite(db, org.num)
  db.query('UPDATE event_org SET last_seq = ?1, folded_seq = ?1 WHERE num = ?2').run(org.storedSeq, org.num)
  return dropUnusedRuns(db)
}
