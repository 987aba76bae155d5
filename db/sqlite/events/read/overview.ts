/** Whether an organization has events, and how many of each type: folded totals and the arrivals behind them. */
import type { Database } from 'bun:sqlite'
import { countUnfolded } from '../rollups/fold.ts'
import { member } from '../blocks/fields.ts'
import { termTexts } from '../blocks/term-texts.ts'
import type { Sliced } from '../../threads/slices.ts'

export function* readOverview(
  db: Database,
  org: number,
): Sliced<{ total: number; byType: { [type: string]: number } }> {
  const counts = new Map<number, number>()
  const totals = db.query<{ type: number; events: number }, [number]>(
    'SELECT type, events FROM event_type_total WHERE org = ?',
  )
  for (const { type, events } of totals.all(org)) counts.set(type, events)
  const unfolded = yield* countUnfolded(db, org, [])
  for (const { type, events } of unfolded.groups()) counts.set(type, (counts.get(type) ?? 0) + events)
  const names = termTexts(db, org, member.type)
  const byType = [...counts].map(([type, count]): [string, number] => [names.get(type) ?? '', count])
  return {
    total: byType.reduce((sum, [, count]) => sum + count, 0),
    byType: Object.fromEntries(byType.sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}
