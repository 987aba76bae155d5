/** Access logs: lines that are stored with their events, how far each log was read, and counts of its requests. */

export const requestKinds = ['agent', 'person', 'asset', 'bot'] as const

/** Who made a request: an agent, a person (a page, or an asset of one), or another program. */
export type RequestKind = (typeof requestKinds)[number]

export type OtherKind = Exclude<RequestKind, 'agent'>

/** The hours, kinds, counts and sums below must add up; the store rejects a batch that does not. */
export interface AccessLines {
  siteId: string
  /** Identity of the log, the same after it was renamed, compressed or copied; 1 to 80 characters, not `(…)`. */
  source: string
  path: string // where it was read last, for people; at most 1,024 characters
  format: string // at most 200 characters
  from: number // offset of the first of these lines, in the decompressed log
  to: number // offset after the last one
  /** Hash of the last line, which ends at `to`: a reader that continues there checks that the log still has it. */
  tail: string // 1 to 80 characters
  /**
   * For each event of the batch: the bytes of the response if the event is the request of one of these lines, otherwise
   * null (the start of a session, a referral). Agents are counted from the events that are stored.
   */
  requests: (number | null)[]
  /** The requests of others, by hour. */
  counts: { hourMs: number; kind: OtherKind; requests: number; bytes: number }[]
  /** lines = requests by agents + people + excluded + bad; excluded has assets, bots, comments and blank lines. */
  sums: { lines: number; people: number; excluded: number; bad: number }
  newestMs: number | null // time of the newest request of these lines
  /** A request of a log drain, which has no offset: its source is a hash of its body, remembered for 7 days. */
  isDrain?: boolean
}

/**
 * `stored`: the lines follow those that were stored before, and were stored with their events. `known`: they were
 * stored before. `behind`: they do not begin where the log was read to; nothing is stored, and the reader continues at
 * `position`. Position and tail are those after this batch, 0 and '' for a log that is not known.
 */
export interface AccessResult {
  state: 'stored' | 'known' | 'behind'
  position: number
  tail: string
  /** Requests by agents among these lines: new ones, those that were stored before, and those beyond a limit (bad). */
  stored: number
  deduped: number
  rejected: number
}

/** A log and its lines. lines = stored + deduped + people + assets + bots + notes + bad. */
export interface AccessSource {
  siteId: string
  source: string // `(drains)` and `(older)`: the sums of logs that are no longer remembered one by one
  path: string
  format: string
  position: number
  tail: string
  lines: number
  stored: number // requests by agents
  deduped: number
  people: number
  assets: number
  bots: number
  notes: number // comments and blank lines
  bad: number
  bytes: number // of all responses that are counted
  newestMs: number | null // of its lines
  updatedMs: number // when lines were stored last
  isDrain: boolean
}

export type KindCounts = { [kind in RequestKind]: { requests: number; bytes: number } }

/** Exact counts of a range: of each hour and of each site that has any, ascending. */
export interface RequestCounts {
  byHour: ({ hourMs: number } & KindCounts)[]
  bySite: ({ siteId: string } & KindCounts)[]
}

/**
 * Written by `events.append`. Counts and positions are stored in the transaction of the events, and outlive them: the
 * hours for as long as rollups, a log until it was not read for that long.
 */
export interface AccessLogStore {
  /** Most recently read first, at most 1,000; the drains of a site are one entry. */
  sources(orgId: string): Promise<AccessSource[]>
  /** How far a log was read; null for one that is not known. */
  position(query: {
    orgId: string
    siteId: string
    source: string
  }): Promise<{ position: number; tail: string } | null>
  /** Both ends are rounded down to the hour; `untilMs` null: no end. */
  counts(query: {
    orgId: string
    sinceMs: number
    untilMs: number | null
    siteIds?: string[]
  }): Promise<RequestCounts>
  /**
   * Adds a bounded number of old hours and of logs that were not read for long to sums, so that all counts still add
   * up. Call until `done`.
   */
  expire(command: { orgId: string; beforeMs: number; now: number }): Promise<{ rows: number; done: boolean }>
}
