/** Retention of each organization and how far its re-count has come. */
import type { RecountProgress, RetentionSetting, RetentionStore } from '../../contract/retention.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'

export function readSetting({ db }: ReadContext, orgId: string): RetentionSetting {
  const row = db
    .query<RetentionSetting, [string]>(
      'SELECT days, bytes, audit_days AS auditDays FROM retention WHERE org_id = ?',
    )
    .get(orgId)
  return row ?? { days: null, bytes: null, auditDays: null }
}

export function writeSetting(
  { db }: WriteContext,
  { orgId, setting, audit }: Parameters<RetentionStore['set']>[0],
): void {
  db.query(
    `INSERT INTO retention (org_id, days, bytes, audit_days) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET
       days = excluded.days, bytes = excluded.bytes, audit_days = excluded.audit_days`,
  ).run(orgId, setting.days, setting.bytes, setting.auditDays)
  appendAudit(db, audit)
}

export function readRecounted({ db }: ReadContext, orgId: string): RecountProgress | null {
  return db
    .query<RecountProgress, [string]>(
      'SELECT through_ms AS throughMs, repaired FROM rollup_recount WHERE org_id = ?',
    )
    .get(orgId)
}

export function noteRecount(
  { db }: WriteContext,
  { orgId, throughMs, repaired }: Parameters<RetentionStore['noteRecount']>[0],
): void {
  db.query(
    `INSERT INTO rollup_recount (org_id, through_ms, repaired) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET through_ms = excluded.through_ms, repaired = excluded.repaired`,
  ).run(orgId, throughMs, repaired)
}
