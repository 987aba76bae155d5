/** The writing half of the plain event engine: one row an event, a unique index for dedupe. */
import type { Database } from 'bun:sqlite'
import type { AppendResult, EventBatch, EventRecord } from '../../store.ts'
import type { EventWriter } from '../event-engine.ts'
import { guardRails } from './guard-rails.ts'

export function plainEventWriter(db: Database): EventWriter {
  const rails = guardRails(db)
  const insert = db.prepare<unknown, (string | number | null)[]>(
    `INSERT INTO event (org_id, id, site_id, session_id, occurred_at_ms, received_at_ms, key_id, type, outcome, tool,
       duration_ms, class, vendor, trust, protocol, subject, page, decision, rule_id, reason, json)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, id) DO NOTHING`,
  )
  const exists = db.prepare('SELECT 1 FROM event WHERE org_id = ? AND id = ?')

  /** Row number of the stored event, or null when the id was known. */
  function store(batch: EventBatch, event: EventRecord): number | null {
    const { changes, lastInsertRowid } = insert.run(
      batch.orgId,
      event.id,
      event.siteId,
      event.sessionId,
      event.occurredAtMs,
      batch.receivedAtMs,
      batch.keyId,
      event.type,
      event.outcome,
      event.tool,
      event.durationMs,
      event.class,
      event.vendor,
      event.trust,
      event.protocol,
      event.subject,
      event.page,
      event.decision,
      event.ruleId,
      event.reason,
      event.json,
    )
    return changes === 0 ? null : Number(lastInsertRowid)
  }

  return {
    append(batch) {
      const result: AppendResult = { accepted: 0, deduped: 0, rejected: [], lastSeq: 0 }
      batch.events.forEach((event, index) => {
        const member = rails.broken(batch.orgId, event)
        if (member !== null) {
          // An event that is stored already is a resend, whatever the limits say of its like today.
          if (exists.get(batch.orgId, event.id) === null) result.rejected.push({ index, member })
          else result.deduped++
          return
        }
        const seq = store(batch, event)
        if (seq === null) {
          result.deduped++
          return
        }
        rails.count(batch.orgId, event)
        result.accepted++
        result.lastSeq = seq
      })
      return result
    },
    removeSite(orgId, siteId) {
      const { changes } = db.query('DELETE FROM event WHERE org_id = ? AND site_id = ?').run(orgId, siteId)
      rails.recount(orgId)
      return changes
    },
    committed() {},
    rolledBack() {
      rails.forget()
    },
    idle() {},
    close() {
      insert.finalize()
      exists.finalize()
    },
  }
}
