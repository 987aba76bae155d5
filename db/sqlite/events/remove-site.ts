/** Takes the events of one site out of their blocks (demo data): rows stay as gaps, what they said goes. */
import type { Database } from 'bun:sqlite'
import { deleteBlock, readColumns, readWholeBlock, writeBlock, zonesBetween } from './block-table.ts'
import { extra, openBlock, unpackBlock, type BlockContent } from './block.ts'
import { addToRollups } from './fold.ts'
import { member } from './members.ts'
import type { OrgState } from './org-state.ts'
import { seqMax, seqOf } from './place.ts'
import { rollupCounts, type RollupCounts } from './rollup-counts.ts'

/*
 * Segment indexes and zones are left as they are: they may name an event that is gone, and every reader looks at the
 * row itself before it believes them. A block without events goes altogether.
 */
export function removeSiteEvents(db: Database, org: OrgState, siteId: string): number {
  const term = db
    .query<{ code: number }, [number, number, string]>(
      'SELECT code FROM event_term WHERE org = ? AND member = ? AND text = ?',
    )
    .get(org.num, member.siteId, siteId)
  if (term === null) return 0
  const folded = rollupCounts()
  let removed = 0
  for (const { place } of zonesBetween(db, org.num, 1, seqMax)) {
    if (!readColumns(db, place)?.column(member.siteId).includes(term.code)) continue
    removed += removeFromBlock(db, place, term.code, org.foldedSeq, folded)
  }
  addToRollups(db, org.num, folded, -1)
  forgetTerm(db, org.num, siteId, term.code)
  db.query('UPDATE event_org SET last_seq = ? WHERE num = ?').run(org.storedSeq, org.num)
  return removed
}

function removeFromBlock(
  db: Database,
  place: number,
  site: number,
  foldedSeq: number,
  folded: RollupCounts,
): number {
  const whole = readWholeBlock(db, place)
  if (whole === null) throw new Error(`block ${place} is missing`)
  const content = unpackBlock(whole)
  const gone = rowsOfSite(content, site)
  const columns = openBlock(whole.columns)
  for (const row of gone) if (seqOf(place) + row <= foldedSeq) folded.add(columns, row, row + 1)
  for (const row of gone) blank(content, row)
  content.spilled = content.spilled.filter(([row]) => !gone.includes(row))
  if (content.columns[member.type]!.subarray(0, content.events).some((type) => type !== 0))
    writeBlock(db, place, content)
  else deleteBlock(db, place)
  return gone.length
}

function rowsOfSite(content: BlockContent, site: number): number[] {
  const sites = content.columns[member.siteId]!
  return Array.from({ length: content.events }, (_, row) => row).filter((row) => sites[row] === site)
}

function blank(content: BlockContent, row: number): void {
  for (let index = 0; index < extra.at; index++) content.columns[index]![row] = 0
  content.columns[extra.idAt]![row] = 0
  content.columns[extra.sessionAt]![row] = 0
  content.ids[row] = '""'
  content.sessions[row] = '""'
  content.texts[row] = ''
}

/** Frees the site's place among those an organization may have, unless rollups of expired events still name it. */
function forgetTerm(db: Database, org: number, siteId: string, code: number): void {
  const named = db.query('SELECT 1 FROM rollup_metric WHERE org = ? AND site = ? LIMIT 1').get(org, code)
  if (named !== null) return
  const sql = 'DELETE FROM event_term WHERE org = ? AND member = ? AND text = ?'
  db.query(sql).run(org, member.siteId, siteId)
}
