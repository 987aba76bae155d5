/** The store's interface for ingest counts by organization, hour of arrival and key. */
import { hourMs } from './units.ts'

export const countHourMs = hourMs

export interface IngestCount {
  orgId: string
  keyId: string
  hourStartMs: number
  requests: number
  refused: number // requests of which no event was accepted
  accepted: number // events
  deduped: number
  rejected: number
  aheadMaxMs: number // the most that an event was ahead of the server's clock; 0 when none was
  behindMinMs: number | null // the least that a request's newest event was behind our clock; null without events
}

/** What a batch's request adds to the count of its hour, in the transaction of the batch. */
export interface BatchCount {
  rejected: number // rejected events of the request, which are not in the batch
  aheadMaxMs: number
  behindMinMs: number | null
  keptSinceMs: number // deletes older counts of the organization
  scopes?: ScopeCount[]
}

/** Combines two counts: sums add up, clock offsets keep the largest `ahead` and the smallest `behind`. */
export function mergeCount(counts: Map<string, IngestCount>, addition: IngestCount): void {
  const name = `${addition.orgId} ${addition.keyId} ${addition.hourStartMs}`
  const existingCount = counts.get(name)
  if (existingCount === undefined) {
    counts.set(name, addition)
    return
  }
  existingCount.requests += addition.requests
  existingCount.refused += addition.refused
  existingCount.accepted += addition.accepted
  existingCount.deduped += addition.deduped
  existingCount.rejected += addition.rejected
  existingCount.aheadMaxMs = Math.max(existingCount.aheadMaxMs, addition.aheadMaxMs)
  if (addition.behindMinMs === null) return
  existingCount.behindMinMs =
    existingCount.behindMinMs === null
      ? addition.behindMinMs
      : Math.min(existingCount.behindMinMs, addition.behindMinMs)
}

/** A field that a key's sender probably misspelled, counted over the events examined in one hour. */
export interface NearMissCount {
  orgId: string
  keyId: string
  hourStartMs: number
  path: string // as sent
  known: string // the field that was probably meant
  events: number
}

/** What became of the OpenTelemetry items of one instrumentation scope. A scope of a batch is in it once. */
export interface ScopeCount {
  scope: string // as sent, cut; '' when the sender gave none
  mapped: number // to events, stored before or not
  modelCalls: number // not stored
  leftOut: number
  refused: number
}

export interface ScopeHour extends ScopeCount {
  orgId: string
  hourStartMs: number
}

/** Stored per organization and hour. Further ones are counted together, so that names cannot fill the disk. */
export const scopesPerHourMax = 100
export const otherScopes = '(other)'

/** Adds up the counts of the same scope, organization and hour. */
export function mergeScope(hours: Map<string, ScopeHour>, addition: ScopeHour): void {
  const name = JSON.stringify([addition.orgId, addition.hourStartMs, addition.scope])
  const existingHour = hours.get(name)
  if (existingHour === undefined) {
    hours.set(name, { ...addition })
    return
  }
  existingHour.mapped += addition.mapped
  existingHour.modelCalls += addition.modelCalls
  existingHour.leftOut += addition.leftOut
  existingHour.refused += addition.refused
}

export interface IngestCountStore {
  /** Adds to the stored counts and deletes those before `keptSinceMs`. */
  add(command: {
    counts: IngestCount[]
    nearMisses?: NearMissCount[]
    scopes?: ScopeHour[]
    keptSinceMs: number
  }): Promise<void>
  /** The sums since an hour, by key and path, most frequent first, at most a fixed number. */
  nearMisses(query: {
    orgId: string
    sinceMs: number
  }): Promise<Omit<NearMissCount, 'hourStartMs' | 'orgId'>[]>
  /** The sums since an hour by scope, most items first, at most a fixed number. */
  scopes(query: { orgId: string; sinceMs: number }): Promise<ScopeCount[]>
  /** Ascending by hour and key. */
  list(query: { orgId: string; sinceMs: number }): Promise<IngestCount[]>
}
