/** Alert rules and incidents. An incident and its message are one transaction. */
import { and, count, desc, eq, isNotNull, isNull } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { Incident, IncidentQuery, Rule } from '../../contract/alerts.ts'
import type { JobLease } from '../../contract/nodes.ts'
import type { WebhookStore } from '../../contract/webhooks.ts'
import { appendAudit } from '../audit/append.ts'
import { requireLease } from '../nodes/nodes.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import { insertDelivery } from './deliveries.ts'
import { endpointTable, incidentTable as incident, ruleTable as rule } from './schema.ts'

type Command<K extends keyof WebhookStore> = Parameters<WebhookStore[K]>[0]

export function createRule({ db, orm }: WriteContext, command: Command<'createRule'>): void {
  const { orgId, endpointId } = command.rule
  const endpoint = orm
    .select({ id: endpointTable.id })
    .from(endpointTable)
    .where(and(eq(endpointTable.orgId, orgId), eq(endpointTable.id, endpointId)))
    .get()
  if (endpoint === undefined) throw new StoreError('not_found', `there is no endpoint ${endpointId}`)
  const { n = 0 } = orm.select({ n: count() }).from(rule).where(eq(rule.orgId, orgId)).get() ?? {}
  if (n >= command.rulesMax)
    throw new StoreError('conflict', `${orgId} has ${command.rulesMax} alert rules, the maximum`)
  orm.insert(rule).values(command.rule).run()
  appendAudit(db, command.audit)
}

export function listRules({ orm }: ReadContext, orgId: string | null): Rule[] {
  const condition = orgId === null ? undefined : eq(rule.orgId, orgId)
  return orm.select().from(rule).where(condition).orderBy(rule.createdAtMs, rule.id).all()
}

export function changeRule({ db, orm }: WriteContext, command: Command<'changeRule'>): void {
  const changed = orm
    .update(rule)
    .set(command.change)
    .where(and(eq(rule.orgId, command.orgId), eq(rule.id, command.ruleId)))
    .returning({ id: rule.id })
    .all()
  if (changed.length === 0) throw new StoreError('not_found', `there is no rule ${command.ruleId}`)
  appendAudit(db, command.audit)
}

/** Its open incidents end with it, without a message. */
export function deleteRule({ db, orm }: WriteContext, command: Command<'deleteRule'>): void {
  const deletedRows = orm
    .delete(rule)
    .where(and(eq(rule.orgId, command.orgId), eq(rule.id, command.ruleId)))
    .returning({ id: rule.id })
    .all()
  if (deletedRows.length === 0) throw new StoreError('not_found', `there is no rule ${command.ruleId}`)
  orm
    .delete(incident)
    .where(and(eq(incident.ruleId, command.ruleId), eq(incident.state, 'pending')))
    .run()
  orm
    .update(incident)
    .set({ resolvedAtMs: command.audit.occurredAtMs })
    .where(and(eq(incident.ruleId, command.ruleId), isNull(incident.resolvedAtMs)))
    .run()
  appendAudit(db, command.audit)
}

export function openIncidents({ orm }: ReadContext, orgId: string | null): Incident[] {
  const open = isNull(incident.resolvedAtMs)
  return orm
    .select()
    .from(incident)
    .where(orgId === null ? open : and(eq(incident.orgId, orgId), open))
    .all()
}

export function listIncidents({ orm }: ReadContext, { orgId, isOpen, limit }: IncidentQuery): Incident[] {
  const end = incident.resolvedAtMs
  const state = isOpen === null ? undefined : isOpen ? isNull(end) : isNotNull(end)
  return orm
    .select()
    .from(incident)
    .where(and(eq(incident.orgId, orgId), state))
    .orderBy(desc(isNull(end)), desc(incident.openedAtMs), desc(incident.id))
    .limit(limit)
    .all()
}

/** A node that was suspended evaluates what it read before. */
function requireEvaluation(db: WriteContext['db'], { lease }: { lease?: JobLease | null }): void {
  if (lease) requireLease(db, lease)
}

export function openIncident({ db, orm }: WriteContext, command: Command<'openIncident'>): boolean {
  requireEvaluation(db, command)
  const { ruleId, subject } = command.incident
  const ofSubject = and(eq(incident.ruleId, ruleId), eq(incident.subject, subject))
  const existingIncident = orm
    .select({ id: incident.id })
    .from(incident)
    .where(command.once ? ofSubject : and(ofSubject, isNull(incident.resolvedAtMs)))
    .get()
  const existing = orm.select({ id: rule.id }).from(rule).where(eq(rule.id, ruleId)).get()
  if (existingIncident !== undefined || existing === undefined) return false
  orm.insert(incident).values(command.incident).run()
  if (command.delivery !== null) insertDelivery(db, command.delivery)
  appendAudit(db, command.audit)
  return true
}

export function fireIncident({ db, orm }: WriteContext, command: Command<'fireIncident'>): boolean {
  requireEvaluation(db, command)
  const isPending = and(
    eq(incident.id, command.id),
    eq(incident.state, 'pending'),
    isNull(incident.resolvedAtMs),
  )
  const fired = orm
    .update(incident)
    .set({ state: 'firing', openedAtMs: command.now, clearSinceMs: null, data: command.data })
    .where(isPending)
    .returning({ id: incident.id })
    .all()
  if (fired.length === 0) return false
  insertDelivery(db, command.delivery)
  appendAudit(db, command.audit)
  return true
}

export function noteIncident({ db, orm }: WriteContext, command: Command<'noteIncident'>): void {
  requireEvaluation(db, command)
  const { id, clearSinceMs } = command
  orm
    .update(incident)
    .set({ clearSinceMs })
    .where(and(eq(incident.id, id), isNull(incident.resolvedAtMs)))
    .run()
}

export function resolveIncident({ db, orm }: WriteContext, command: Command<'resolveIncident'>): boolean {
  requireEvaluation(db, command)
  const isOpen = and(eq(incident.id, command.id), isNull(incident.resolvedAtMs))
  const pending = orm
    .delete(incident)
    .where(and(isOpen, eq(incident.state, 'pending')))
    .returning({ id: incident.id })
    .all()
  const resolved =
    pending.length > 0
      ? pending
      : orm
          .update(incident)
          .set({ resolvedAtMs: command.now })
          .where(isOpen)
          .returning({ id: incident.id })
          .all()
  if (resolved.length === 0) return false
  if (command.delivery !== null) insertDelivery(db, command.delivery)
  appendAudit(db, command.audit)
  return true
}

export function acknowledgeIncident(
  { db, orm }: WriteContext,
  command: Command<'acknowledgeIncident'>,
): Incident {
  const { id, orgId, now, by: acknowledgedBy, audit } = command
  const condition = and(eq(incident.orgId, orgId), eq(incident.id, id))
  const storedIncident = orm.select().from(incident).where(condition).get()
  if (storedIncident === undefined) throw new StoreError('not_found', `there is no alert ${id}`)
  if (storedIncident.acknowledgedAtMs !== null) return storedIncident
  if (storedIncident.state === 'pending') throw new StoreError('conflict', `the alert ${id} is pending`)
  if (storedIncident.resolvedAtMs !== null) throw new StoreError('conflict', `the alert ${id} is resolved`)
  const acknowledged = { acknowledgedAtMs: now, acknowledgedBy: acknowledgedBy }
  orm.update(incident).set(acknowledged).where(condition).run()
  appendAudit(db, audit)
  return { ...storedIncident, ...acknowledged }
}
