/** Deletes every event of a site (demo data) or an organization. The same ids may arrive again. */
import { blankRows, matchingRows } from './erase.ts'
import { takeFromRollups } from '../rollups/fold.ts'
import { noteRewrite } from '../rollups/hours.ts'
import { member } from '../blocks/fields.ts'
import { rollupCounts } from '../rollups/counts.ts'
import { dropUnusedRuns } from './expire.ts'
import { placeOf } from '../blocks/block.ts'
import type { Database } from 'bun:sqlite'
import type { OrgState } from '../write/org-state.ts'

/** The organization's rollups must be folded. */
export function removeSiteEvents(db: Database, org: OrgState, siteId: string): number {
  const term = db
    .query<{ code: number }, [number, number, string]>(
      'SELECT code FROM event_term WHERE org = ? AND member = ? AND text = ?',
    )
    .get(org.num, member.siteId, siteId)
  if (term === null) return 0
  const gone = rollupCounts()
  const ofSite = {
    member: member.siteId,
    codes: new Set([term.code]),
    hashed: new Map<number, Set<string>>(),
  }
  let removed = 0
  for (const found of matchingRows(db, org.num, [ofSite])) {
    blankRows(db, found, gone, null)
    removed += found.rows.length
  }
  takeFromRollups(db, org.num, gone)
  forgetTerm(db, org.num, siteId, term.code)
  noteRewrite(db, org.num)
  db.query('UPDATE event_org SET last_seq = ? WHERE num = ?').run(org.storedSeq, org.num)
  return removed
}

/** Frees the site's place within the organization's limit, unless rollups of expired events still name it. */
function forgetTerm(db: Database, org: number, siteId: string, code: number): void {
  const named = db.query('SELECT 1 FROM rollup_metric WHERE org = ? AND site = ? LIMIT 1').get(org, code)
  if (named !== null) return
  const sql = 'DELETE FROM event_term WHERE org = ? AND member = ? AND text = ?'
  db.query(sql).run(org, member.siteId, siteId)
}

/** Deletes everything of an organization from the event tables except its number and its last seq. */
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

/** Inside a transaction. Returns the id runs that no organization needs. */
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
