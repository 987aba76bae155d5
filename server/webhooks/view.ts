/**
 * What all webhook routes share: who may call them, and deliveries, endpoints, alert rules and incidents as the API
 * returns them (contract §9).
 */
import { isoTime, type Clock } from '../clock.ts'
import { waitingFor, type Sender } from './delivery/waiting.ts'
import { incidentSentence, linkOf, severityOf } from './alerts/alerts.ts'
import type { Attempt, Endpoint, EndpointCounts, StoredDelivery } from '../../db/contract/webhooks.ts'
import type { Delivery } from '../../db/contract/webhooks.ts'
import type { Incident, MeasureDefinition, Rule, RuleKind, RuleNumbers } from '../../db/contract/alerts.ts'
import type { Actor } from '../audit/entry.ts'

/** Authorizes webhook requests: by secret key on the public API, by sign-in on the dashboard. */
export interface Access {
  read(request: Request): Promise<Actor>
  write(request: Request): Promise<Actor>
}

const time = (ms: number | null) => (ms === null ? null : isoTime(ms))

interface DeliveryViewServices {
  clock: Clock
  sender?: Sender // absent: no server runs
}

/** JSON text, so that the payload keeps every digit of its numbers. */
export function deliveryText(
  { clock, sender }: DeliveryViewServices,
  delivery: StoredDelivery,
  extraFields: { [name: string]: unknown } = {},
): string {
  const { id, orgId, endpointId, url, body, status, attempts, lastError, lastStatus } = delivery
  const head = JSON.stringify({ id, orgId, endpointId, url })
  const tail = JSON.stringify({
    status,
    attempts,
    nextAttemptAt: time(delivery.nextAttemptAtMs),
    waitingFor: waitingFor(delivery, sender ?? null, clock.now()),
    lastError,
    lastStatus,
    scheduledAt: isoTime(delivery.scheduledAtMs),
    deliveredAt: time(delivery.deliveredAtMs),
    ...extraFields,
  })
  return `${head.slice(0, -1)},"payload":${body},${tail.slice(1)}`
}

export function attemptView({ atMs, status, durationMs, responseExcerpt, error }: Attempt) {
  return { at: isoTime(atMs), status, durationMs, responseExcerpt, error }
}

export type AttemptView = ReturnType<typeof attemptView>

/** A rule that compares a measure has the fields of its definition, too. */
export interface RuleView extends RuleNumbers, Partial<Omit<MeasureDefinition, 'eventsMin'>> {
  id: string
  endpointId: string
  kind: RuleKind
  name: string
  createdAt: string
  fromFile: boolean
  silencedUntil: string | null
}

export function ruleView(rule: Rule): RuleView {
  const { id, endpointId, kind, threshold, minutes, eventsMin, createdAtMs, name, definition } = rule
  const { fromFile, silencedUntilMs } = rule
  return {
    id,
    endpointId,
    kind,
    name,
    threshold,
    minutes,
    eventsMin,
    createdAt: isoTime(createdAtMs),
    fromFile,
    silencedUntil: time(silencedUntilMs),
    ...definition,
  }
}

type IncidentStatus = 'open' | 'acknowledged' | 'resolved' | 'pending'

function statusOf({ state, resolvedAtMs, acknowledgedAtMs }: Incident): IncidentStatus {
  if (resolvedAtMs !== null) return 'resolved'
  if (state === 'pending') return 'pending'
  return acknowledgedAtMs !== null ? 'acknowledged' : 'open'
}

export function incidentView(incident: Incident) {
  const { id, ruleId, subject, openedAtMs, resolvedAtMs, acknowledgedAtMs, acknowledgedBy, data } = incident
  return {
    id,
    ruleId,
    subject,
    status: statusOf(incident),
    severity: severityOf(incident),
    message: incidentSentence(incident),
    link: linkOf(incident),
    openedAt: isoTime(openedAtMs),
    acknowledgedAt: time(acknowledgedAtMs),
    acknowledgedBy,
    resolvedAt: time(resolvedAtMs),
    data,
  }
}

export type IncidentView = ReturnType<typeof incidentView>
