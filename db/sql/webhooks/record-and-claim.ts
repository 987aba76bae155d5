/** Records outcomes and leases the deliveries that are due next, in one transaction. */
import type {
  Attempt,
  Claim,
  ClaimRequest,
  Delivery,
  Outcome,
  WebhookStore,
} from '../../contract/webhooks.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import { shareSlots, type DueLane } from '../../rules/webhook-share.ts'

/** Our own faults are logged too, but a long outage must not fill a delivery's log. */
const uncountedMax = 20

/** Databases that this thread has claimed from. Earlier leases of an only writer belong to a process that ended. */
const claimedFrom = new WeakSet<WriteContext['db']>()

export function recordAndClaim(
  context: WriteContext,
  command: Parameters<WebhookStore['recordAndClaim']>[0],
): Claim[] {
  for (const outcome of command.outcomes) settle(context, outcome, command.now)
  for (const { deliveryId, leaseId } of command.released) {
    context.db
      .query(
        `UPDATE webhook_delivery SET lease_id = NULL, leased_until_ms = NULL, leased_at_ms = NULL
         WHERE id = ? AND lease_id = ?`,
      )
      .run(deliveryId, leaseId)
  }
  if (command.claim === null) return []
  endLostLeases(context, command.claim, command.now)
  return claimDue(context, command.claim, command.now)
}

// Deliveries pass here by the thousand, so this file uses SQL: a statement that drizzle builds for each call costs
// several times as much as its work.

function settle(context: WriteContext, outcome: Outcome, now: number): void {
  const { db } = context
  const { attempt, next } = outcome
  const isPending = next.status === 'pending'
  const [row] = db
    .query<{ seq: number; endpointId: string | null }, SettleValues>(
      `UPDATE webhook_delivery SET lease_id = NULL, leased_until_ms = NULL, leased_at_ms = NULL, interruptions = 0,
         probe = 0, status = ?3, attempts = attempts + ?4, next_attempt_at_ms = ?5, last_error = ?6, last_status = ?7,
         delivered_at_ms = ?8, ended_at_ms = ?9
       WHERE id = ?1 AND lease_id = ?2 RETURNING seq, endpoint_id AS endpointId`,
    )
    .all(
      outcome.deliveryId,
      outcome.leaseId,
      next.status,
      attempt.counted ? 1 : 0,
      isPending ? next.atMs : null,
      attempt.error,
      attempt.status,
      next.status === 'delivered' ? now : null,
      isPending ? null : now,
    )
  if (row === undefined) return // the lease was lost, and its new holder decides
  logAttempt(db, row.seq, attempt)
  if (row.endpointId !== null) noteEndpoint(context, row.endpointId, outcome, now)
}

type SettleValues = [
  id: string,
  leaseId: string,
  status: string,
  counted: number,
  nextAtMs: number | null,
  error: string | null,
  httpStatus: number | null,
  deliveredAtMs: number | null,
  endedAtMs: number | null,
]

function noteEndpoint({ db }: WriteContext, id: string, outcome: Outcome, now: number): void {
  if (outcome.next.status === 'delivered') {
    db.query(
      'UPDATE webhook_endpoint SET last_success_at_ms = ?2, failing_since_ms = NULL WHERE id = ?1',
    ).run(id, now)
  } else if (outcome.attempt.counted) {
    db.query(
      'UPDATE webhook_endpoint SET failing_since_ms = ?2 WHERE id = ?1 AND failing_since_ms IS NULL',
    ).run(id, now)
  }
  if (outcome.pause !== undefined) {
    const { reason, failingSinceMs, nextProbeAtMs, audit } = outcome.pause
    const { changes } = db
      .query(
        `UPDATE webhook_endpoint
         SET status = 'paused', paused_reason = ?2, paused_at_ms = ?3, next_probe_at_ms = ?4
         WHERE id = ?1 AND status = 'active' AND (?2 <> 'failing' OR failing_since_ms = ?5)`,
      )
      .run(id, reason, now, nextProbeAtMs, failingSinceMs ?? 0)
    if (changes > 0) appendAudit(db, audit)
  }
  if (outcome.resume !== undefined) {
    const { changes } = db
      .query(
        `UPDATE webhook_endpoint
         SET status = 'active', paused_reason = NULL, paused_at_ms = NULL, next_probe_at_ms = NULL
         WHERE id = ? AND paused_reason = 'failing'`,
      )
      .run(id)
    if (changes > 0) appendAudit(db, outcome.resume)
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
       ORDER BY number DESC LIMIT 1 OFFSET ${uncountedMax})`,
  ).run(seq)
}

/** An expired lease: its holder ended or hung. The delivery is due again, and the receiver is not blamed. */
function endLostLeases({ db, isOnlyWriter }: WriteContext, request: ClaimRequest, now: number): void {
  const isFirst = isOnlyWriter && !claimedFrom.has(db)
  const lost = db
    .query<LostLease, [number]>(
      `SELECT d.seq, d.attempts, d.interruptions, d.leased_at_ms AS leasedAtMs,
         e.retry_waits_ms AS retryWaits
       FROM webhook_delivery d LEFT JOIN webhook_endpoint e ON e.id = d.endpoint_id
       WHERE d.lease_id IS NOT NULL AND d.leased_until_ms <= ?`,
    )
    .all(isFirst ? Number.MAX_SAFE_INTEGER : now)
  claimedFrom.add(db)
  for (const { seq, attempts, interruptions, leasedAtMs, retryWaits } of lost) {
    const counted = interruptions >= request.interruptionsMax
    const attemptsMax = retryWaits === null ? request.attemptsMax : waitsOf(retryWaits).length + 1
    const isDead = counted && attempts + 1 >= attemptsMax
    const error = 'interrupted: the appliance stopped before the outcome was known; it may have arrived'
    logAttempt(db, seq, {
      atMs: leasedAtMs,
      status: null,
      durationMs: 0,
      responseExcerpt: '',
      error,
      counted,
    })
    db.query(
      `UPDATE webhook_delivery SET lease_id = NULL, leased_until_ms = NULL, leased_at_ms = NULL,
         interruptions = interruptions + 1, attempts = attempts + ?2, status = ?3,
         next_attempt_at_ms = CASE WHEN ?4 > next_attempt_at_ms THEN next_attempt_at_ms ELSE ?4 END,
         ended_at_ms = ?5, last_error = ?6, last_status = NULL
       WHERE seq = ?1`,
    ).run(
      seq,
      counted ? 1 : 0,
      isDead ? 'dead_letter' : 'pending',
      isDead ? null : now,
      isDead ? now : null,
      error,
    )
  }
}

/** A pause for failing compares `failing_since_ms`: a decision from before the jump finds another value. */
export function shiftTimes({ db }: WriteContext, { byMs }: { byMs: number }): void {
  const shiftMs = Math.round(byMs)
  db.query(
    `UPDATE webhook_delivery SET next_attempt_at_ms = next_attempt_at_ms + ?1,
       pending_since_ms = pending_since_ms + ?1, leased_until_ms = leased_until_ms + ?1
     WHERE status = 'pending'`,
  ).run(shiftMs)
  db.query(
    `UPDATE webhook_endpoint SET failing_since_ms = failing_since_ms + ?1,
       next_probe_at_ms = next_probe_at_ms + ?1
     WHERE failing_since_ms IS NOT NULL OR next_probe_at_ms IS NOT NULL`,
  ).run(shiftMs)
}

const waitsOf = (json: string) => JSON.parse(json) as number[]

interface LostLease {
  seq: number
  attempts: number
  interruptions: number
  leasedAtMs: number
  retryWaits: string | null // JSON; null: the limit of the request
}

/** Lanes by the due time of their first delivery, each with its share of the free slots. */
function claimDue({ db }: WriteContext, request: ClaimRequest, now: number): Claim[] {
  const lanes = openLanes(db, request)
  const isCrowded = lanes.length * request.perLaneMax > request.limit
  const granted = shareSlots(lanes, request.limit, request.share)
  const claims: Claim[] = []
  const signers = new Map<string, Signer | null>()
  for (const { lane, leased, probe } of lanes) {
    const dueDeliveries = leaseSome(db, request, now, { lane, probe, count: granted.get(lane) ?? 0 })
    const aheadMax = isCrowded || probe ? 0 : (request.ahead[lane] ?? 0)
    const count = aheadMax - Math.max(0, leased - request.perLaneMax)
    const ahead = leaseSome(db, request, now, { lane, probe, count, uninterrupted: true })
    for (const delivery of dueDeliveries)
      claims.push(claimOf(db, delivery, { request, isAhead: false, now, signers }))
    for (const delivery of ahead) claims.push(claimOf(db, delivery, { request, isAhead: true, now, signers }))
  }
  return claims
}

interface Some {
  lane: string
  probe: boolean
  count: number
  uninterrupted?: boolean
}

function leaseSome(db: WriteContext['db'], request: ClaimRequest, now: number, selection: Some): Leased[] {
  if (selection.count <= 0) return []
  return db
    .query<Leased, [string, number, number, string, number, number, number, number]>(
      `UPDATE webhook_delivery SET lease_id = ?1, leased_until_ms = ?2, leased_at_ms = ?3 WHERE seq IN (
         SELECT seq FROM webhook_delivery WHERE status = 'pending' AND lease_id IS NULL AND lane = ?4
           AND CASE WHEN ?5 = 1 THEN probe = 1 ELSE next_attempt_at_ms <= ?6 END AND interruptions <= ?7
         ORDER BY next_attempt_at_ms, seq LIMIT ?8)
       RETURNING ${leasedColumns}`,
    )
    .all(
      request.leaseId,
      now + request.leaseMs,
      now,
      selection.lane,
      selection.probe ? 1 : 0,
      request.dueMs,
      selection.uninterrupted === true ? 0 : Number.MAX_SAFE_INTEGER,
      selection.count,
    )
    .sort((a, b) => a.nextAttemptAtMs - b.nextAttemptAtMs || a.seq - b.seq)
}

const leasedColumns = `seq, lane, id, org_id AS orgId, endpoint_id AS endpointId, url, body, status, attempts,
  next_attempt_at_ms AS nextAttemptAtMs, last_error AS lastError, last_status AS lastStatus,
  scheduled_at_ms AS scheduledAtMs, delivered_at_ms AS deliveredAtMs, pending_since_ms AS pendingSinceMs, probe`

interface Leased extends Delivery {
  seq: number
  lane: string
  nextAttemptAtMs: number
  pendingSinceMs: number
  probe: number
}

interface Signer {
  encryptedSecret: string
  previousEncryptedSecret: string | null
  previousUntilMs: number | null
  failingSinceMs: number | null
  retryWaits: string | null // JSON
}

interface How {
  request: ClaimRequest
  isAhead: boolean
  now: number
  /** By organization and endpoint. Each is read once per call. */
  signers: Map<string, Signer | null>
}

function claimOf(db: WriteContext['db'], leased: Leased, { request, isAhead, now, signers }: How): Claim {
  const { leaseId } = request
  const { seq: _seq, lane, pendingSinceMs, probe, ...delivery } = leased
  const id = `${delivery.orgId} ${delivery.endpointId ?? ''}`
  const cachedSigner = signers.get(id)
  const signer = cachedSigner === undefined ? signerOf(db, delivery) : cachedSigner
  signers.set(id, signer)
  const encryptedSecrets = signer === null ? [] : [signer.encryptedSecret]
  if (signer?.previousEncryptedSecret && (signer.previousUntilMs ?? 0) > now) {
    encryptedSecrets.push(signer.previousEncryptedSecret)
  }
  const failingSinceMs = signer?.failingSinceMs ?? null
  const retryWaitsMs = signer?.retryWaits ? waitsOf(signer.retryWaits) : null
  const claimFields = { leaseId, lane, isAhead, delivery, pendingSinceMs, retryWaitsMs }
  return { ...claimFields, encryptedSecrets, probe: probe === 1, failingSinceMs }
}

function signerOf(db: WriteContext['db'], { orgId, endpointId }: Delivery): Signer | null {
  const columns = `sealed_secret AS encryptedSecret, previous_sealed_secret AS previousEncryptedSecret,
    previous_until_ms AS previousUntilMs`
  if (endpointId !== null) {
    const ofEndpoint = db.query<Signer, [string]>(
      `SELECT ${columns}, failing_since_ms AS failingSinceMs, retry_waits_ms AS retryWaits
       FROM webhook_endpoint WHERE id = ?`,
    )
    return ofEndpoint.get(endpointId)
  }
  const ofOrg = db.query<Signer, [string]>(
    `SELECT ${columns}, NULL AS failingSinceMs, NULL AS retryWaits FROM webhook_org_secret WHERE org_id = ?`,
  )
  return ofOrg.get(orgId)
}

interface OpenLane extends DueLane {
  leased: number
  probe: boolean // paused for failing: only its probe may be sent
}

interface LaneRow {
  lane: string
  orgId: string
  dueAtMs: number
  due: number
  leased: number
  isProbed: number
  isPaused: number
  isHealthy: number
}

function openLanes(db: WriteContext['db'], { dueMs, perLaneMax, share }: ClaimRequest): OpenLane[] {
  // Jumps from lane to lane along the index, so that thousands of pending deliveries in one cost no more than one.
  const rows = db
    .query<LaneRow, [number, number]>(
      `WITH RECURSIVE lanes (lane) AS (
         SELECT min(lane) FROM webhook_delivery WHERE status = 'pending' AND lease_id IS NULL
         UNION ALL
         SELECT (SELECT min(d.lane) FROM webhook_delivery d
                 WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane > lanes.lane)
         FROM lanes WHERE lane IS NOT NULL
       ), due (lane, at, probed) AS (
         SELECT lane, (SELECT min(d.next_attempt_at_ms) FROM webhook_delivery d
                       WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane = lanes.lane),
           CASE WHEN EXISTS (SELECT 1 FROM webhook_delivery d WHERE d.probe = 1 AND d.lane = lanes.lane)
           THEN 1 ELSE 0 END
         FROM lanes WHERE lane IS NOT NULL
       )
       SELECT due.lane, due.at AS dueAtMs, due.probed AS isProbed,
         CASE WHEN e.status = 'paused' THEN 1 ELSE 0 END AS isPaused,
         CASE WHEN e.last_success_at_ms IS NOT NULL AND e.failing_since_ms IS NULL THEN 1 ELSE 0 END AS isHealthy,
         (SELECT d.org_id FROM webhook_delivery d
          WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane = due.lane
          ORDER BY d.next_attempt_at_ms, d.seq LIMIT 1) AS orgId,
         (SELECT count(*) FROM (
            SELECT 1 FROM webhook_delivery d WHERE d.status = 'pending' AND d.lease_id IS NULL
              AND d.lane = due.lane AND d.next_attempt_at_ms <= ?1 LIMIT ?2) AS ready) AS due,
         (SELECT count(*) FROM webhook_delivery d WHERE d.lane = due.lane AND d.lease_id IS NOT NULL) AS leased
       FROM due LEFT JOIN webhook_endpoint e ON e.id = due.lane
       WHERE due.at <= ?1 OR due.probed = 1 ORDER BY due.at, due.lane`,
    )
    .all(dueMs, perLaneMax)
  return rows
    .filter(({ isPaused, isProbed }) => isPaused === 0 || isProbed === 1)
    .map(({ lane, orgId, dueAtMs, due, leased, isPaused, isHealthy }) => {
      const probe = isPaused === 1
      const pace = share.paces[lane] ?? (isHealthy === 1 ? 'quick' : 'unknown')
      const wants = Math.max(0, probe ? 1 - leased : Math.min(due, perLaneMax - leased))
      return { lane, orgId, pace, dueAtMs, wants, leased, probe }
    })
}

/** Along the same index: reads the first delivery after this time of each lane that may be sent. */
export function nextDueAt({ db }: ReadContext, afterMs: number): number | null {
  const row = db
    .query<{ at: number | null }, [number]>(
      `WITH RECURSIVE lanes (lane) AS (
         SELECT min(lane) FROM webhook_delivery WHERE status = 'pending' AND lease_id IS NULL
         UNION ALL
         SELECT (SELECT min(d.lane) FROM webhook_delivery d
                 WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane > lanes.lane)
         FROM lanes WHERE lane IS NOT NULL
       )
       SELECT min((SELECT min(d.next_attempt_at_ms) FROM webhook_delivery d
                   WHERE d.status = 'pending' AND d.lease_id IS NULL AND d.lane = lanes.lane
                     AND d.next_attempt_at_ms > ?1)) AS at
       FROM lanes LEFT JOIN webhook_endpoint e ON e.id = lanes.lane
       WHERE lanes.lane IS NOT NULL AND coalesce(e.status, 'active') = 'active'`,
    )
    .get(afterMs)
  return row?.at ?? null
}
