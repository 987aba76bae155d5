/** Samples of what ingest refused: the newest 1,000 of each organization. */
import { desc, eq } from 'drizzle-orm'
import type { RejectedSample } from '../../contract/store.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { rejectedSample } from '../identity/schema.ts'

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
