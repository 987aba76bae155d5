/** Whether an organization has events, and how many of each type: folded totals and the arrivals behind them. */
import type { Database } from 'bun:sqlite'
import { eachBlockAfter } from './block-table.ts'
import { member } from './members.ts'

export function readOverview(
  db: Database,
  org: number,
): { total: number; byType: { [type: string]: number } } {
  const counts = new Map<number, number>()
  const totals = db.query<{ type: number; events: number }, [number]>(
    'SELECT type, events FROM event_type_total WHERE org = ?',
  )
  for (const { type, events } of totals.all(org)) counts.set(type, events)
  eachBlockAfter(db, org, foldedSeq(db, org), (block, rows) => {
    const types = block.column(member.type)
    for (const row of rows) if (types[row] !== 0) counts.set(types[row]!, (counts.get(types[row]!) ?? 0) + 1)
  })
  const names = termTexts(db, org, member.type)
  const byType = [...counts].map(([type, count]): [string, number] => [names.get(type) ?? '', count])
  return {
    total: byType.reduce((sum, [, count]) => sum + count, 0),
    byType: Object.fromEntries(byType.sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

export function foldedSeq(db: Database, org: number): number {
  const row = db
    .query<{ folded: number }, [number]>('SELECT folded_seq AS folded FROM event_org WHERE num = ?')
    .get(org)
  return row?.folded ?? 0
}

/** The texts of a member's codes. */
export function termTexts(db: Database, org: number, index: number): Map<number, string> {
  const rows = db
    .query<{ code: number; text: string }, [number, number]>(
      'SELECT code, text FROM event_term WHERE org = ? AND member = ?',
    )
    .all(org, index)
  return new Map(rows.map(({ code, text }) => [code, text]))
}
