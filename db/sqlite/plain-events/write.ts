/** The writing half of the plain event engine: one row an event, a unique index for dedupe. */
import type { Database } from 'bun:sqlite'
import type { AppendResult, EventBatch, EventRecord } from '../../store.ts'
import type { EventWriter } from '../event-engine.ts'
import { guardRails } from './guard-rails.ts'

const insertSql = `
  INSERT INTO event (org_id, id, site_id, session_id, occurred_at_ms, received_at_ms, key_id, type, outcome, tool,
    duration_ms, class, vendor, trust, protocol, subject, page, decision, rule_id, reason, json)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (org_id, id) DO NOTHING`

type Values = (string | number | null)[]

export function plainEventWriter(db: Database): EventWriter {
  const rails = guardRails(db)
  const insert = db.prepare<unknown, Values>(insertSql)
  const exists = db.prepare<unknown, [string, string]>('SELECT 1 FROM event WHERE org_id = ? AND id = ?')

  function appendOne(batch: EventBatch, event: EventRecord, index: number, result: AppendResult): void {
    const member = rails.broken(batch.orgId, event)
    // An event that is stored already is a resend, whatever the limits say of its like today.
    if (member !== null && exists.get(batch.orgId, event.id) === null) {
      result.rejected.push({ index, member })
      return
    }
    const { changes, lastInsertRowid } = insert.run(...valuesOf(batch, event))
    if (changes === 0) {
      result.deduped++
      return
    }
    rails.count(batch.orgId, event)
    result.accepted++
    result.lastSeq = Number(lastInsertRowid)
  }

  return {
    append(batch) {
      const result: AppendResult = { accepted: 0, deduped: 0, rejected: [], lastSeq: 0 }
      batch.events.forEach((event, index) => appendOne(batch, event, index, result))
      rails.settle(batch.orgId)
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

/** In the order of the columns of `insertSql`. */
function valuesOf({ orgId, receivedAtMs, keyId }: EventBatch, event: EventRecord): Values {
  return [
    orgId,
    event.id,
    event.siteId,
    event.sessionId,
    event.occurredAtMs,
    receivedAtMs,
    keyId,
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
  ]
}
