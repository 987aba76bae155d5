/** Retention settings, re-count progress, and erasing copies of events from deliveries and samples. */
import { appendAudit } from '../audit/append.ts'
import { joinBatch, splitBatch, withoutEvents } from '../../rules/batch-body.ts'
import { StoreError } from '../../contract/errors.ts'
import type {
  ErasureProgress,
  ErasureRun,
  ErasureStore,
  RecountProgress,
  RetentionSetting,
  RetentionStore,
} from '../../contract/operations.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import type { Database } from '../database.ts'
import type { EraseCommand, EraseResult } from '../../contract/event-counts.ts'

function readSetting({ db }: ReadContext, orgId: string): RetentionSetting {
  const row = db
    .query<RetentionSetting, [string]>(
      'SELECT days, bytes, audit_days AS auditDays FROM retention WHERE org_id = ?',
    )
    .get(orgId)
  return row ?? { days: null, bytes: null, auditDays: null }
}

function writeSetting(
  { db }: WriteContext,
  { orgId, setting, audit }: Parameters<RetentionStore['set']>[0],
): void {
  db.query(
    `INSERT INTO retention (org_id, days, bytes, audit_days) VALUES (?, ?, ?, ?)
     ON CONFLICT (org_id) DO UPDATE SET
       days = excluded.days, bytes = excluded.bytes, audit_days = excluded.audit_days`,
  ).run(orgId, setting.days, setting.bytes, setting.auditDays)
  appendAudit(db, audit)
}

function readRecounted({ db }: ReadContext, orgId: string): RecountProgress | null {
  return db
    .query<RecountProgress, [string]>(
      'SELECT through_ms AS throughMs, repaired FROM rollup_recount WHERE org_id = ?',
    )
    .get(orgId)
}

function noteRecount(
  { db }: WriteContext,
  { orgId, throughMs, repaired }: Parameters<RetentionStore['noteRecount']>[0],
): void {
  db.query(
    `INSERT INTO rollup_recount (org_id, through_ms, repaired) VALUES (?, ?, ?)
     ON CONFLICT (org_id) DO UPDATE SET through_ms = excluded.through_ms, repaired = excluded.repaired`,
  ).run(orgId, throughMs, repaired)
}

/**
 * Adds a step to its erasure, in the transaction of the step. A row of the same node that has not ended comes from a
 * process that has: a process knows what it runs itself.
 */
export function noteErasure(
  db: Database,
  { orgId, run, isFirst, step }: { orgId: string; run: ErasureRun; isFirst: boolean; step: EraseResult },
): void {
  const { id, kind, node, leaseMs } = run
  const now = db.dialect.storeMs(db, run.now)
  const { events, deliveries, samples } = step
  const { changes } = isFirst
    ? db
        .query(
          `INSERT INTO erasure (org_id, run, kind, node, started_at_ms, seen_at_ms, events, deliveries, samples)
           VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8)
           ON CONFLICT (org_id) DO UPDATE SET
             run = excluded.run, kind = excluded.kind, node = excluded.node, started_at_ms = excluded.started_at_ms,
             seen_at_ms = excluded.seen_at_ms, events = excluded.events, deliveries = excluded.deliveries,
             samples = excluded.samples, ended_at_ms = NULL, log_emptied = NULL, problem = NULL
           WHERE erasure.ended_at_ms IS NOT NULL OR erasure.node = excluded.node OR erasure.seen_at_ms <= ?9`,
        )
        .run(orgId, id, kind, node, now, events, deliveries, samples, now - leaseMs)
    : db
        .query(
          `UPDATE erasure SET seen_at_ms = ?, events = events + ?, deliveries = deliveries + ?, samples = samples + ?
           WHERE org_id = ? AND run = ?`,
        )
        .run(now, events, deliveries, samples, orgId, id)
  if (changes === 0) throw new StoreError('conflict', `another erasure of ${orgId} runs`)
}

function endErasure(
  { db }: WriteContext,
  { orgId, run, logEmptied, problem, now }: Parameters<ErasureStore['end']>[0],
): void {
  db.query(
    'UPDATE erasure SET ended_at_ms = ?, log_emptied = ?, problem = ? WHERE org_id = ? AND run = ?',
  ).run(db.dialect.storeMs(db, now), logEmptied === null ? null : Number(logEmptied), problem, orgId, run)
}

function findErasure(
  { db }: ReadContext,
  { orgId, now }: Parameters<ErasureStore['find']>[0],
): ErasureProgress | null {
  const row = db
    .query<Omit<ErasureProgress, 'logEmptied' | 'silentMs'> & { logEmptied: number | null }, [string]>(
      `SELECT run, kind, node, started_at_ms AS startedAtMs, seen_at_ms AS seenAtMs, events, deliveries, samples,
         ended_at_ms AS endedAtMs, log_emptied AS logEmptied, problem
       FROM erasure WHERE org_id = ?`,
    )
    .get(orgId)
  if (row === null) return null
  const silentMs = Math.max(0, db.dialect.storeMs(db, now) - row.seenAtMs)
  return { ...row, silentMs, logEmptied: row.logEmptied === null ? null : row.logEmptied === 1 }
}

/** The verbs of retention, re-counts and disk space, by name. */
export const retentionWriteVerbs = {
  'retention.set': writeSetting,
  'retention.dropRollups': ({ events }: WriteContext, command: { orgId: string; beforeMs: number }) =>
    events.dropRollups(command),
  'retention.release': ({ release }: WriteContext) => release(),
  'retention.noteRecount': noteRecount,
  'erasures.end': endErasure,
}

export const retentionReadVerbs = {
  'retention.setting': readSetting,
  'erasures.find': findErasure,
  'retention.recounted': readRecounted,
  'retention.eventBytes': ({ events }: ReadContext, orgId: string) => events.eventBytes(orgId),
  'retention.cutoff': ({ events }: ReadContext, query: { orgId: string; bytesMax: number }) =>
    events.cutoff(query),
  'retention.firstHour': ({ events }: ReadContext, orgId: string) => events.firstHour(orgId),
}

/*
 * A delivery keeps its sequence and its other events, so that no receiver misses one. Responses may quote the events
 * and are deleted. A sample may be truncated JSON, so it is deleted when the value occurs in it at all.
 */

/** Inside a transaction. Examines at most `rowsMax` deliveries; `afterSeq` is where the next step continues. */
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
    const batch = splitBatch(body)
    if (batch === null) continue
    const remaining = withoutEvents(batch, (text) => isErased(text, command))
    if (remaining.events.length === batch.events.length) continue
    rewrite.run(joinBatch(remaining), seq)
    forget.run(seq)
    erased++
  }
  return { erased, lastSeq: rows.length < rowsMax ? null : (rows.at(-1)?.seq ?? null) }
}

/** The same condition as for events: any of the sessions and any of the subjects. */
function isErased(text: string, { sessionIds, subjects }: EraseCommand): boolean {
  const event = JSON.parse(text) as { sessionId?: unknown; metadata?: { subject?: unknown } | null }
  const among = (accepted: string[], value: unknown) =>
    accepted.length === 0 || (typeof value === 'string' && accepted.includes(value))
  return among(sessionIds, event.sessionId) && among(subjects, event.metadata?.subject)
}

export function eraseSamples(db: Database, { orgId, sessionIds, subjects }: EraseCommand): number {
  const remove = db.query(
    `DELETE FROM rejected_sample WHERE org_id = ?1
     AND (${db.dialect.contains('excerpt', '?2')} OR ${db.dialect.contains('message', '?2')})`,
  )
  let samples = 0
  for (const value of [...sessionIds, ...subjects]) {
    const escaped = JSON.stringify(value).slice(1, -1)
    for (const text of new Set([value, escaped])) samples += remove.run(orgId, text).changes
  }
  return samples
}
