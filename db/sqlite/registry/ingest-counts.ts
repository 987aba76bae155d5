/** Ingest counts by hour and key, and samples of rejected requests, in SQLite. */
import {
  countHourMs,
  type IngestCount,
  type IngestCountStore,
  type NearMissCount,
} from '../../contract/ingest-counts.ts'
import { desc, eq } from 'drizzle-orm'
import { rejectedSample } from '../identity/schema.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import type { RejectedSample } from '../../contract/store.ts'

export function addIngestCounts(
  { db }: Pick<WriteContext, 'db'>,
  { counts, nearMisses = [], keptSinceMs }: Parameters<IngestCountStore['add']>[0],
): void {
  const add = db.query(
    `INSERT INTO ingest_hour (org_id, hour, key_id, requests, refused, accepted, deduped, rejected,
       ahead_max_ms, behind_min_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
     ON CONFLICT DO UPDATE SET requests = requests + ?4, refused = refused + ?5, accepted = accepted + ?6,
       deduped = deduped + ?7, rejected = rejected + ?8, ahead_max_ms = max(ahead_max_ms, ?9),
       behind_min_ms = CASE WHEN ?10 IS NULL THEN behind_min_ms
                            ELSE min(coalesce(behind_min_ms, ?10), ?10) END`,
  )
  for (const one of counts) {
    const hour = Math.floor(one.hourStartMs / countHourMs)
    const { orgId, keyId, requests, refused, accepted, deduped, rejected, aheadMaxMs, behindMinMs } = one
    add.run(orgId, hour, keyId, requests, refused, accepted, deduped, rejected, aheadMaxMs, behindMinMs)
  }
  const miss = db.query(
    `INSERT INTO ingest_near_miss (org_id, hour, key_id, path, known, events) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET events = events + excluded.events`,
  )
  for (const { orgId, hourStartMs, keyId, path, known, events } of nearMisses)
    miss.run(orgId, Math.floor(hourStartMs / countHourMs), keyId, path, known, events)
  for (const table of ['ingest_hour', 'ingest_near_miss']) {
    const trim = db.query(`DELETE FROM ${table} WHERE org_id = ? AND hour < ?`)
    for (const orgId of new Set([...counts, ...nearMisses].map((one) => one.orgId)))
      trim.run(orgId, Math.floor(keptSinceMs / countHourMs))
  }
}

const nearMissesMax = 200

export function listNearMisses(
  { db }: ReadContext,
  { orgId, sinceMs }: { orgId: string; sinceMs: number },
): Omit<NearMissCount, 'hourStartMs' | 'orgId'>[] {
  return db
    .query<Omit<NearMissCount, 'hourStartMs' | 'orgId'>, [string, number, number]>(
      `SELECT key_id AS keyId, path, known, sum(events) AS events FROM ingest_near_miss
       WHERE org_id = ? AND hour >= ? GROUP BY key_id, path, known ORDER BY sum(events) DESC, path LIMIT ?`,
    )
    .all(orgId, Math.floor(sinceMs / countHourMs), nearMissesMax)
}

export function listIngestCounts(
  { db }: ReadContext,
  { orgId, sinceMs }: { orgId: string; sinceMs: number },
): IngestCount[] {
  return db
    .query<Omit<IngestCount, 'hourStartMs'> & { hour: number }, [string, number]>(
      `SELECT org_id AS orgId, hour, key_id AS keyId, requests, refused, accepted, deduped, rejected,
         ahead_max_ms AS aheadMaxMs, behind_min_ms AS behindMinMs
       FROM ingest_hour WHERE org_id = ? AND hour >= ? ORDER BY hour, key_id`,
    )
    .all(orgId, Math.floor(sinceMs / countHourMs))
    .map(({ hour, ...one }) => ({ ...one, hourStartMs: hour * countHourMs }))
}

/** Samples of rejected requests: the newest 1,000 per organization. */
const samplesPerOrgMax = 1_000

export function addRejected({ db, orm }: WriteContext, samples: RejectedSample[]): void {
  for (const sample of samples) orm.insert(rejectedSample).values(sample).run()
  const trim = db.query(
    `DELETE FROM rejected_sample WHERE org_id = ?1 AND seq <= (
       SELECT seq FROM rejected_sample WHERE org_id = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ${samplesPerOrgMax})`,
  )
  for (const orgId of new Set(samples.map((sample) => sample.orgId))) trim.run(orgId)
}

/** Newest first. */
export function listRejected(
  { orm }: ReadContext,
  query: { orgId: string; limit: number },
): RejectedSample[] {
  return orm
    .select({
      orgId: rejectedSample.orgId,
      keyId: rejectedSample.keyId,
      atMs: rejectedSample.atMs,
      code: rejectedSample.code,
      message: rejectedSample.message,
      path: rejectedSample.path,
      excerpt: rejectedSample.excerpt,
    })
    .from(rejectedSample)
    .where(eq(rejectedSample.orgId, query.orgId))
    .orderBy(desc(rejectedSample.seq))
    .limit(query.limit)
    .all()
}
