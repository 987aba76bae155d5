/** The part of the store contract that counts ingest by organization, hour of arrival and key. */

export const countHourMs = 3_600_000

export interface IngestCount {
  orgId: string
  keyId: string
  hourStartMs: number
  requests: number
  refused: number // requests of which nothing was taken
  accepted: number // events
  deduped: number
  rejected: number
  aheadMaxMs: number // how far an event lay in our future at most; 0 when none did
  behindMinMs: number | null // how far the newest event of a request lay in our past at least; null without events
}

/** What a batch's request adds to the count of its hour, written in the transaction of the batch itself. */
export interface BatchCount {
  rejected: number // events of the request that are not in the batch
  aheadMaxMs: number
  behindMinMs: number | null
  keptSinceMs: number // counts of the organization from before go
}

/** One request more or many: sums are added, clocks are as far off as the worst and the best. */
export function mergeCount(into: Map<string, IngestCount>, one: IngestCount): void {
  const name = `${one.orgId} ${one.keyId} ${one.hourStartMs}`
  const known = into.get(name)
  if (known === undefined) {
    into.set(name, one)
    return
  }
  known.requests += one.requests
  known.refused += one.refused
  known.accepted += one.accepted
  known.deduped += one.deduped
  known.rejected += one.rejected
  known.aheadMaxMs = Math.max(known.aheadMaxMs, one.aheadMaxMs)
  const behind = [known.behindMinMs, one.behindMinMs].filter((ms) => ms !== null)
  known.behindMinMs = behind.length === 0 ? null : Math.min(...behind)
}

/** A field that a key's sender probably misspelt, of the events that were looked at in one hour. */
export interface NearMissCount {
  orgId: string
  keyId: string
  hourStartMs: number
  path: string // as sent
  known: string // the field that was probably meant
  events: number
}

export interface IngestCountStore {
  /** Adds to what is there; counts from before `keptSinceMs` go. */
  add(command: { counts: IngestCount[]; nearMisses?: NearMissCount[]; keptSinceMs: number }): Promise<void>
  /** The sums since an hour, by key and path; the most frequent first, a bounded number. */
  nearMisses(query: {
    orgId: string
    sinceMs: number
  }): Promise<Omit<NearMissCount, 'hourStartMs' | 'orgId'>[]>
  /** Ascending by hour and key. */
  list(query: { orgId: string; sinceMs: number }): Promise<IngestCount[]>
}
