/** Looks at the rules that speak: one message goes out when an incident opens, and one when it is over. */
import type { ApiKey, EventStore, Json, Store, StoredEvent } from '../../db/store.ts'
import type { Endpoint, Incident, NewDelivery, Rule } from '../../db/webhook-store.ts'
import { isoTime } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { findings, type Finding, type OrgView } from './findings.ts'
import { positionBefore } from './position.ts'
import { makeRates, windowMs, type Rates } from './rates.ts'

export interface WatchParts {
  store: Pick<Store, 'webhooks' | 'events' | 'keys'>
  log: Log
}

/** What is remembered of an organization with rules; after a start it is built again from the last hour's events. */
interface Memory {
  position: number
  rates: Rates
  vendors: Set<string> // seen since the start; asked once whether they are new
  newVendors: { vendor: string; firstAtMs: number }[]
}

const tailMax = 1_000
const newVendorMs = 24 * 3_600_000

export function makeWatch({ store, log }: WatchParts): (now: number) => Promise<void> {
  const memories = new Map<string, Memory>()

  async function lookAt(orgId: string, rules: Rule[], open: Incident[], now: number): Promise<void> {
    const memory = memories.get(orgId) ?? (await newMemory(store.events, orgId, now))
    memories.set(orgId, memory)
    await readTail(store.events, orgId, memory)
    const view = await viewOf(store, orgId, rules, memory, now)
    const endpoints = new Map(
      (await store.webhooks.endpoints(orgId)).map(({ endpoint }) => [endpoint.id, endpoint]),
    )
    for (const rule of rules) {
      const endpoint = endpoints.get(rule.endpointId)
      if (endpoint === undefined) continue
      const mine = open.filter(({ ruleId }) => ruleId === rule.id)
      await speak(store, rule, endpoint, findings(rule, view, now), mine, now)
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

async function newMemory(events: EventStore, orgId: string, now: number): Promise<Memory> {
  const position = await positionBefore(events, orgId, now - windowMs)
  return { position, rates: makeRates(), vendors: new Set(), newVendors: [] }
}

async function readTail(events: EventStore, orgId: string, memory: Memory): Promise<void> {
  for (;;) {
    const tail = await events.tail({ orgId, filter: {}, afterSeq: memory.position, limit: tailMax })
    for (const stored of tail.events) await readEvent(events, orgId, memory, stored)
    memory.position = Math.max(memory.position, tail.lastSeq)
    if (tail.events.length < tailMax) return
  }
}

async function readEvent(
  events: EventStore,
  orgId: string,
  memory: Memory,
  { json, seq, receivedAtMs }: StoredEvent,
): Promise<void> {
  const event = JSON.parse(json) as {
    type: string
    outcome: string
    tool?: string | null
    agent?: { vendor?: string | null } | null
  }
  const { type, outcome } = event
  memory.rates.add({ receivedAtMs, type, outcome, tool: event.tool ?? null })
  const vendor = event.agent?.vendor ?? ''
  if (vendor === '' || memory.vendors.has(vendor)) return
  // Any earlier event of the vendor, as far back as events are kept, makes it an old acquaintance.
  const filter = { vendors: [vendor] }
  const earlier = await events.page({ orgId, filter, limit: 1, before: null, ceilingSeq: seq - 1 })
  memory.vendors.add(vendor)
  if (earlier.events.length === 0) memory.newVendors.push({ vendor, firstAtMs: receivedAtMs })
}

async function viewOf(
  store: WatchParts['store'],
  orgId: string,
  rules: Rule[],
  memory: Memory,
  now: number,
): Promise<OrgView> {
  const asks = (kind: Rule['kind']) => rules.some((rule) => rule.kind === kind)
  memory.newVendors = memory.newVendors.filter(({ firstAtMs }) => firstAtMs > now - newVendorMs)
  return {
    newVendors: memory.newVendors,
    blocked: memory.rates.blocked(now),
    toolErrors: memory.rates.toolErrors(now),
    lastEventAtMs: asks('silence') ? await lastEventAt(store.events, orgId) : null,
    exposedKeys: asks('key_leaked') ? exposed(await store.keys.list(orgId)) : [],
  }
}

async function lastEventAt(events: EventStore, orgId: string): Promise<number | null> {
  const last = await events.lastSeq(orgId)
  if (last === 0) return null
  const { events: found } = await events.tail({ orgId, filter: {}, afterSeq: last - 1, limit: 1 })
  return found[0]?.receivedAtMs ?? null
}

function exposed(keys: ApiKey[]): ApiKey[] {
  return keys.filter(({ exposedAtMs, revokedAtMs }) => exposedAtMs !== null && revokedAtMs === null)
}

/** Opens what was found and is not open yet, resolves what is open and was not found any more. */
async function speak(
  store: WatchParts['store'],
  rule: Rule,
  endpoint: Endpoint,
  found: Finding[],
  open: Incident[],
  now: number,
): Promise<void> {
  for (const { subject, data } of found) {
    if (open.some((incident) => incident.subject === subject)) continue
    const { id: ruleId, orgId } = rule
    const incident = { id: newId('inc'), orgId, ruleId, subject, openedAtMs: now, resolvedAtMs: null, data }
    const delivery = message('alert.opened', rule, endpoint, incident, now)
    // A vendor is new only once; the other kinds may happen again.
    await store.webhooks.openIncident({ incident, delivery, once: rule.kind === 'new_vendor' })
  }
  for (const incident of open) {
    if (found.some(({ subject }) => subject === incident.subject)) continue
    const isKnownAgain = rule.kind !== 'new_vendor' || now - incident.openedAtMs >= newVendorMs
    if (!isKnownAgain) continue
    const delivery = message('alert.resolved', rule, endpoint, incident, now)
    await store.webhooks.resolveIncident({ id: incident.id, now, delivery })
  }
}

function message(
  type: 'alert.opened' | 'alert.resolved',
  { kind, orgId }: Rule,
  endpoint: Endpoint,
  incident: Incident,
  now: number,
): NewDelivery {
  const about: { [member: string]: Json } = {
    rule: kind,
    ruleId: incident.ruleId,
    incidentId: incident.id,
    subject: incident.subject,
    openedAt: isoTime(incident.openedAtMs),
    resolvedAt: type === 'alert.resolved' ? isoTime(now) : null,
    ...incident.data,
  }
  const body = JSON.stringify({ type, timestamp: isoTime(now), data: about })
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
