/** Webhook deliveries: scheduling, lists, replay, pruning. */
import { and, asc, desc, eq, lt, sql } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type {
  Attempt,
  Delivery,
  DeliveryPage,
  DeliveryQuery,
  NewDelivery,
  QueueState,
  StoredDelivery,
  WebhookStore,
} from '../../contract/webhooks.ts'
import { appendAudit } from '../audit/append.ts'
import { inSnapshot } from '../database.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import { attemptTable, deliveryTable as table } from './schema.ts'

type Command<K extends keyof WebhookStore> = Parameters<WebhookStore[K]>[0]
/** Bytes of all long texts of a delivery. */
const octets = sql<number>`octet_length(${table.body}) + octet_length(${table.url})
  + coalesce(octet_length(${table.lastError}), 0)`

type Row = typeof table.$inferSelect

/** Without drizzle, which would insert NULL as `seq`. */
export function insertDelivery(db: WriteContext['db'], delivery: NewDelivery, probe = false): void {
  const { id, orgId, endpointId, url, lane, body, scheduledAtMs } = delivery
  db.query(
    `INSERT INTO webhook_delivery (id, org_id, endpoint_id, url, lane, body, status, attempts, interruptions, probe,
       next_attempt_at_ms, scheduled_at_ms, pending_since_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', 0, 0, ?7, ?8, ?8, ?8)`,
  ).run(id, orgId, endpointId, url, lane, body, probe ? 1 : 0, scheduledAtMs)
}

export function scheduleDelivery({ db }: WriteContext, { delivery, audit }: Command<'schedule'>): boolean {
  const { id, endpointId } = delivery
  if (endpointId !== null && !endpointExists(db, endpointId))
    throw new StoreError('not_found', `there is no endpoint ${endpointId}`)
  if (db.query('SELECT 1 FROM webhook_delivery WHERE id = ?').get(id) !== null) return false
  insertDelivery(db, delivery)
  appendAudit(db, audit)
  return true
}

function deliveryOf(row: Row): Delivery {
  const { id, orgId, endpointId, url, body, status, attempts } = row
  const { nextAttemptAtMs, lastError, lastStatus, scheduledAtMs, deliveredAtMs } = row
  const deliveryFields = { id, orgId, endpointId, url, body, status, attempts }
  return { ...deliveryFields, nextAttemptAtMs, lastError, lastStatus, scheduledAtMs, deliveredAtMs }
}

interface LaneState {
  isPaused: number
  isHealthy: number
  leases: number
}

/** Reads each lane once, however many deliveries of a page wait in it. */
function queueReader({ db }: ReadContext): (row: Row) => QueueState | null {
  const lanes = new Map<string, LaneState>()

  function readLane(lane: string): LaneState {
    const state = db
      .query<LaneState, [string]>(
        `SELECT (SELECT count(*) FROM webhook_endpoint e WHERE e.id = ?1 AND e.status = 'paused') AS isPaused,
           (SELECT count(*) FROM webhook_endpoint e
            WHERE e.id = ?1 AND e.last_success_at_ms IS NOT NULL AND e.failing_since_ms IS NULL) AS isHealthy,
           (SELECT count(*) FROM webhook_delivery d WHERE d.lane = ?1 AND d.lease_id IS NOT NULL) AS leases`,
      )
      .get(lane)
    return state ?? { isPaused: 0, isHealthy: 0, leases: 0 }
  }

  return (row) => {
    if (row.status !== 'pending') return null
    const { lane, leaseId, leasedUntilMs } = row
    const state = lanes.get(lane) ?? readLane(lane)
    lanes.set(lane, state)
    return {
      lane,
      lease: leaseId === null ? null : { id: leaseId, untilMs: leasedUntilMs ?? 0 },
      isReplayed: row.attempts === 0 && hasCountedAttempt(db, row.seq),
      isProbe: row.probe,
      isEndpointPaused: state.isPaused > 0,
      isEndpointHealthy: state.isHealthy > 0,
      laneLeases: state.leases,
    }
  }
}

function hasCountedAttempt(db: ReadContext['db'], seq: number): boolean {
  return (
    db.query('SELECT 1 FROM webhook_attempt WHERE delivery_seq = ? AND counted = 1 LIMIT 1').get(seq) !== null
  )
}

type Found = { delivery: StoredDelivery; attempts: Attempt[] }

/** In one transaction, because an outcome recorded meanwhile changes the delivery and its log together. */
export function findDelivery(context: ReadContext, query: { orgId: string; id: string }): Found | null {
  return inSnapshot(context.db, () => readDelivery(context, query))
}

function readDelivery(context: ReadContext, { orgId, id }: { orgId: string; id: string }): Found | null {
  const { orm } = context
  const row = orm
    .select()
    .from(table)
    .where(and(eq(table.orgId, orgId), eq(table.id, id)))
    .get()
  if (row === undefined) return null
  const attempts = orm
    .select()
    .from(attemptTable)
    .where(eq(attemptTable.deliverySeq, row.seq))
    .orderBy(asc(attemptTable.number))
    .all()
    .map(({ deliverySeq: _seq, number: _number, ...attempt }) => attempt)
  return { delivery: { ...deliveryOf(row), queue: queueReader(context)(row) }, attempts }
}

export function listDeliveries(context: ReadContext, query: DeliveryQuery): DeliveryPage {
  const { orm } = context
  // The size of a body is read before the body, so that a page of large ones is never in memory at once.
  const sizes = orm
    .select({ seq: table.seq, bytes: octets })
    .from(table)
    .where(
      and(
        eq(table.orgId, query.orgId),
        query.status === null ? undefined : eq(table.status, query.status),
        query.endpointId === null ? undefined : eq(table.endpointId, query.endpointId),
        query.beforeSeq === null ? undefined : lt(table.seq, query.beforeSeq),
      ),
    )
    .orderBy(desc(table.seq))
    .limit(query.limit + 1)
    .all()
  const fitting = countFitting(sizes.slice(0, query.limit), query.bytesMax)
  const readQueue = queueReader(context)
  const deliveries = sizes
    .slice(0, fitting)
    .flatMap(({ seq }) => orm.select().from(table).where(eq(table.seq, seq)).all())
    .map((row) => ({ ...deliveryOf(row), queue: readQueue(row) }))
  const last = sizes[fitting - 1]
  return { deliveries, next: sizes.length > fitting && last !== undefined ? last.seq : null }
}

function countFitting(sizes: { bytes: number }[], bytesMax: number): number {
  let total = 0
  const overflowIndex = sizes.findIndex(({ bytes }) => (total += bytes) > bytesMax)
  return overflowIndex === -1 ? sizes.length : Math.max(overflowIndex, 1)
}

/** Every way to make a delivery pending again goes through here. */
const replayed = {
  status: 'pending',
  attempts: 0,
  interruptions: 0,
  deliveredAtMs: null,
  endedAtMs: null,
} as const

export function replayDelivery({ db, orm }: WriteContext, command: Command<'replay'>): void {
  const row = orm
    .select({ seq: table.seq, status: table.status, endpointId: table.endpointId })
    .from(table)
    .where(and(eq(table.orgId, command.orgId), eq(table.id, command.id)))
    .get()
  if (row === undefined) throw new StoreError('not_found', `there is no delivery ${command.id}`)
  if (row.status === 'pending') throw new StoreError('conflict', 'the delivery is already pending')
  if (row.endpointId !== null && !endpointExists(db, row.endpointId)) {
    throw new StoreError('conflict', 'the endpoint of the delivery was deleted')
  }
  orm
    .update(table)
    .set({ ...replayed, nextAttemptAtMs: command.now, pendingSinceMs: command.now })
    .where(eq(table.seq, row.seq))
    .run()
  appendAudit(db, command.audit)
}

export function replayDeadDeliveries({ db }: WriteContext, command: Command<'replayDead'>): number {
  const { changes } = db
    .query(
      `UPDATE webhook_delivery
       SET status = 'pending', attempts = 0, interruptions = 0, ended_at_ms = NULL, next_attempt_at_ms = ?1,
         pending_since_ms = ?1
       WHERE org_id = ?2 AND status = 'dead_letter' AND (CAST(?3 AS TEXT) IS NULL OR endpoint_id = ?3)
         AND (endpoint_id IS NULL OR endpoint_id IN (SELECT id FROM webhook_endpoint WHERE org_id = ?2))`,
    )
    .run(command.now, command.orgId, command.endpointId)
  if (changes === 0) return 0
  appendAudit(db, { ...command.audit, metadata: { ...command.audit.metadata, count: changes } })
  return changes
}

function endpointExists(db: WriteContext['db'], id: string): boolean {
  return db.query('SELECT 1 FROM webhook_endpoint WHERE id = ?').get(id) !== null
}

/** Ended deliveries and their attempts, and incidents, before the given time. */
export function pruneDeliveries({ db }: WriteContext, command: Command<'prune'>): number {
  const seqs = db
    .query<{ seq: number }, [number, number, number]>(
      `SELECT seq FROM webhook_delivery WHERE ended_at_ms IS NOT NULL AND (
         (status = 'delivered' AND ended_at_ms < ?1) OR (status = 'dead_letter' AND ended_at_ms < ?2)) LIMIT ?3`,
    )
    .all(command.deliveredBeforeMs, command.deadBeforeMs, command.limit)
  deleteDeliveries(db, seqs)
  db.query('DELETE FROM webhook_incident WHERE resolved_at_ms < ?').run(command.incidentsBeforeMs)
  return seqs.length
}

/** With their attempts. */
function deleteDeliveries(db: WriteContext['db'], seqs: readonly { seq: number }[]): void {
  for (const { seq } of seqs) {
    db.query('DELETE FROM webhook_attempt WHERE delivery_seq = ?').run(seq)
    db.query('DELETE FROM webhook_delivery WHERE seq = ?').run(seq)
  }
}

/**
 * Deletes a bounded number of deliveries of an organization that is being removed, pending ones included. Returns how
 * many.
 */
export function takeDeliveries({ db }: WriteContext, orgId: string, limit: number): number {
  const seqs = db
    .query<{ seq: number }, [string, number]>('SELECT seq FROM webhook_delivery WHERE org_id = ? LIMIT ?')
    .all(orgId, limit)
  deleteDeliveries(db, seqs)
  return seqs.length
}
