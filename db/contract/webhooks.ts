/**
 * The store's interface for webhooks: deliveries with their attempts, endpoints, alert rules and incidents.
 *
 * Secrets are encrypted here; the server has the key. A pending delivery is leased to its sender. An outcome counts
 * only while the sender has the delivery's lease, so a sender that lost it changes nothing.
 */
import type { Incident, IncidentQuery, Rule, RuleChange } from './alerts.ts'
import type { AuditEntry } from './audit.ts'
import type { JobLease } from './nodes.ts'

// ---------------------------------------------------------------- deliveries

/** The slots that an organization occupies. */
export interface Held {
  count: number
  firstTries: number // of these, at lanes without any earlier attempt
  hangs: boolean // several of its lanes are slow
}

/** The occupied slots, which the sender passes when it asks for more deliveries. */
export interface Share {
  held: { [orgId: string]: Held }
  slow: number // slots that slow lanes occupy, all organizations together
  paces: { [lane: string]: 'quick' | 'slow' }
  reserved: Reserved
}

/** How many slots each kind of send leaves free. Each number includes the one before. */
export interface Reserved {
  /** Only the first send of an organization may occupy these, one each. */
  forFirstSend: number
  /** An organization that makes fewer than two first tries leaves only `forFirstSend`; quick lanes leave this. */
  forFirstTries: number
  /** Further first tries leave this. */
  forQuick: number
  /** Slow lanes leave this, so that first tries never wait for slow receivers. */
  forUntried: number
}

export type DeliveryStatus = 'pending' | 'delivered' | 'dead_letter'

export interface Delivery {
  id: string // wh_…, also the message id of every attempt
  orgId: string
  endpointId: string | null // null: sent to a URL directly
  url: string
  body: string // JSON text, byte for byte the same on every attempt
  status: DeliveryStatus
  attempts: number // counted since it was scheduled or replayed
  nextAttemptAtMs: number | null // null unless pending
  lastError: string | null
  lastStatus: number | null // HTTP status
  scheduledAtMs: number
  deliveredAtMs: number | null
}

/** A delivery as it is stored, with the facts that decide when a pending one is sent. */
export interface StoredDelivery extends Delivery {
  queue: QueueState | null // null unless pending
}

/** What the database knows about the wait of a pending delivery. */
export interface QueueState {
  lane: string
  lease: { id: string; untilMs: number } | null
  isReplayed: boolean // a person replayed it, and no attempt was counted since
  isProbe: boolean
  isEndpointPaused: boolean
  isEndpointHealthy: boolean // its last attempt succeeded
  laneLeases: number // deliveries of the lane that have a lease, on any node
}

/** A new delivery, pending and due at once. */
export interface NewDelivery {
  id: string
  orgId: string
  endpointId: string | null
  url: string
  /** The scope of the limit on concurrent sends: the endpoint's id, or the URL's origin. */
  lane: string
  body: string
  scheduledAtMs: number
}

export interface Attempt {
  atMs: number
  status: number | null // HTTP status, when a response came
  durationMs: number
  responseExcerpt: string
  error: string | null // `code: what happened`; null when it was delivered
  counted: boolean // false: a fault of this server, which uses up no retry
}

export interface DeliveryQuery {
  orgId: string
  status: DeliveryStatus | null
  endpointId: string | null
  limit: number
  bytesMax: number // of bodies per page; a page has at least one delivery
  beforeSeq: number | null
}

export interface DeliveryPage {
  deliveries: StoredDelivery[] // newest first
  next: number | null // `beforeSeq` of the next page, null on the last page
}

/** A delivery that the claimer sends within its lease or releases. */
export interface Claim {
  leaseId: string
  lane: string
  isAhead: boolean // beyond the slots: sent when one of its own lane is free
  delivery: Delivery
  pendingSinceMs: number // when it was scheduled or last replayed
  retryWaitsMs: number[] | null // of its endpoint; null: the server's
  encryptedSecrets: string[] // newest first; [] when its endpoint was deleted
  probe: boolean // one attempt at an endpoint that was paused for failing
  failingSinceMs: number | null // of its endpoint
}

/** The outcome of a claim, decided by the sender. */
export interface Outcome {
  deliveryId: string
  leaseId: string
  attempt: Attempt
  next: { status: 'delivered' } | { status: 'pending'; atMs: number } | { status: 'dead_letter' }
  /** Pauses an active endpoint; for failing, only when it has not succeeded since the claim. */
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
  dueMs: number // claims deliveries due at or before this
  limit: number // free slots
  share: Share // how organizations share them
  perLaneMax: number // most claims of a lane at a time, including other claimers'
  /**
   * Extra claims per lane for receivers that answer quickly, sent one after the other without a commit in between. Only
   * while every lane with due deliveries gets its share of `limit`, and never for a delivery that was interrupted
   * before, because its lease must mean that it is being sent.
   */
  ahead: { [lane: string]: number }
  /** How many expired leases in a row are logged without counting as attempts. Later ones count. */
  interruptionsMax: number
  attemptsMax: number // for deliveries whose endpoint has no retry policy of its own
}

// ---------------------------------------------------------------- endpoints

export type PauseReason = 'asked' | 'gone' | 'failing'

/** Contract §9. A list matches any of its values; [] matches all; `types` accept a trailing `.*`. */
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
  batchSize: number // maximum events per message
  retryWaitsMs: number[] | null // before each retry; null: the server's
  status: 'active' | 'paused'
  pausedReason: PauseReason | null
  pausedAtMs: number | null
  position: number // events up to this arrival number are processed
  sequence: number // of the last batch, 0 before the first
  missed: number // events that expired before they were processed
  /** A range is delivered again. At or past this position the endpoint jumps to `resumePosition`. */
  replayUntil: number | null
  resumePosition: number | null // null exactly when there is no range
  createdAtMs: number
  lastSuccessAtMs: number | null
  failingSinceMs: number | null // first failure since the last success
  nextProbeAtMs: number | null
  encryptedSecret: string
  previousEncryptedSecret: string | null
  previousUntilMs: number | null // the previous secret is valid until then
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
  encryptedSecret: string
  previousEncryptedSecret: string | null
  previousUntilMs: number | null
}

// ---------------------------------------------------------------- verbs

export interface WebhookStore {
  /**
   * Calls back after commits of this store that make deliveries due (null) or let endpoints of an organization advance
   * (its id). A hint: other nodes' commits are found by the next scheduled run. Returns a function that ends the watch.
   */
  watch(listener: (orgId: string | null) => void): () => void
  /** When the first delivery after this time is due; null when none is pending. */
  nextDueAt(afterMs: number): Promise<number | null>
  /**
   * False when there is a delivery with this id: nothing is written. `not_found` when it has an endpoint that was
   * deleted.
   */
  schedule(command: { delivery: NewDelivery; audit: AuditEntry }): Promise<boolean>
  find(query: {
    orgId: string
    id: string
  }): Promise<{ delivery: StoredDelivery; attempts: Attempt[] } | null>
  list(query: DeliveryQuery): Promise<DeliveryPage>
  /**
   * Makes an ended delivery pending again with 0 attempts. `conflict` when it is pending or its endpoint is deleted.
   */
  replay(command: { orgId: string; id: string; now: number; audit: AuditEntry }): Promise<void>
  /** Replays every dead letter, of one endpoint or of all. The audit entry contains the count. */
  replayDead(command: {
    orgId: string
    endpointId: string | null
    now: number
    audit: AuditEntry
  }): Promise<number>
  /**
   * Records outcomes and claims due deliveries in one transaction. Drops outcomes of lost leases. No delivery is
   * claimed by two callers at a time, whichever nodes they are on. `now` is the store's time, which nodes read with
   * `nodes.heartbeat`: leases of callers are compared with each other.
   */
  recordAndClaim(command: {
    now: number
    outcomes: Outcome[]
    released: { deliveryId: string; leaseId: string }[] // claims that were not sent
    claim: ClaimRequest | null
  }): Promise<Claim[]>
  /** After a clock jump, shifts due times, leases and failures so that every wait stays as long as it was. */
  shiftTimes(command: { byMs: number }): Promise<void>
  /** Deletes at most `limit` ended deliveries. Returns how many. */
  prune(command: {
    deliveredBeforeMs: number
    deadBeforeMs: number
    incidentsBeforeMs: number
    limit: number
  }): Promise<number>

  /** The organization's signing secret. Stores the given secret if it has none. */
  orgSecret(command: { orgId: string; encryptedIfNone: string; audit: AuditEntry }): Promise<OrgSecret>
  findOrgSecret(orgId: string): Promise<OrgSecret | null>
  rotateOrgSecret(command: {
    orgId: string
    encryptedSecret: string
    previousUntilMs: number
    audit: AuditEntry
  }): Promise<void>

  /** `conflict` when its URL is a file of another organization. */
  createEndpoint(command: { endpoint: Endpoint; audit: AuditEntry }): Promise<void>
  endpoints(orgId: string): Promise<{ endpoint: Endpoint; counts: EndpointCounts }[]>
  /** Without delivery counts, which would read every stored delivery. */
  bareEndpoints(orgId: string): Promise<Endpoint[]>
  endpoint(query: {
    orgId: string
    id: string
  }): Promise<{ endpoint: Endpoint; counts: EndpointCounts } | null>
  /** Active endpoints of all organizations. */
  activeEndpoints(): Promise<Endpoint[]>
  changeEndpoint(command: EndpointCommand & { change: EndpointChange }): Promise<Endpoint>
  pauseEndpoint(command: EndpointCommand): Promise<Endpoint> // pausing a paused endpoint changes nothing
  resumeEndpoint(command: EndpointCommand): Promise<Endpoint>
  /**
   * Moves the position, so that later events are delivered again. An `until` before the old position ends that after
   * the event of this number; the endpoint then continues at the old position.
   */
  moveEndpoint(command: EndpointCommand & { position: number; until: number | null }): Promise<Endpoint>
  rotateEndpointSecret(
    command: EndpointCommand & { encryptedSecret: string; previousUntilMs: number },
  ): Promise<Endpoint>
  /** Its pending deliveries become dead letters; its alert rules are deleted. */
  deleteEndpoint(command: EndpointCommand): Promise<void>
  /**
   * Advances an endpoint from one position to another and schedules the batch in between, if any, in one transaction.
   * At the end of a repeated range it jumps back to its old position. `stale`: it was moved, paused or advanced
   * meanwhile. `full`: too many of its deliveries are pending.
   */
  advance(command: {
    endpointId: string
    from: { position: number; sequence: number }
    position: number
    missed: number
    delivery: NewDelivery | null
    pendingMax: number
  }): Promise<'advanced' | 'stale' | 'full'>
  /** Schedules a probe for each due endpoint paused for failing: its oldest pending delivery, or the passed one. */
  startProbes(command: {
    now: number
    nextProbeAtMs: number
    body: string
    ids: string[] // ids for new deliveries; at most this many probes
  }): Promise<number>

  /** `not_found` without its endpoint, `conflict` when the organization has `rulesMax` rules. */
  createRule(command: { rule: Rule; rulesMax: number; audit: AuditEntry }): Promise<void>
  rules(orgId: string | null): Promise<Rule[]> // null: of all organizations
  /** `not_found` for an unknown rule of the organization. Its open incidents stay open. */
  changeRule(command: { orgId: string; ruleId: string; change: RuleChange; audit: AuditEntry }): Promise<void>
  deleteRule(command: { orgId: string; ruleId: string; audit: AuditEntry }): Promise<void>
  openIncidents(orgId: string | null): Promise<Incident[]>
  /** Acknowledges an open alert, once. `not_found`, or `conflict` when it is resolved. */
  acknowledgeIncident(command: {
    orgId: string
    id: string
    now: number
    by: string
    audit: AuditEntry
  }): Promise<Incident>
  /** Open incidents first, then the newest; `isOpen` null: all. */
  incidents(query: IncidentQuery): Promise<Incident[]>
  /**
   * Opens an incident, pending or firing, and schedules its message. False when its rule has an open one for the
   * subject (`once`: had one), and then nothing is scheduled or written to the audit log. `lease`: of the evaluation;
   * `conflict` when another node has claimed its job since, because its alerts may have changed since they were read.
   */
  openIncident(command: {
    incident: Incident
    delivery: NewDelivery | null
    once: boolean
    lease?: JobLease | null
    audit: AuditEntry
  }): Promise<boolean>
  /** A pending incident fires, with its message. False when it is not pending. */
  fireIncident(command: {
    id: string
    now: number
    data: Incident['data']
    delivery: NewDelivery
    lease?: JobLease | null
    audit: AuditEntry
  }): Promise<boolean>
  /** Since when the condition of an open incident no longer holds; null: it holds. */
  noteIncident(command: { id: string; clearSinceMs: number | null; lease?: JobLease | null }): Promise<void>
  /**
   * Resolves an open incident and schedules its message. A pending one never fired and is deleted. False when it is not
   * open.
   */
  resolveIncident(command: {
    id: string
    now: number
    delivery: NewDelivery | null
    lease?: JobLease | null
    audit: AuditEntry
  }): Promise<boolean>
}
