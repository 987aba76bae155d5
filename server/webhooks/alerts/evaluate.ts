/** Evaluates alert rules: sends one message when an incident opens and one when it is resolved. */
import { isoTime } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { chatText, linkOf, severityOf } from './alerts.ts'
import { newVendorMs, orgCounters, type OrgCounters, type Share } from './counters.ts'
import type { ApiKey, Json, Store } from '../../../db/contract/store.ts'
import type { Endpoint, Incident, NewDelivery, Rule } from '../../../db/contract/webhooks.ts'
import type { Log } from '../../log.ts'

export interface EvaluateServices {
  store: Pick<Store, 'webhooks' | 'events' | 'keys'>
  log: Log
  /** The address of the dashboard; null when it is not configured. */
  publicUrl: string | null
}

export function makeEvaluate(services: EvaluateServices): (now: number) => Promise<void> {
  const { store, log } = services
  const counters = new Map<string, OrgCounters>()

  async function evaluateOrg(orgId: string, rules: Rule[], open: Incident[], now: number): Promise<void> {
    const own = counters.get(orgId) ?? (await orgCounters(store.events, orgId, now))
    counters.set(orgId, own)
    await own.update(new Set(rules.map(({ kind }) => kind)), now)
    const state = await stateOf(store, orgId, rules, own, now)
    const endpoints = new Map(
      (await store.webhooks.bareEndpoints(orgId)).map((endpoint) => [endpoint.id, endpoint]),
    )
    for (const rule of rules) {
      const endpoint = endpoints.get(rule.endpointId)
      if (endpoint === undefined) continue
      const incidents = open.filter(({ ruleId }) => ruleId === rule.id)
      await updateIncidents(services, {
        rule,
        endpoint,
        findings: evaluateRule(rule, state, now),
        open: incidents,
        now,
      })
    }
  }

  return async (now) => {
    const rules = await store.webhooks.rules(null)
    const open = rules.length === 0 ? [] : await store.webhooks.openIncidents(null)
    const byOrg = Map.groupBy(rules, ({ orgId }) => orgId)
    for (const orgId of counters.keys()) if (!byOrg.has(orgId)) counters.delete(orgId)
    for (const [orgId, ofOrg] of byOrg) {
      await evaluateOrg(orgId, ofOrg, open, now).catch((error: unknown) => {
        log.warn('webhook_rules_failed', { orgId, message: String(error) })
      })
    }
  }
}

async function stateOf(
  store: EvaluateServices['store'],
  orgId: string,
  rules: Rule[],
  counters: OrgCounters,
  now: number,
): Promise<OrgState> {
  const has = (kind: Rule['kind']) => rules.some((rule) => rule.kind === kind)
  return {
    newVendors: counters.newVendors,
    blocked: counters.rates.blocked(now),
    toolErrors: counters.rates.toolErrors(now),
    lastEventAtMs: has('silence') ? await counters.lastEventAt() : null,
    exposedKeys: has('key_leaked') ? exposedKeys(await store.keys.list({ orgId })) : [],
  }
}

function exposedKeys(keys: ApiKey[]): ApiKey[] {
  return keys.filter(({ exposedAtMs, revokedAtMs }) => exposedAtMs !== null && revokedAtMs === null)
}

const none = { acknowledgedAtMs: null, acknowledgedBy: null }

interface Evaluated {
  rule: Rule
  endpoint: Endpoint
  findings: Finding[]
  open: Incident[] // of the rule
  now: number
}

/** Opens an incident for each new finding and resolves incidents without one. */
async function updateIncidents({ store, publicUrl }: EvaluateServices, evaluated: Evaluated): Promise<void> {
  const { rule, findings, open, now } = evaluated
  const times = { openedAtMs: now, resolvedAtMs: null, acknowledgedAtMs: null, acknowledgedBy: null }
  for (const { subject, data } of findings) {
    if (open.some((incident) => incident.subject === subject)) continue
    const { id: ruleId, orgId } = rule
    const incident = { id: newId('inc'), orgId, ruleId, subject, ...times, data }
    const delivery = message('alert.opened', evaluated, incident, publicUrl)
    // A vendor is new only once; other incidents may open again.
    await store.webhooks.openIncident({ incident, delivery, once: rule.kind === 'new_vendor' })
  }
  for (const incident of open) {
    if (findings.some(({ subject }) => subject === incident.subject)) continue
    const isOver = rule.kind !== 'new_vendor' || now - incident.openedAtMs >= newVendorMs
    if (!isOver) continue
    const delivery = message('alert.resolved', evaluated, { ...incident, resolvedAtMs: now }, publicUrl)
    await store.webhooks.resolveIncident({ id: incident.id, now, delivery })
  }
}

function message(
  type: 'alert.opened' | 'alert.resolved',
  { rule: { kind, orgId }, endpoint, now }: Evaluated,
  incident: Incident,
  publicUrl: string | null,
): NewDelivery {
  const link = `${publicUrl ?? ''}${linkOf(incident)}`
  const data: { [name: string]: Json } = {
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

/** What the rules of an organization are evaluated against. */
export interface OrgState {
  newVendors: { vendor: string; firstAtMs: number }[]
  blocked: Share // of the last hour
  toolErrors: Map<string, Share> // of the last hour, by tool
  lastEventAtMs: number | null // null: never
  exposedKeys: ApiKey[] // seen with a browser's headers and not revoked
}

/** A condition that holds; `subject` distinguishes the findings of one rule. */
interface Finding {
  subject: string
  data: { [name: string]: Json }
}

/** Pure: the findings of one rule in the current state. */
export function evaluateRule(rule: Rule, state: OrgState, now: number): Finding[] {
  switch (rule.kind) {
    case 'new_vendor':
      return state.newVendors
        .filter(({ firstAtMs }) => firstAtMs >= rule.createdAtMs)
        .map(({ vendor, firstAtMs }) => ({
          subject: vendor,
          data: { vendor, firstSeenAt: isoTime(firstAtMs) },
        }))
    case 'blocked_share':
      return passes(rule, state.blocked) ? [{ subject: '', data: shareData(rule, state.blocked) }] : []
    case 'tool_error_rate':
      return [...state.toolErrors]
        .filter(([, share]) => passes(rule, share))
        .map(([tool, share]) => ({ subject: tool, data: { tool, ...shareData(rule, share) } }))
    case 'silence':
      return silence(rule, state, now)
    case 'key_leaked':
      return state.exposedKeys.map(({ id, label, prefix, exposedAtMs }) => ({
        subject: id,
        data: { keyId: id, label, prefix, exposedAt: isoTime(exposedAtMs ?? now) },
      }))
  }
}

function passes({ threshold, eventsMin }: Rule, { total, bad }: Share): boolean {
  return total >= (eventsMin ?? 1) && bad / total > (threshold ?? 1)
}

function shareData({ threshold }: Rule, { total, bad }: Share): { [name: string]: Json } {
  return { share: Math.round((bad / total) * 10_000) / 10_000, threshold, events: total, windowMinutes: 60 }
}

/** There is no silence before the first event, and none before the rule was created. */
function silence({ minutes, createdAtMs }: Rule, { lastEventAtMs }: OrgState, now: number): Finding[] {
  if (lastEventAtMs === null || now - Math.max(lastEventAtMs, createdAtMs) < (minutes ?? 0) * 60_000)
    return []
  return [{ subject: '', data: { minutes, lastEventAt: isoTime(lastEventAtMs) } }]
}
