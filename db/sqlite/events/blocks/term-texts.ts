/** The texts behind the codes of a member, for readers. */
import type { Database } from 'bun:sqlite'

export function termTexts(db: Database, org: number, index: number): Map<number, string> {
  const rows = db
    .query<{ code: number; text: string }, [number, number]>(
      'SELECT code, text FROM event_term WHERE org = ? AND member = ?',
    )
    .all(org, index)
  return new Map(rows.map(({ code, text }) => [code, text]))
}
