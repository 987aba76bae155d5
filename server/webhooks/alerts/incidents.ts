/** Moves one alert from state to state: each step with its message and its audit entry, in one transaction. */
import { auditEntry } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { chatText, linkOf, severityOf } from './alerts.ts'
import type { Incident, Rule } from '../../../db/contract/alerts.ts'
import type { JobLease } from '../../../db/contract/nodes.ts'
import type { AuditEntry, Json, Store } from '../../../db/contract/store.ts'
import type { Endpoint, NewDelivery } from '../../../db/contract/webhooks.ts'

interface IncidentServices {
  store: Pick<Store, 'webhooks'>
  /** The address of the dashboard; null when it is not configured. */
  publicUrl: string | null
}

export interface Evaluated {
  rule: Rule
  endpoint: Endpoint
  open: Incident[] // of the rule
  now: number
  lease: JobLease | null // of the evaluation, where nodes share the database
}

/** Opens nothing while its rule is silenced. */
export async function openIncident(
  services: IncidentServices,
  evaluated: Evaluated,
  { once: isOnce, ...incidentFields }: Pick<Incident, 'subject' | 'data' | 'state'> & { once: boolean },
): Promise<void> {
  const { rule, now, lease } = evaluated
  if (isSilenced(rule, now)) return
  const incident: Incident = {
    id: newId('inc'),
    orgId: rule.orgId,
    ruleId: rule.id,
    ...incidentFields,
    openedAtMs: now,
    clearSinceMs: null,
    resolvedAtMs: null,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
  }
  const isPending = incidentFields.state === 'pending'
  const isNotified = !isPending || rule.definition?.notifyPending === true
  const type = isPending ? 'alert.pending' : 'alert.opened'
  await services.store.webhooks.openIncident({
    incident,
    delivery: isNotified ? message(type, services, evaluated, incident) : null,
    once: isOnce,
    lease,
    audit: entry(isPending ? 'pending' : 'opened', evaluated, incident),
  })
}

export async function fireIncident(
  services: IncidentServices,
  evaluated: Evaluated,
  incident: Incident,
  data: Incident['data'],
): Promise<void> {
  const { now, lease } = evaluated
  const fired: Incident = { ...incident, state: 'firing', openedAtMs: now, data }
  await services.store.webhooks.fireIncident({
    id: incident.id,
    now,
    data,
    lease,
    delivery: message('alert.opened', services, evaluated, fired),
    audit: entry('opened', evaluated, fired),
  })
}

/** A pending alert that clears was no alert: its message says so only to those who received the first. */
export async function resolveIncident(
  services: IncidentServices,
  evaluated: Evaluated,
  incident: Incident,
): Promise<void> {
  const { rule, now, lease } = evaluated
  const isNotified = incident.state === 'firing' || rule.definition?.notifyPending === true
  const resolved = { ...incident, resolvedAtMs: now }
  await services.store.webhooks.resolveIncident({
    id: incident.id,
    now,
    lease,
    delivery: isNotified ? message('alert.resolved', services, evaluated, resolved) : null,
    audit: entry('resolved', evaluated, incident),
  })
}

export function isSilenced({ silencedUntilMs }: Pick<Rule, 'silencedUntilMs'>, now: number): boolean {
  return silencedUntilMs !== null && now < silencedUntilMs
}

function entry(
  verb: 'pending' | 'opened' | 'resolved',
  { rule, now }: Evaluated,
  { id, subject, state }: Incident,
): AuditEntry {
  const { kind, name, orgId, id: ruleId } = rule
  const metadata = { label: name || kind, ruleId, subject, state }
  return auditEntry(
    { orgId, actor: 'system' },
    { action: `webhook_alert.${verb}`, target: id, metadata },
    now,
  )
}

function message(
  type: 'alert.pending' | 'alert.opened' | 'alert.resolved',
  { publicUrl }: IncidentServices,
  { rule, endpoint, now }: Evaluated,
  incident: Incident,
): NewDelivery {
  const link = `${publicUrl ?? ''}${linkOf(incident)}`
  const data: { [name: string]: Json } = {
    rule: rule.kind,
    ruleId: incident.ruleId,
    incidentId: incident.id,
    subject: incident.subject,
    severity: severityOf(incident),
    link,
    openedAt: isoTime(incident.openedAtMs),
    resolvedAt: incident.resolvedAtMs === null ? null : isoTime(incident.resolvedAtMs),
    ...(rule.definition !== null && { state: incident.resolvedAtMs === null ? incident.state : 'resolved' }),
    ...incident.data,
  }
  const prefix = type === 'alert.resolved' ? 'Resolved: ' : type === 'alert.pending' ? 'Pending: ' : ''
  const text = chatText(incident, prefix, publicUrl === null ? null : link)
  const body = JSON.stringify({ type, timestamp: isoTime(now), text, data })
  return {
    id: newId('wh'),
    orgId: rule.orgId,
    endpointId: endpoint.id,
    url: endpoint.url,
    lane: endpoint.id,
    body,
    scheduledAtMs: now,
  }
}
