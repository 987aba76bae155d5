/** Retention of each organization and how far its re-count has come. */
import { appendAudit } from '../audit/append.ts'
import { pageBytes } from '../file/connection.ts'
import type { RecountProgress, RetentionSetting, RetentionStore } from '../../contract/retention.ts'
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

/** Pages that one step moves: 2 MiB, a few milliseconds. */
const stepPages = 256

/** What is kept free: growing a file again costs more than reusing its pages. */
const keptPages = 1_024

export function releasePages({ db }: WriteContext): { bytes: number; done: boolean } {
  const free = () =>
    db.query<{ n: number }, []>('SELECT freelist_count AS n FROM pragma_freelist_count').get()?.n ?? 0
  const before = free()
  const pages = Math.min(stepPages, before - keptPages)
  if (pages <= 0) return { bytes: 0, done: true }
  db.query(`PRAGMA incremental_vacuum(${pages})`).all()
  const released = before - free()
  return { bytes: released * pageBytes, done: released === 0 || before - released <= keptPages }
}

/** The verbs of retention, re-counts and released room, by the names under which they travel. */
export const retentionWriteVerbs = {
  'retention.set': writeSetting,
  'retention.dropRollups': ({ events }: WriteContext, command: { orgId: string; beforeMs: number }) =>
    events.dropRollups(command),
  'retention.release': releasePages,
  'retention.noteRecount': noteRecount,
}

export const retentionReadVerbs = {
  'retention.setting': readSetting,
  'retention.recounted': readRecounted,
  'retention.eventBytes': ({ events }: ReadContext, orgId: string) => events.eventBytes(orgId),
  'retention.cutoff': ({ events }: ReadContext, query: { orgId: string; bytesMax: number }) =>
    events.cutoff(query),
  'retention.firstHour': ({ events }: ReadContext, orgId: string) => events.firstHour(orgId),
}
