/**
 * The webhook part of the store contract: deliveries with their attempts, endpoints, rules and incidents.
 *
 * Secrets cross this seam sealed (the server holds the key). A pending delivery is leased to whoever sends it; the
 * outcome counts only while that lease is the delivery's own, so a sender that lost its lease changes nothing.
 */
import type { AuditEntry, Json } from './audit.ts'
import type { Share } from '../rules/webhook-share.ts'

// ---------------------------------------------------------------- deliveries

export type DeliveryStatus = 'pending' | 'delivered' | 'dead_letter'

export interface Delivery {
  id: string // wh_…, also the message id of every attempt
  orgId: string
  endpointId: string | null // null: sent to a URL directly
  url: string
  body: string // JSON text, byte for byte the same on every attempt
  status: DeliveryStatus
  attempts: number // counted ones since it was scheduled or replayed
  nextAttemptAtMs: number | null // null unless pending
  lastError: string | null
  lastStatus: number | null // of HTTP
  scheduledAtMs: number
  deliveredAtMs: number | null
}

/** A delivery to be made, pending and due at once. */
export interface NewDelivery {
  id: string
  orgId: string
  endpointId: string | null
  url: string
  /** What shares the limit of sends at a time: the endpoint's id, or the URL's origin. */
  lane: string
  body: string
  scheduledAtMs: number
}

export interface Attempt {
  atMs: number
  status: number | null // of HTTP, when an answer came
  durationMs: number
  responseExcerpt: string
  error: string | null // `code: what happened`; null when it was delivered
  counted: boolean // false: our own fault, which uses up no retry
}

export interface DeliveryQuery {
  orgId: string
  status: DeliveryStatus | null
  endpointId: string | null
  limit: number
  bytesMax: number // of bodies in one page; the first delivery is always given
  beforeSeq: number | null
}

export interface DeliveryPage {
  deliveries: Delivery[] // newest first
  next: number | null // `beforeSeq` of the next page, null exactly when there is none
}

/** A delivery that the claimer sends within its lease, or gives back. */
export interface Claim {
  leaseId: string
  lane: string
  isAhead: boolean // beyond the slots: sent when one of its own lane comes free
  delivery: Delivery
  pendingSinceMs: number // when it was scheduled or last replayed
  retryWaitsMs: number[] | null // of its endpoint; null: those of the server
  sealedSecrets: string[] // newest first; [] when the secret is gone with its endpoint
  probe: boolean // one try of an endpoint that was paused for failing
  failingSinceMs: number | null // of its endpoint
}

/** What became of a claim, decided by the sender. */
export interface Outcome {
  deliveryId: string
  leaseId: string
  attempt: Attempt
  next: { status: 'delivered' } | { status: 'pending'; atMs: number } | { status: 'dead_letter' }
  /** Pauses the endpoint when it is active; for failing only while it has not succeeded since the claim. */
  pause?: {
    reason: 'gone' | 'failing'
    failingSinceMs: number | null
    nextProbeAtMs: number | null
    audit: AuditEntry
  }
  /** Resumes the endpoint when failing had paused it. */
  resume?: AuditEntry
}

export interface ClaimRequest {
  leaseId: string
  leaseMs: number
  dueMs: number // deliveries due at or before this
  limit: number // free slots
  share: Share // how organizations share them
  perLaneMax: number // claims of a lane at a time, other claimers' included
  /**
   * More claims, by lane, for receivers that answer quickly: they are sent one after the other without a commit in
   * between. Only while every lane with due deliveries gets its share of `limit`, and never for a delivery that was
   * interrupted before: for those a lease means that they are being sent.
   */
  ahead: { [lane: string]: number }
  /** A lease that ran out was interrupted: logged, not counted this many times in a row, counted afterwards. */
  interruptionsMax: number
  attemptsMax: number // of deliveries whose endpoint has no waits of its own
}

// ---------------------------------------------------------------- endpoints

export type PauseReason = 'asked' | 'gone' | 'failing'

/** Contract §9. A list means any of; [] means all; `types` take a trailing `.*`. */
export interface EndpointFilter {
  types: string[]
  outcomes: string[]
  classes: string[]
  siteIds: string[]
}

export interface Endpoint extends EndpointFilter {
  id: string // ep_…
  orgId: string
  url: string
  label: string
  batchSize: number // events in a message at most
  retryWaitsMs: number[] | null // before each retry; null: those of the server
  status: 'active' | 'paused'
  pausedReason: PauseReason | null
  pausedAtMs: number | null
  position: number // every event up to this arrival number has been looked at
  sequence: number // of the last batch made, 0 before the first
  missed: number // events that retention removed before they were looked at
  /** A range is delivered again: at this position, or past it, the endpoint jumps to `resumePosition`. */
  replayUntil: number | null
  resumePosition: number | null // null exactly when there is no range
  createdAtMs: number
  lastSuccessAtMs: number | null
  failingSinceMs: number | null // first failure since the last success
  nextProbeAtMs: number | null
  sealedSecret: string
  previousSealedSecret: string | null
  previousUntilMs: number | null // the previous secret is still valid, until then
}

export interface EndpointCounts {
  pending: number
  delivered: number
  deadLetter: number
}

export interface EndpointChange {
  url?: string
  label?: string
  batchSize?: number
  retryWaitsMs?: number[] | null
  types?: string[]
  outcomes?: string[]
  classes?: string[]
  siteIds?: string[]
}

interface EndpointCommand {
  orgId: string
  endpointId: string
  now: number
  audit: AuditEntry
}

export interface OrgSecret {
  sealedSecret: string
  previousSealedSecret: string | null
  previousUntilMs: number | null
}

// ---------------------------------------------------------------- rules that speak

export type RuleKind = 'new_vendor' | 'blocked_share' | 'tool_error_rate' | 'silence' | 'key_leaked'

/** What a rule of one kind takes; null for what it does not. */
export interface RuleNumbers {
  threshold: number | null // share from 0 to 1
  minutes: number | null // of silence
  eventsMin: number | null // a share of fewer events says nothing
}

export interface Rule extends RuleNumbers {
  id: string // rul_…
  orgId: string
  endpointId: string
  kind: RuleKind
  createdAtMs: number
}

export interface Incident {
  id: string // inc_…
  orgId: string
  ruleId: string
  subject: string // the vendor, tool or key it is about; '' for the whole organization
  openedAtMs: number
  resolvedAtMs: number | null
  acknowledgedAtMs: number | null // while it was open
  acknowledgedBy: string | null // the actor, as in the audit log
  data: { [member: string]: Json }
}

export interface IncidentQuery {
  orgId: string
  isOpen: boolean | null
  limit: number
}

// ---------------------------------------------------------------- verbs

export interface WebhookStore {
  /**
   * Called after every commit that makes deliveries due (null) or lets the endpoints of an organization advance (its
   * id); returns a function that ends the watch.
   */
  watch(listener: (orgId: string | null) => void): () => void
  /** When the first delivery becomes due after this time; null when none waits. */
  nextDueAt(afterMs: number): Promise<number | null>
  schedule(command: { delivery: NewDelivery; audit: AuditEntry }): Promise<void>
  find(query: { orgId: string; id: string }): Promise<{ delivery: Delivery; attempts: Attempt[] } | null>
  list(query: DeliveryQuery): Promise<DeliveryPage>
  /** Makes an ended delivery pending again, attempts from 0. `conflict` when pending or its endpoint is gone. */
  replay(command: { orgId: string; id: string; now: number; audit: AuditEntry }): Promise<void>
  /** The same for every dead letter, of one endpoint or of all; the audit row gets the count. */
  replayDead(command: {
    orgId: string
    endpointId: string | null
    now: number
    audit: AuditEntry
  }): Promise<number>
  /** Records outcomes and claims what is due next, in one transaction. Outcomes of lost leases are dropped. */
  recordAndClaim(command: {
    now: number
    outcomes: Outcome[]
    released: { deliveryId: string; leaseId: string }[] // claims given back unsent
    claim: ClaimRequest | null
  }): Promise<Claim[]>
  /** The clock jumped: due times, leases and failures move with it, so that every wait stays as long as it was. */
  shiftTimes(command: { byMs: number }): Promise<void>
  /** Removes ended deliveries: at most `limit` at a time; returns how many went. */
  prune(command: {
    deliveredBeforeMs: number
    deadBeforeMs: number
    incidentsBeforeMs: number
    limit: number
  }): Promise<number>

  /** The organization's signing secret; the given one becomes it when there is none. */
  orgSecret(command: { orgId: string; sealedIfNone: string; audit: AuditEntry }): Promise<OrgSecret>
  findOrgSecret(orgId: string): Promise<OrgSecret | null>
  rotateOrgSecret(command: {
    orgId: string
    sealedSecret: string
    previousUntilMs: number
    audit: AuditEntry
  }): Promise<void>

  /** `conflict` when its URL is a file that another organization writes. */
  createEndpoint(command: { endpoint: Endpoint; audit: AuditEntry }): Promise<void>
  endpoints(orgId: string): Promise<{ endpoint: Endpoint; counts: EndpointCounts }[]>
  /** Without their counts, which cost a look at every delivery that is kept. */
  bareEndpoints(orgId: string): Promise<Endpoint[]>
  endpoint(query: {
    orgId: string
    id: string
  }): Promise<{ endpoint: Endpoint; counts: EndpointCounts } | null>
  /** Active endpoints of all organizations: those whose positions can advance. */
  activeEndpoints(): Promise<Endpoint[]>
  changeEndpoint(command: EndpointCommand & { change: EndpointChange }): Promise<Endpoint>
  pauseEndpoint(command: EndpointCommand): Promise<Endpoint> // done once when paused already
  resumeEndpoint(command: EndpointCommand): Promise<Endpoint>
  /**
   * Moves the position; events after it are delivered again. An `until` before where the endpoint was ends that, after
   * the event of this number, and it goes on where it was.
   */
  moveEndpoint(command: EndpointCommand & { position: number; until: number | null }): Promise<Endpoint>
  rotateEndpointSecret(
    command: EndpointCommand & { sealedSecret: string; previousUntilMs: number },
  ): Promise<Endpoint>
  /** Its pending deliveries become dead letters; its rules go. */
  deleteEndpoint(command: EndpointCommand): Promise<void>
  /**
   * Advances an endpoint from one position to another and schedules the batch in between, if any, in one transaction;
   * at the end of a range that is delivered again it jumps back to where it was.
   * `stale`: it was moved, paused or advanced by somebody else; `full`: too many of its deliveries are pending.
   */
  advance(command: {
    endpointId: string
    from: { position: number; sequence: number }
    position: number
    missed: number
    delivery: NewDelivery | null
    pendingMax: number
  }): Promise<'advanced' | 'stale' | 'full'>
  /** Endpoints paused for failing whose probe is due get one: their oldest pending delivery, or the given one. */
  startProbes(command: {
    now: number
    nextProbeAtMs: number
    body: string
    ids: string[] // for deliveries to be made; as many probes at most
  }): Promise<number>

  createRule(command: { rule: Rule; audit: AuditEntry }): Promise<void> // not_found without its endpoint
  rules(orgId: string | null): Promise<Rule[]> // null: of every organization
  /** not_found when the organization has no rule of this id; its open incidents stay open. */
  changeRule(command: {
    orgId: string
    ruleId: string
    numbers: RuleNumbers
    audit: AuditEntry
  }): Promise<void>
  deleteRule(command: { orgId: string; ruleId: string; audit: AuditEntry }): Promise<void>
  openIncidents(orgId: string | null): Promise<Incident[]>
  /** Somebody takes on an open alert; done once. `not_found`, or `conflict` when it is resolved. */
  acknowledgeIncident(command: {
    orgId: string
    id: string
    now: number
    by: string
    audit: AuditEntry
  }): Promise<Incident>
  /** Open ones first, then the newest; `isOpen` null: both kinds. */
  incidents(query: IncidentQuery): Promise<Incident[]>
  /** Opens an incident and schedules its message. False when its rule has one open for the subject (`once`: had). */
  openIncident(command: { incident: Incident; delivery: NewDelivery; once: boolean }): Promise<boolean>
  /** Resolves an open incident and schedules its message. False when it is not open. */
  resolveIncident(command: { id: string; now: number; delivery: NewDelivery }): Promise<boolean>
}
