/** The heart of sending: outcomes are recorded and what is due next is leased, in one transaction. */
import { and, asc, eq, isNull, lte } from 'drizzle-orm'
import type { Attempt, Claim, ClaimRequest, Outcome, WebhookStore } from '../../webhook-store.ts'
import { appendAudit } from '../audit.ts'
import type { WriteContext } from '../contexts.ts'
import { deliveryOf } from './deliveries.ts'
import { deliveryTable as table, endpointTable, orgSecretTable } from './schema.ts'

/** Our own faults are logged too, but a long outage must not fill the log of a delivery. */
const uncountedKept = 20

type Row = typeof table.$inferSelect

/** Databases that this thread has taken a turn on: leases from before are those of a process that ended. */
const turned = new WeakSet<WriteContext['db']>()

export function turn(context: WriteContext, command: Parameters<WebhookStore['turn']>[0]): Claim[] {
  for (const outcome of command.outcomes) settle(context, outcome, command.now)
  if (command.claim === null) return []
  endLostLeases(context, command.claim, command.now)
  return claimDue(context, command.claim, command.now)
}

function settle(context: WriteContext, outcome: Outcome, now: number): void {
  const { db, orm } = context
  const row = orm
    .select()
    .from(table)
    .where(and(eq(table.id, outcome.deliveryId), eq(table.leaseId, outcome.leaseId)))
    .get()
  if (row === undefined) return // the lease was lost, and whoever has it now decides
  const { attempt, next } = outcome
  logAttempt(db, row.seq, attempt)
  orm
    .update(table)
    .set({
      ...noLease,
      status: next.status,
      attempts: row.attempts + (attempt.counted ? 1 : 0),
      interruptions: 0,
      probe: false,
      nextAttemptAtMs: next.status === 'pending' ? next.atMs : null,
      lastError: attempt.error,
      lastStatus: attempt.status,
      deliveredAtMs: next.status === 'delivered' ? now : null,
      endedAtMs: next.status === 'pending' ? null : now,
    })
    .where(eq(table.seq, row.seq))
    .run()
  if (row.endpointId !== null) noteEndpoint(context, row.endpointId, outcome, now)
}

const noLease = { leaseId: null, leasedUntilMs: null, leasedAtMs: null }

function noteEndpoint({ db, orm }: WriteContext, id: string, outcome: Outcome, now: number): void {
  if (outcome.next.status === 'delivered') {
    orm
      .update(endpointTable)
      .set({ lastSuccessAtMs: now, failingSinceMs: null })
      .where(eq(endpointTable.id, id))
      .run()
  } else if (outcome.attempt.counted) {
    const isFirst = and(eq(endpointTable.id, id), isNull(endpointTable.failingSinceMs))
    orm.update(endpointTable).set({ failingSinceMs: now }).where(isFirst).run()
  }
  if (outcome.pause !== undefined) {
    const { reason, nextProbeAtMs, audit } = outcome.pause
    const paused = orm
      .update(endpointTable)
      .set({ status: 'paused', pausedReason: reason, pausedAtMs: now, nextProbeAtMs })
      .where(and(eq(endpointTable.id, id), eq(endpointTable.status, 'active')))
      .returning({ id: endpointTable.id })
      .all()
    if (paused.length > 0) appendAudit(db, audit)
  }
  if (outcome.resume !== undefined) {
    const resumed = orm
      .update(endpointTable)
      .set({ status: 'active', pausedReason: null, pausedAtMs: null, nextProbeAtMs: null })
      .where(and(eq(endpointTable.id, id), eq(endpointTable.pausedReason, 'failing')))
      .returning({ id: endpointTable.id })
      .all()
    if (resumed.length > 0) appendAudit(db, outcome.resume)
  }
}

function logAttempt(db: WriteContext['db'], seq: number, attempt: Attempt): void {
  db.query(
    `INSERT INTO webhook_attempt (delivery_seq, number, at_ms, status, duration_ms, response_excerpt, error, counted)
     VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM webhook_attempt WHERE delivery_seq = ?1),
       ?2, ?3, ?4, ?5, ?6, ?7)`,
  ).run(
    seq,
    attempt.atMs,
    attempt.status,
    attempt.durationMs,
    attempt.responseExcerpt,
    attempt.error,
    attempt.counted ? 1 : 0,
  )
  if (attempt.counted) return
  db.query(
    `DELETE FROM webhook_attempt WHERE delivery_seq = ?1 AND counted = 0 AND number <= (
       SELECT number FROM webhook_attempt WHERE delivery_seq = ?1 AND counted = 0
       ORDER BY number DESC LIMIT 1 OFFSET ${uncountedKept})`,
  ).run(seq)
}

/** A lease that ran out: its holder ended or hung. The delivery is due again; the receiver is not blamed. */
function endLostLeases({ db, orm }: WriteContext, request: ClaimRequest, now: number): void {
  const lost = db
    .query<{ seq: number }, [number]>(
      'SELECT seq FROM webhook_delivery WHERE lease_id IS NOT NULL AND leased_until_ms <= ?',
    )
    .all(turned.has(db) ? now : Number.MAX_SAFE_INTEGER)
  turned.add(db)
  for (const { seq } of lost) {
    const row = orm.select().from(table).where(eq(table.seq, seq)).get()
    if (row === undefined) continue
    const counted = row.interruptions >= request.interruptionsMax
    const attempts = row.attempts + (counted ? 1 : 0)
    const isDead = attempts >= request.attemptsMax
    const atMs = row.leasedAtMs ?? now
    const error = 'interrupted: the appliance stopped before the outcome was known; it may have arrived'
    logAttempt(db, seq, { atMs, status: null, durationMs: 0, responseExcerpt: '', error, counted })
    orm
      .update(table)
      .set({
        ...noLease,
        status: isDead ? 'dead_letter' : 'pending',
        attempts,
        interruptions: row.interruptions + 1,
        nextAttemptAtMs: isDead ? null : Math.min(row.nextAttemptAtMs ?? now, now),
        endedAtMs: isDead ? now : null,
        lastError: error,
        lastStatus: null,
      })
      .where(eq(table.seq, seq))
      .run()
  }
}

/** Lanes by how long their first delivery has been due; each gets what its limit leaves. */
function claimDue(context: WriteContext, request: ClaimRequest, now: number): Claim[] {
  const claims: Claim[] = []
  for (const { lane, free, probe } of openLanes(context.db, request)) {
    const room = Math.min(probe ? 1 : free, request.limit - claims.length)
    if (room <= 0) continue
    const due = context.orm
      .select()
      .from(table)
      .where(
        and(
          eq(table.status, 'pending'),
          isNull(table.leaseId),
          eq(table.lane, lane),
          probe ? eq(table.probe, true) : lte(table.nextAttemptAtMs, request.dueMs),
        ),
      )
      .orderBy(asc(table.nextAttemptAtMs), asc(table.seq))
      .limit(room)
      .all()
    for (const row of due) claims.push(lease(context, row, request, now))
    if (claims.length >= request.limit) break
  }
  return claims
}

interface OpenLane {
  lane: string
  free: number
  probe: boolean
}

function openLanes(db: WriteContext['db'], request: ClaimRequest): OpenLane[] {
  // Jumps from lane to lane along the index, so that thousands of deliveries waiting in one cost no more than one.
  const lanes = db
    .query<{ lane: string; paused: number; probe: number; leased: number }, [number]>(
      `WITH RECURSIVE lanes (lane) AS (
         SELECT min(lane) FROM webhook_delivery WHERE status = 'pending' AND lease_id IS NULL
         UNION ALL
         SELECT (SELECT min(d.lane) FROM webhook_delivery d
                 WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane > lanes.lane)
         FROM lanes WHERE lane IS NOT NULL
       ), due (lane, at) AS (
         SELECT lane, (SELECT min(d.next_attempt_at_ms) FROM webhook_delivery d
                       WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane = lanes.lane)
         FROM lanes WHERE lane IS NOT NULL
       )
       SELECT due.lane, coalesce(e.status = 'paused', 0) AS paused,
         EXISTS (SELECT 1 FROM webhook_delivery d WHERE d.probe = 1 AND d.lane = due.lane) AS probe,
         (SELECT count(*) FROM webhook_delivery d WHERE d.lane = due.lane AND d.lease_id IS NOT NULL) AS leased
       FROM due LEFT JOIN webhook_endpoint e ON e.id = due.lane
       WHERE due.at <= ?1 OR probe = 1 ORDER BY due.at, due.lane`,
    )
    .all(request.dueMs)
  return lanes
    .filter(({ paused, probe }) => paused === 0 || probe === 1)
    .map(({ lane, paused, leased }) => ({
      lane,
      free: request.perLaneMax - leased,
      probe: paused === 1,
    }))
    .filter(({ free }) => free > 0)
}

function lease({ orm }: WriteContext, row: Row, request: ClaimRequest, now: number): Claim {
  const { leaseId, leaseMs } = request
  orm
    .update(table)
    .set({ leaseId, leasedUntilMs: now + leaseMs, leasedAtMs: now })
    .where(eq(table.seq, row.seq))
    .run()
  const endpoint =
    row.endpointId === null
      ? undefined
      : orm.select().from(endpointTable).where(eq(endpointTable.id, row.endpointId)).get()
  const holder =
    row.endpointId === null
      ? orm.select().from(orgSecretTable).where(eq(orgSecretTable.orgId, row.orgId)).get()
      : endpoint
  const sealedSecrets = holder === undefined ? [] : [holder.sealedSecret]
  if (holder?.previousSealedSecret && (holder.previousUntilMs ?? 0) > now) {
    sealedSecrets.push(holder.previousSealedSecret)
  }
  return {
    leaseId,
    delivery: deliveryOf(row),
    pendingSinceMs: row.pendingSinceMs,
    sealedSecrets,
    probe: row.probe,
    failingSinceMs: endpoint?.failingSinceMs ?? null,
  }
}
