/** Evaluates alert rules: sends one message when an incident opens and one when it is resolved. */
import { isoTime } from '../../clock.ts'
import { newVendorMs, orgCounters, type OrgCounters, type Share } from './counters.ts'
import { makeMeasures } from './measures.ts'
import { evaluateMeasure } from './evaluate-measure.ts'
import { openIncident, resolveIncident, type Evaluated } from './incidents.ts'
import type { Incident, Rule } from '../../../db/contract/alerts.ts'
import type { JobLease } from '../../../db/contract/nodes.ts'
import type { ApiKey, Json, Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'

interface EvaluateServices {
  store: Pick<Store, 'webhooks' | 'events' | 'keys' | 'retention' | 'health'>
  log: Log
  /** The address of the dashboard; null when it is not configured. */
  publicUrl: string | null
}

/** `lease`: of the job, where nodes share the database. Without it no other node must evaluate at the same time. */
type Evaluate = (now: number, lease?: JobLease | null) => Promise<void>

export function makeEvaluate(services: EvaluateServices): Evaluate {
  const { store, log } = services
  const counters = new Map<string, OrgCounters>()
  const measures = makeMeasures({ store, log })

  async function evaluateOrg(orgId: string, rules: Rule[], { open, now, lease }: Run): Promise<void> {
    const fixed = rules.filter(({ kind }) => kind !== 'measure')
    const state = fixed.length === 0 ? null : await fixedState(orgId, fixed, now)
    const endpoints = new Map(
      (await store.webhooks.bareEndpoints(orgId)).map((endpoint) => [endpoint.id, endpoint]),
    )
    for (const rule of rules) {
      const endpoint = endpoints.get(rule.endpointId)
      if (endpoint === undefined) continue
      const incidents = open.filter(({ ruleId }) => ruleId === rule.id)
      const evaluated = { rule, endpoint, open: incidents, now, lease }
      const { definition } = rule
      if (definition === null) {
        if (state !== null) await updateFixed(services, evaluated, evaluateRule(rule, state, now))
        continue
      }
      // One rule that fails must not keep the others from firing.
      await evaluateMeasure(services, measures, { ...evaluated, rule: { ...rule, definition } }).catch(
        (error) => {
          log.warn('alert_rule_failed', { ruleId: rule.id, message: String(error) })
        },
      )
    }
  }

  async function fixedState(orgId: string, rules: Rule[], now: number): Promise<OrgState> {
    const eventCounters = counters.get(orgId) ?? (await orgCounters(store.events, orgId, now))
    counters.set(orgId, eventCounters)
    await eventCounters.update(new Set(rules.map(({ kind }) => kind)), now)
    return stateOf(store, orgId, rules, eventCounters, now)
  }

  return async (now, lease = null) => {
    const rules = await store.webhooks.rules(null)
    const open = rules.length === 0 ? [] : await store.webhooks.openIncidents(null)
    const byOrg = Map.groupBy(rules, ({ orgId }) => orgId)
    for (const orgId of counters.keys()) if (!byOrg.has(orgId)) counters.delete(orgId)
    measures.begin(new Set(rules.map(({ id }) => id)))
    for (const [orgId, ofOrg] of byOrg) {
      await evaluateOrg(orgId, ofOrg, { open, now, lease }).catch((error: unknown) => {
        log.warn('alert_rules_failed', { orgId, message: String(error) })
      })
    }
  }
}

interface Run {
  open: Incident[]
  now: number
  lease: JobLease | null
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

/** Opens an incident for each new finding and resolves incidents without one. */
async function updateFixed(
  services: EvaluateServices,
  evaluated: Evaluated,
  findings: Finding[],
): Promise<void> {
  const { rule, open, now } = evaluated
  for (const { subject, data } of findings) {
    if (open.some((incident) => incident.subject === subject)) continue
    // A vendor is new only once; other incidents may open again.
    await openIncident(services, evaluated, {
      subject,
      data,
      state: 'firing',
      once: rule.kind === 'new_vendor',
    })
  }
  for (const incident of open) {
    if (findings.some(({ subject }) => subject === incident.subject)) continue
    const isOver = rule.kind !== 'new_vendor' || now - incident.openedAtMs >= newVendorMs
    if (isOver) await resolveIncident(services, evaluated, incident)
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
    case 'measure':
      return []
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
