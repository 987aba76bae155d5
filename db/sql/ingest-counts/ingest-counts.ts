/** Ingest counts by hour and key, samples of rejected requests, and signatures that were used. */
import {
  countHourMs,
  mergeCount,
  mergeScope,
  otherScopes,
  scopesPerHourMax,
  type IngestCount,
  type IngestCountStore,
  type NearMissCount,
  type ScopeCount,
  type ScopeHour,
} from '../../contract/ingest-counts.ts'
import { desc, eq } from 'drizzle-orm'
import { rejectedSample } from '../identity/schema.ts'
import type { SignatureStore } from '../../contract/signatures.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import type { Database } from '../database.ts'
import type { AppendOutcome } from '../threads/protocol.ts'
import type { EventBatch, RejectedSample } from '../../contract/store.ts'

export function addIngestCounts(
  { db }: Pick<WriteContext, 'db'>,
  { counts, nearMisses = [], scopes = [], keptSinceMs }: Parameters<IngestCountStore['add']>[0],
): void {
  const add = db.query(
    `INSERT INTO ingest_hour (org_id, hour, key_id, requests, refused, accepted, deduped, rejected,
       ahead_max_ms, behind_min_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, hour, key_id) DO UPDATE SET
       requests = ingest_hour.requests + excluded.requests, refused = ingest_hour.refused + excluded.refused,
       accepted = ingest_hour.accepted + excluded.accepted, deduped = ingest_hour.deduped + excluded.deduped,
       rejected = ingest_hour.rejected + excluded.rejected,
       ahead_max_ms = CASE WHEN ingest_hour.ahead_max_ms > excluded.ahead_max_ms
                           THEN ingest_hour.ahead_max_ms ELSE excluded.ahead_max_ms END,
       behind_min_ms = CASE WHEN excluded.behind_min_ms IS NULL
                              OR ingest_hour.behind_min_ms < excluded.behind_min_ms
                            THEN ingest_hour.behind_min_ms ELSE excluded.behind_min_ms END`,
  )
  const miss = db.query(
    `INSERT INTO ingest_near_miss (org_id, hour, key_id, path, known, events) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, hour, key_id, path)
     DO UPDATE SET events = ingest_near_miss.events + excluded.events`,
  )
  // One organization after the other, in the order of their numbers, and rows in one order, as appends of other nodes
  // do, which count too. Otherwise the two could wait for each other.
  for (const orgId of byNumber(db, orgsOf([...counts, ...nearMisses, ...scopes]))) {
    for (const hourCount of counts.filter((count) => count.orgId === orgId).sort(inOrder)) {
      const { keyId, requests, refused, accepted, deduped, rejected, aheadMaxMs, behindMinMs } = hourCount
      const hour = Math.floor(hourCount.hourStartMs / countHourMs)
      add.run(orgId, hour, keyId, requests, refused, accepted, deduped, rejected, aheadMaxMs, behindMinMs)
    }
    for (const { hourStartMs, keyId, path, known: knownField, events } of nearMisses.filter(
      (count) => count.orgId === orgId,
    ))
      miss.run(orgId, Math.floor(hourStartMs / countHourMs), keyId, path, knownField, events)
    const ofOrg = scopes.filter((count) => count.orgId === orgId)
    if (ofOrg.length > 0) addScopes(db, orgId, ofOrg)
    trim(db, orgId, Math.floor(keptSinceMs / countHourMs))
  }
}

/** The hour before which nothing is left, by organization. */
const trimmed = new WeakMap<Database, Map<string, number>>()
const trimmedMax = 10_000

/** Once an hour: each group of appends comes here. What a rolled back transaction trimmed is trimmed the next hour. */
function trim(db: Database, orgId: string, beforeHour: number): void {
  const trimmedHours = trimmed.get(db) ?? new Map<string, number>()
  if (trimmedHours.get(orgId) === beforeHour) return
  for (const table of ['ingest_hour', 'ingest_near_miss', 'ingest_scope'])
    db.query(`DELETE FROM ${table} WHERE org_id = ? AND hour < ?`).run(orgId, beforeHour)
  if (trimmedHours.size >= trimmedMax) trimmedHours.clear()
  trimmed.set(db, trimmedHours.set(orgId, beforeHour))
}

/** Those of several hours follow each other; names in one order, as where nodes append. */
function addScopes(db: Database, orgId: string, scopes: readonly ScopeHour[]): void {
  const add = db.query(
    `INSERT INTO ingest_scope (org_id, hour, scope, mapped, model_calls, left_out, refused)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, hour, scope) DO UPDATE SET
       mapped = ingest_scope.mapped + excluded.mapped,
       model_calls = ingest_scope.model_calls + excluded.model_calls,
       left_out = ingest_scope.left_out + excluded.left_out,
       refused = ingest_scope.refused + excluded.refused`,
  )
  const names = db.query<{ scope: string }, [string, number]>(
    'SELECT scope FROM ingest_scope WHERE org_id = ? AND hour = ?',
  )
  for (const hour of new Set(scopes.map(({ hourStartMs }) => Math.floor(hourStartMs / countHourMs)))) {
    const knownScopes = new Set(names.all(orgId, hour).map(({ scope }) => scope))
    for (const scopeHour of scopes.toSorted((a, b) => (a.scope < b.scope ? -1 : 1))) {
      if (Math.floor(scopeHour.hourStartMs / countHourMs) !== hour) continue
      const scope =
        knownScopes.has(scopeHour.scope) || knownScopes.size < scopesPerHourMax
          ? scopeHour.scope
          : otherScopes
      knownScopes.add(scope)
      add.run(
        orgId,
        hour,
        scope,
        scopeHour.mapped,
        scopeHour.modelCalls,
        scopeHour.leftOut,
        scopeHour.refused,
      )
    }
  }
}

const scopesListedMax = 200

export function listScopes(
  { db }: ReadContext,
  { orgId, sinceMs }: { orgId: string; sinceMs: number },
): ScopeCount[] {
  return db
    .query<ScopeCount, [string, number, number]>(
      `SELECT scope, sum(mapped) AS mapped, sum(model_calls) AS modelCalls, sum(left_out) AS leftOut,
         sum(refused) AS refused
       FROM ingest_scope WHERE org_id = ? AND hour >= ? GROUP BY scope
       ORDER BY sum(mapped + model_calls + left_out + refused) DESC, scope LIMIT ?`,
    )
    .all(orgId, Math.floor(sinceMs / countHourMs), scopesListedMax)
}

/** Organizations without a number have no event. */
function byNumber(db: Database, orgIds: string[]): string[] {
  if (orgIds.length < 2) return orgIds
  const rows = db
    .query<{ orgId: string; num: number }, [string]>(
      `SELECT org_id AS orgId, num FROM event_org WHERE org_id IN ${db.dialect.textsOf('?')}`,
    )
    .all(JSON.stringify(orgIds))
  const nums = new Map(rows.map(({ orgId, num }) => [orgId, num]))
  return orgIds.toSorted((a, b) => (nums.get(a) ?? Infinity) - (nums.get(b) ?? Infinity) || (a < b ? -1 : 1))
}

/** What a group of batches adds to the counts, those of failed batches excepted. */
export function requestCounts(
  batches: readonly EventBatch[],
  outcomes: readonly AppendOutcome[],
): { counts: IngestCount[]; scopes: ScopeHour[]; keptSinceMs: number } {
  const counts = new Map<string, IngestCount>()
  const scopes = new Map<string, ScopeHour>()
  let keptSinceMs = 0
  batches.forEach(({ orgId, keyId, receivedAtMs, count }, index) => {
    const outcome = outcomes[index]
    if (count === undefined || outcome === undefined || 'kind' in outcome) return
    const { accepted, deduped, access } = outcome
    const { aheadMaxMs, behindMinMs } = count
    keptSinceMs = count.keptSinceMs
    const hourStartMs = receivedAtMs - (receivedAtMs % countHourMs)
    if (count.scopes !== undefined)
      for (const scopeCount of count.scopes) mergeScope(scopes, { ...scopeCount, orgId, hourStartMs })
    mergeCount(counts, {
      orgId,
      keyId,
      hourStartMs,
      requests: 1,
      refused: accepted + deduped === 0 && access === undefined ? 1 : 0,
      accepted,
      deduped,
      rejected: count.rejected + outcome.rejected.length,
      aheadMaxMs,
      behindMinMs,
    })
  })
  return { counts: [...counts.values()].sort(inOrder), scopes: [...scopes.values()], keptSinceMs }
}

function inOrder(a: IngestCount, b: IngestCount): number {
  if (a.orgId !== b.orgId) return a.orgId < b.orgId ? -1 : 1
  return a.hourStartMs - b.hourStartMs || (a.keyId < b.keyId ? -1 : 1)
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
    .map(({ hour, ...counts }) => ({ ...counts, hourStartMs: hour * countHourMs }))
}

/** Samples of rejected requests: the newest 1,000 per organization. */
const samplesPerOrgMax = 1_000

/** Without drizzle, which would insert NULL as `seq`. */
export function addRejected({ db }: WriteContext, samples: RejectedSample[]): void {
  const add = db.query(
    `INSERT INTO rejected_sample (org_id, key_id, at_ms, code, message, path, excerpt)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const { orgId, keyId, atMs, code, message, path, excerpt } of samples)
    add.run(orgId, keyId, atMs, code, message, path, excerpt)
  const trim = db.query(
    `DELETE FROM rejected_sample WHERE org_id = ?1 AND seq <= (
       SELECT seq FROM rejected_sample WHERE org_id = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ${samplesPerOrgMax})`,
  )
  // In one order, so that nodes that add at once cannot wait for each other.
  for (const orgId of orgsOf(samples)) trim.run(orgId)
}

function orgsOf(rows: readonly { orgId: string }[]): string[] {
  return [...new Set(rows.map(({ orgId }) => orgId))].toSorted()
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

/**
 * Of signatures that were accepted there is a row for each, and one for the request that used it. Inserts a row unless
 * it is there. Of two nodes that insert the same one, the later waits for the earlier.
 */
function insertSignature(db: Database, hash: string, expiresAtMs: number): boolean {
  return (
    db
      .query('INSERT INTO signature_use (hash, expires_at_ms) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING')
      .run(Buffer.from(hash, 'hex'), expiresAtMs).changes > 0
  )
}

function hasSignature(db: Database, hash: string): boolean {
  return db.query('SELECT 1 FROM signature_use WHERE hash = ?').get(Buffer.from(hash, 'hex')) !== null
}

/** In the order of the hashes, so that nodes which use the same ones do not wait for each other in a circle. */
export function useSignatures(
  { db }: WriteContext,
  { uses }: Parameters<SignatureStore['use']>[0],
): boolean[] {
  const accepted = uses.map(() => false)
  const order = uses.map((_, index) => index).sort((a, b) => (uses[a]!.hash < uses[b]!.hash ? -1 : 1))
  for (const index of order) {
    const { hash, owner, expiresAtMs } = uses[index]!
    const isNew = insertSignature(db, hash, expiresAtMs)
    if (isNew) insertSignature(db, owner, expiresAtMs)
    accepted[index] = isNew || hasSignature(db, owner)
  }
  return accepted
}

/** Rows per step: some 20 ms. */
const signaturesPerStep = 4_096

export function pruneSignatures(
  { db }: WriteContext,
  { now }: Parameters<SignatureStore['prune']>[0],
): number {
  return db
    .query(
      `DELETE FROM signature_use WHERE hash IN
         (SELECT hash FROM signature_use WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${signaturesPerStep})`,
    )
    .run(now).changes
}
