/** Webhook endpoints and signing secrets, and the transaction that advances an endpoint's position. */
import { and, eq, ne } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { appendAudit } from '../audit/append.ts'
import { insertDelivery } from './deliveries.ts'
import { deliveryTable, endpointTable as table, orgSecretTable, ruleTable } from './schema.ts'
import type { Endpoint, EndpointCounts, OrgSecret, WebhookStore } from '../../contract/webhooks.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

type Command<K extends keyof WebhookStore> = Parameters<WebhookStore[K]>[0]
type Change = Partial<typeof table.$inferInsert>

export function createEndpoint({ db, orm }: WriteContext, command: Command<'createEndpoint'>): void {
  requireOwnFile(orm, command.endpoint.orgId, command.endpoint.url)
  orm.insert(table).values(command.endpoint).run()
  appendAudit(db, command.audit)
}

/** Two organizations that append to one file would read each other's events there. */
function requireOwnFile(orm: WriteContext['orm'], orgId: string, url: string): void {
  if (!url.startsWith('file:')) return
  const foreign = orm
    .select({ id: table.id })
    .from(table)
    .where(and(eq(table.url, url), ne(table.orgId, orgId)))
    .get()
  if (foreign !== undefined) throw new StoreError('conflict', `${url} belongs to another organization`)
}

export function listEndpoints(
  context: ReadContext,
  orgId: string,
): { endpoint: Endpoint; counts: EndpointCounts }[] {
  return bareEndpoints(context, orgId).map((endpoint) => ({
    endpoint,
    counts: countsOf(context.db, endpoint.id),
  }))
}

export function bareEndpoints({ orm }: ReadContext, orgId: string): Endpoint[] {
  return orm.select().from(table).where(eq(table.orgId, orgId)).orderBy(table.createdAtMs, table.id).all()
}

export function findEndpoint(
  { db, orm }: ReadContext,
  { orgId, id }: { orgId: string; id: string },
): { endpoint: Endpoint; counts: EndpointCounts } | null {
  const endpoint = orm
    .select()
    .from(table)
    .where(and(eq(table.orgId, orgId), eq(table.id, id)))
    .get()
  return endpoint === undefined ? null : { endpoint, counts: countsOf(db, id) }
}

function countsOf(db: ReadContext['db'], endpointId: string): EndpointCounts {
  const rows = db
    .query<{ status: string; n: number }, [string]>(
      'SELECT status, count(*) AS n FROM webhook_delivery WHERE endpoint_id = ? GROUP BY status',
    )
    .all(endpointId)
  const count = (status: string) => rows.find((row) => row.status === status)?.n ?? 0
  return { pending: count('pending'), delivered: count('delivered'), deadLetter: count('dead_letter') }
}

/** Counts pending deliveries only: delivered ones stay for a week and may be a million rows. */
function pendingOf(db: ReadContext['db'], endpointId: string): number {
  const row = db
    .query<{ n: number }, [string]>(
      "SELECT count(*) AS n FROM webhook_delivery WHERE endpoint_id = ? AND status = 'pending'",
    )
    .get(endpointId)
  return row?.n ?? 0
}

export function activeEndpoints({ orm }: ReadContext): Endpoint[] {
  return orm.select().from(table).where(eq(table.status, 'active')).orderBy(table.id).all()
}

/** Changes an endpoint of the organization and appends the audit entry; `not_found` when it has no such endpoint. */
function change(
  { db, orm }: WriteContext,
  command: Command<'pauseEndpoint'>,
  set: (endpoint: Endpoint) => Change | null, // null: no change and no audit entry
): Endpoint {
  const condition = and(eq(table.orgId, command.orgId), eq(table.id, command.endpointId))
  const storedEndpoint = orm.select().from(table).where(condition).get()
  if (storedEndpoint === undefined)
    throw new StoreError('not_found', `there is no endpoint ${command.endpointId}`)
  const changed = set(storedEndpoint)
  if (changed === null) return storedEndpoint
  if (Object.keys(changed).length > 0) orm.update(table).set(changed).where(condition).run()
  appendAudit(db, command.audit)
  return { ...storedEndpoint, ...changed } as Endpoint
}

export function changeEndpoint(context: WriteContext, command: Command<'changeEndpoint'>): Endpoint {
  const { change: set } = command
  if (set.url !== undefined) requireOwnFile(context.orm, command.orgId, set.url)
  const endpoint = change(context, command, () => set)
  if (set.url !== undefined) {
    // Pending deliveries go to the endpoint's new address: people change an address because the old one is wrong.
    context.orm
      .update(deliveryTable)
      .set({ url: set.url })
      .where(and(eq(deliveryTable.endpointId, endpoint.id), eq(deliveryTable.status, 'pending')))
      .run()
  }
  return endpoint
}

export function pauseEndpoint(context: WriteContext, command: Command<'pauseEndpoint'>): Endpoint {
  return change(context, command, (endpoint) =>
    endpoint.pausedReason === 'asked'
      ? null
      : { status: 'paused', pausedReason: 'asked', pausedAtMs: command.now, nextProbeAtMs: null },
  )
}

export function resumeEndpoint(context: WriteContext, command: Command<'resumeEndpoint'>): Endpoint {
  const started = { pausedReason: null, pausedAtMs: null, failingSinceMs: null, nextProbeAtMs: null }
  return change(context, command, (endpoint) =>
    endpoint.status === 'active' ? null : { status: 'active', ...started },
  )
}

const noRange = { replayUntil: null, resumePosition: null }

export function moveEndpoint(context: WriteContext, command: Command<'moveEndpoint'>): Endpoint {
  const { position, until } = command
  return change(context, command, ({ position: currentPosition, resumePosition }) => {
    const resume = resumePosition ?? currentPosition
    const isRange = until !== null && until < resume
    const range = isRange ? { replayUntil: until, resumePosition: resume } : noRange
    return { position, missed: 0, ...range }
  })
}

export function rotateEndpointSecret(
  context: WriteContext,
  command: Command<'rotateEndpointSecret'>,
): Endpoint {
  return change(context, command, (endpoint) => ({
    encryptedSecret: command.encryptedSecret,
    previousEncryptedSecret: endpoint.encryptedSecret,
    previousUntilMs: command.previousUntilMs,
  }))
}

export function deleteEndpoint(context: WriteContext, command: Command<'deleteEndpoint'>): void {
  change(context, command, () => ({}))
  const { orm, db } = context
  db.query(
    `UPDATE webhook_delivery SET status = 'dead_letter', next_attempt_at_ms = NULL, ended_at_ms = ?2, probe = 0,
       lease_id = NULL, leased_until_ms = NULL, leased_at_ms = NULL,
       last_error = 'endpoint_deleted: the endpoint was deleted'
     WHERE endpoint_id = ?1 AND status = 'pending'`,
  ).run(command.endpointId, command.now)
  db.query(
    `UPDATE webhook_incident SET resolved_at_ms = ?2 WHERE resolved_at_ms IS NULL
       AND rule_id IN (SELECT id FROM webhook_rule WHERE endpoint_id = ?1)`,
  ).run(command.endpointId, command.now)
  orm.delete(ruleTable).where(eq(ruleTable.endpointId, command.endpointId)).run()
  orm.delete(table).where(eq(table.id, command.endpointId)).run()
}

export function advanceEndpoint(
  { db, orm }: WriteContext,
  command: Command<'advance'>,
): Awaited<ReturnType<WebhookStore['advance']>> {
  const { endpointId, from, position, delivery } = command
  const endpoint = orm.select().from(table).where(eq(table.id, endpointId)).get()
  if (endpoint === undefined || endpoint.status !== 'active') return 'stale'
  if (endpoint.position !== from.position || endpoint.sequence !== from.sequence) return 'stale'
  if (delivery !== null && pendingOf(db, endpointId) >= command.pendingMax) return 'full'
  const sequence = endpoint.sequence + (delivery === null ? 0 : 1)
  const missed = endpoint.missed + command.missed
  const { replayUntil, resumePosition } = endpoint
  const isThrough = replayUntil !== null && resumePosition !== null && position >= replayUntil
  const moved = isThrough ? { position: resumePosition, ...noRange } : { position }
  orm
    .update(table)
    .set({ ...moved, sequence, missed })
    .where(eq(table.id, endpointId))
    .run()
  if (delivery !== null) insertDelivery(db, delivery)
  return 'advanced'
}

/** The oldest pending delivery of the paused endpoint is the probe; without any, a new message. */
export function startProbes({ db, orm }: WriteContext, command: Command<'startProbes'>): number {
  const { now, nextProbeAtMs, body, ids } = command
  const due = orm
    .select()
    .from(table)
    .where(eq(table.pausedReason, 'failing'))
    .all()
    .filter((endpoint) => (endpoint.nextProbeAtMs ?? 0) <= now)
    .slice(0, ids.length)
  due.forEach((endpoint, index) => {
    orm.update(table).set({ nextProbeAtMs }).where(eq(table.id, endpoint.id)).run()
    const { changes } = db
      .query(
        `UPDATE webhook_delivery SET probe = 1 WHERE seq = (
           SELECT min(seq) FROM webhook_delivery WHERE endpoint_id = ?1 AND status = 'pending' AND lease_id IS NULL)`,
      )
      .run(endpoint.id)
    const { id: endpointId, orgId, url } = endpoint
    if (changes > 0) return
    const probe = { id: ids[index]!, orgId, endpointId, url, lane: endpointId, body, scheduledAtMs: now }
    insertDelivery(db, probe, true)
  })
  return due.length
}

/** Each organization has one signing secret, encrypted. The previous one also signs until its overlap ends. */
export function orgSecret({ db, orm }: WriteContext, command: Command<'orgSecret'>): OrgSecret {
  const { orgId, encryptedIfNone, audit } = command
  const insertedRows = orm
    .insert(orgSecretTable)
    .values({ orgId, encryptedSecret: encryptedIfNone })
    .onConflictDoNothing()
    .returning({ orgId: orgSecretTable.orgId })
    .all()
  if (insertedRows.length > 0) appendAudit(db, audit)
  return requireSecret(orm, orgId)
}

export function findOrgSecret({ orm }: ReadContext, orgId: string): OrgSecret | null {
  return findSecret(orm, orgId)
}

export function rotateOrgSecret({ db, orm }: WriteContext, command: Command<'rotateOrgSecret'>): void {
  const { orgId, encryptedSecret, previousUntilMs, audit } = command
  const oldSecret = requireSecret(orm, orgId)
  orm
    .update(orgSecretTable)
    .set({ encryptedSecret, previousEncryptedSecret: oldSecret.encryptedSecret, previousUntilMs })
    .where(eq(orgSecretTable.orgId, orgId))
    .run()
  appendAudit(db, audit)
}

function requireSecret(orm: WriteContext['orm'], orgId: string): OrgSecret {
  const secret = findSecret(orm, orgId)
  if (secret === null) throw new StoreError('not_found', `${orgId} has no signing secret`)
  return secret
}

function findSecret(orm: WriteContext['orm'], orgId: string): OrgSecret | null {
  const row = orm.select().from(orgSecretTable).where(eq(orgSecretTable.orgId, orgId)).get()
  if (row === undefined) return null
  const { encryptedSecret, previousEncryptedSecret, previousUntilMs } = row
  return { encryptedSecret, previousEncryptedSecret, previousUntilMs }
}
