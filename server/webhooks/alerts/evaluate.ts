/** Looks at the rules that speak: one message goes out when an incident opens, and one when it is over. */
import { isoTime } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { chatText, linkOf, severityOf } from './alerts.ts'
import { newVendorMs, orgMemory, type OrgMemory } from './org-state.ts'
import type { ApiKey, Json, Store } from '../../../db/contract/store.ts'
import type { Endpoint, Incident, NewDelivery, Rule } from '../../../db/contract/webhooks.ts'
import type { Log } from '../../log.ts'
import type { Share } from './org-state.ts'

export interface EvaluateServices {
  store: Pick<Store, 'webhooks' | 'events' | 'keys'>
  log: Log
  /** Where people open the dashboard; null when the appliance was not told. */
  publicUrl: string | null
}

export function makeEvaluate(services: EvaluateServices): (now: number) => Promise<void> {
  const { store, log } = services
  const memories = new Map<string, OrgMemory>()

  async function lookAt(orgId: string, rules: Rule[], open: Incident[], now: number): Promise<void> {
    const memory = memories.get(orgId) ?? (await orgMemory(store.events, orgId, now))
    memories.set(orgId, memory)
    await memory.readOn(new Set(rules.map(({ kind }) => kind)), now)
    const view = await viewOf(store, orgId, rules, memory, now)
    const endpoints = new Map(
      (await store.webhooks.bareEndpoints(orgId)).map((endpoint) => [endpoint.id, endpoint]),
    )
    for (const rule of rules) {
      const endpoint = endpoints.get(rule.endpointId)
      if (endpoint === undefined) continue
      const mine = open.filter(({ ruleId }) => ruleId === rule.id)
      await speak(services, { rule, endpoint, found: findings(rule, view, now), open: mine, now })
    }
  }

  return async (now) => {
    const rules = await store.webhooks.rules(null)
    const open = rules.length === 0 ? [] : await store.webhooks.openIncidents(null)
    const byOrg = Map.groupBy(rules, ({ orgId }) => orgId)
    for (const orgId of memories.keys()) if (!byOrg.has(orgId)) memories.delete(orgId)
    for (const [orgId, ofOrg] of byOrg) {
      await lookAt(orgId, ofOrg, open, now).catch((error: unknown) => {
        log.warn('webhook_rules_failed', { orgId, message: String(error) })
      })
    }
  }
}

async function viewOf(
  store: EvaluateServices['store'],
  orgId: string,
  rules: Rule[],
  memory: OrgMemory,
  now: number,
): Promise<OrgView> {
  const asks = (kind: Rule['kind']) => rules.some((rule) => rule.kind === kind)
  return {
    newVendors: memory.newVendors,
    blocked: memory.rates.blocked(now),
    toolErrors: memory.rates.toolErrors(now),
    lastEventAtMs: asks('silence') ? await memory.lastEventAt() : null,
    exposedKeys: asks('key_leaked') ? exposed(await store.keys.list({ orgId })) : [],
  }
}

function exposed(keys: ApiKey[]): ApiKey[] {
  return keys.filter(({ exposedAtMs, revokedAtMs }) => exposedAtMs !== null && revokedAtMs === null)
}

const none = { acknowledgedAtMs: null, acknowledgedBy: null }

interface Look {
  rule: Rule
  endpoint: Endpoint
  found: Finding[]
  open: Incident[] // of the rule
  now: number
}

/** Opens what was found and is not open yet, resolves what is open and was not found any more. */
async function speak({ store, publicUrl }: EvaluateServices, look: Look): Promise<void> {
  const { rule, found, open, now } = look
  const times = { openedAtMs: now, resolvedAtMs: null, acknowledgedAtMs: null, acknowledgedBy: null }
  for (const { subject, data } of found) {
    if (open.some((incident) => incident.subject === subject)) continue
    const { id: ruleId, orgId } = rule
    const incident = { id: newId('inc'), orgId, ruleId, subject, ...times, data }
    const delivery = message('alert.opened', look, incident, publicUrl)
    // A vendor is new only once; the other kinds may happen again.
    await store.webhooks.openIncident({ incident, delivery, once: rule.kind === 'new_vendor' })
  }
  for (const incident of open) {
    if (found.some(({ subject }) => subject === incident.subject)) continue
    const isKnownAgain = rule.kind !== 'new_vendor' || now - incident.openedAtMs >= newVendorMs
    if (!isKnownAgain) continue
    const delivery = message('alert.resolved', look, { ...incident, resolvedAtMs: now }, publicUrl)
    await store.webhooks.resolveIncident({ id: incident.id, now, delivery })
  }
}

function message(
  type: 'alert.opened' | 'alert.resolved',
  { rule: { kind, orgId }, endpoint, now }: Look,
  incident: Incident,
  publicUrl: string | null,
): NewDelivery {
  const link = `${publicUrl ?? ''}${linkOf(incident)}`
  const data: { [member: string]: Json } = {
    rule: kind,
    ruleId: incident.ruleId,
    incidentId: incident.id,
    subject: incident.subject,
    severity: severityOf(incident),
    link,
    openedAt: isoTime(incident.openedAtMs),
    resolvedAt: incident.resolvedAtMs === null ? null : isoTime(incident.resolvedAtMs),
    ...incident.data,
  }
  const text = chatText(incident, incident.resolvedAtMs !== null, publicUrl === null ? null : link)
  const body = JSON.stringify({ type, timestamp: isoTime(now), text, data })
  return {
    id: newId('wh'),
    orgId,
    endpointId: endpoint.id,
    url: endpoint.url,
    lane: endpoint.id,
    body,
    scheduledAtMs: now,
  }
}

/** What each kind of rule finds in an organization as it is now; pure, so that the watch only has to compare. */
export interface OrgView {
  newVendors: { vendor: string; firstAtMs: number }[]
  blocked: Share // of the last hour
  toolErrors: Map<string, Share> // of the last hour, by tool
  lastEventAtMs: number | null // null: never
  exposedKeys: ApiKey[] // seen with a browser's headers and not revoked
}

/** Something that is the case; `subject` tells two findings of one rule apart. */
interface Finding {
  subject: string
  data: { [member: string]: Json }
}

export function findings(rule: Rule, view: OrgView, now: number): Finding[] {
  switch (rule.kind) {
    case 'new_vendor':
      return view.newVendors
        .filter(({ firstAtMs }) => firstAtMs >= rule.createdAtMs)
        .map(({ vendor, firstAtMs }) => ({
          subject: vendor,
          data: { vendor, firstSeenAt: isoTime(firstAtMs) },
        }))
    case 'blocked_share':
      return passes(rule, view.blocked) ? [{ subject: '', data: shareData(rule, view.blocked) }] : []
    case 'tool_error_rate':
      return [...view.toolErrors]
        .filter(([, share]) => passes(rule, share))
        .map(([tool, share]) => ({ subject: tool, data: { tool, ...shareData(rule, share) } }))
    case 'silence':
      return silence(rule, view, now)
    case 'key_leaked':
      return view.exposedKeys.map(({ id, label, prefix, exposedAtMs }) => ({
        subject: id,
        data: { keyId: id, label, prefix, exposedAt: isoTime(exposedAtMs ?? now) },
      }))
  }
}

function passes({ threshold, eventsMin }: Rule, { total, bad }: Share): boolean {
  return total >= (eventsMin ?? 1) && bad / total > (threshold ?? 1)
}

function shareData({ threshold }: Rule, { total, bad }: Share): { [member: string]: Json } {
  return { share: Math.round((bad / total) * 10_000) / 10_000, threshold, events: total, windowMinutes: 60 }
}

/** Before the first event nothing can have fallen silent; a rule hears nothing of the time before it was made. */
function silence({ minutes, createdAtMs }: Rule, { lastEventAtMs }: OrgView, now: number): Finding[] {
  if (lastEventAtMs === null || now - Math.max(lastEventAtMs, createdAtMs) < (minutes ?? 0) * 60_000)
    return []
  return [{ subject: '', data: { minutes, lastEventAt: isoTime(lastEventAtMs) } }]
}
