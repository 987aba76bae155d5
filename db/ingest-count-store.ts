/** The part of the store contract that keeps what ingest counted: by organization, hour of arrival and key. */

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

export interface IngestCountStore {
  /** Adds to what is there; counts from before `keptSinceMs` go. */
  add(command: { counts: IngestCount[]; keptSinceMs: number }): Promise<void>
  /** Ascending by hour and key. */
  list(query: { orgId: string; sinceMs: number }): Promise<IngestCount[]>
}
