/** Takes the copies of erased events out of webhook deliveries, and refused samples that name what is erased. */
import type { Database } from 'bun:sqlite'
import type { EraseCommand } from '../../contract/event-counts.ts'
import { splitBatch } from '../../rules/batch-body.ts'

/*
 * A delivery keeps its place and its other events, so that no receiver misses one; what a receiver answered may quote
 * the events and goes. A sample is cut off somewhere and need not be JSON: it goes when the value stands in it at all.
 */

/** Inside a transaction. One step looks at `rowsMax` deliveries; `afterSeq` is where the next one goes on. */
export function eraseFromDeliveries(
  db: Database,
  command: EraseCommand,
  afterSeq: number,
  rowsMax: number,
): { erased: number; lastSeq: number | null } {
  const rows = db
    .query<{ seq: number; body: string }, [string, number, number]>(
      'SELECT seq, body FROM webhook_delivery WHERE org_id = ? AND seq > ? ORDER BY seq LIMIT ?',
    )
    .all(command.orgId, afterSeq, rowsMax)
  const rewrite = db.query('UPDATE webhook_delivery SET body = ?, last_error = NULL WHERE seq = ?')
  const forget = db.query(
    "UPDATE webhook_attempt SET response_excerpt = '', error = NULL WHERE delivery_seq = ?",
  )
  let erased = 0
  for (const { seq, body } of rows) {
    const parts = splitBatch(body)
    const kept = parts?.events.filter((text) => !isErased(text, command))
    if (parts === null || kept === undefined || kept.length === parts.events.length) continue
    rewrite.run(`${parts.head}${kept.join(',')}${parts.tail}`, seq)
    forget.run(seq)
    erased++
  }
  return { erased, lastSeq: rows.length < rowsMax ? null : (rows.at(-1)?.seq ?? null) }
}

/** The same question that the event tables answer by their columns: any of the sessions and any of the subjects. */
function isErased(text: string, { sessionIds, subjects }: EraseCommand): boolean {
  const event = JSON.parse(text) as { sessionId?: unknown; metadata?: { subject?: unknown } | null }
  const among = (wanted: string[], value: unknown) =>
    wanted.length === 0 || (typeof value === 'string' && wanted.includes(value))
  return among(sessionIds, event.sessionId) && among(subjects, event.metadata?.subject)
}

export function eraseSamples(db: Database, { orgId, sessionIds, subjects }: EraseCommand): number {
  const remove = db.query(
    'DELETE FROM rejected_sample WHERE org_id = ?1 AND (instr(excerpt, ?2) > 0 OR instr(message, ?2) > 0)',
  )
  let samples = 0
  for (const value of [...sessionIds, ...subjects]) {
    const escaped = JSON.stringify(value).slice(1, -1)
    for (const text of new Set([value, escaped])) samples += remove.run(orgId, text).changes
  }
  return samples
}
