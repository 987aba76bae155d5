/** Queries that count events (metrics, breakdowns, histograms, new values) and commands that delete events. */
import type { CountedMember, EventFieldName, EventFilter } from './event-fields.ts'

export type { CountedMember }

/** The hours to count, by occurredAt. Both ends are rounded down to the hour. */
export interface MetricsQuery {
  orgId: string
  sinceMs: number // inclusive
  untilMs: number | null // exclusive; null: no end
  siteIds?: string[] // any of
  types?: string[] // any of; a trailing `.*` is a prefix
  outcomes?: string[] // any of
  rowsMax: number
}

export interface MetricsRow {
  siteId: string
  bucketStartMs: number
  type: string
  outcome: string
  count: number
}

/** All events that were accepted and not erased, including expired ones. Exact at every moment (contract §7). */
export interface Metrics {
  total: number
  byType: { [type: string]: number }
  byOutcome: { [outcome: string]: number }
  byHour: { hourStartMs: number; count: number }[] // ascending, without zeros
  rows: MetricsRow[] // ascending by hour, site, type, outcome; at most `rowsMax`
  truncated: boolean // more rows exist; the sums above include them
}

/** The same with its rows as JSON text, so that the calling thread does not parse and write thousands of them. */
export interface MetricsText extends Omit<Metrics, 'rows'> {
  rowsJson: string // a list of { orgId, siteId, bucketStart (ISO 8601), type, outcome, count }
}

/**
 * What is counted by: a field; `vouched`, the known verdicts of the appliance and those stored before judges were
 * recorded; or `judgement`, a verdict with its judge and the key behind it, as the JSON of a `Judgement`.
 */
export type CountedBy = CountedMember | 'vouched' | 'judgement'

export interface BreakdownQuery {
  orgId: string
  sinceMs: number // as in MetricsQuery
  untilMs: number | null
  siteIds?: string[]
  types?: string[] // any of; a trailing `.*` is a prefix
  by: CountedBy
  values?: string[] // only these
  stepMs: number | null // whole hours, counted from 1970 UTC; null: one step for the whole range
  edges?: number[] // instead of `stepMs`: starts of the steps, whole hours, ascending; for days of a time zone
}

/** Events without the field are in no row. A step has at most 1,000 values; further values count as one. */
export interface Breakdown {
  rows: {
    value: string | null // null: values beyond the limit
    outcome: string
    startMs: number
    firstMs: number // the first hour of the step with such an event
    lastMs: number
    count: number
  }[]
}

/** A filter on a field that `EventFilter` does not have. */
export interface AlsoFilter {
  by: CountedMember
  values: string[] // any of; '' matches events without the field
}

export interface BreakdownBy {
  by: CountedBy | 'agent' // 'agent': vendor, name and purpose together, of events with a name or a purpose
  and?: CountedBy // counts pairs of values, including events without this field
  types?: string[] // any of; a trailing `.*` is a prefix
}

export interface FilteredCountsQuery {
  orgId: string
  filter: EventFilter // without times and text
  also?: AlsoFilter[]
  edges: number[] // ascending times: an event counts in the step of the last edge at or before it
  by?: 'occurred' | 'received' // the time that `edges` divide; default 'occurred'
  arrivals?: Arrivals // default: all
  breakdowns: BreakdownBy[]
  budgetMs: number
}

/** A range of arrival numbers. */
export interface Arrivals {
  afterSeq: number // exclusive
  untilSeq: number // inclusive
  exceptKeys?: string[] // excludes events sent with these keys
}

/** Exact counts of the stored events in one snapshot, without texts and rollups. */
export interface FilteredCounts {
  rows: { type: string; outcome: string; startMs: number; count: number }[]
  /**
   * In the order of `breakdowns`. `value` null: beyond the limit; '' (pairs only): the event lacks the field. For
   * agents it is the JSON of `AgentNames`.
   */
  breakdowns: {
    value: string | null
    and: string | null
    outcome: string
    startMs: number
    count: number
  }[][]
  /** The most events of this time that may have matched and have expired. */
  expired: number
  complete: boolean // false: too many events for the budget, and the counts are empty
}

export interface HistogramQuery {
  orgId: string
  filter: EventFilter
  edges: number[] // ascending times: the start of each step and the end of the last one
  budgetMs: number
}

/** Stored events by outcome and step, counted from the newest back. With `filter.text` every candidate is parsed. */
export interface EventHistogram {
  rows: { outcome: string; startMs: number; count: number }[]
  exactSinceMs: number // earlier events are counted in part; the first edge unless the budget ran out
}

/**
 * A field, or what is read from the event's JSON: `error`, `agent.userAgent`, and the HTTP status of the metadata. The
 * evidence of verdicts stored before judges were recorded is read from the JSON too.
 */
export type TopField = EventFieldName | 'userAgent' | 'error' | 'status'

export interface TopQuery {
  orgId: string
  filter: EventFilter // without text
  also?: AlsoFilter[]
  eventsMax: number // of the newest matching events
  groups: { by: TopField[]; max: number; sum?: 'bytes' }[] // `sum`: of that number of the metadata
  budgetMs: number
}

/** The values of the newest matching events. */
export interface Top {
  events: number // number of events counted
  complete: boolean // whether every matching event was counted
  newestMs: number | null
  oldestMs: number | null
  /** In the order of `groups`. Rows: most frequent first, then by value. */
  groups: {
    distinct: number // total number of values; `rows` has the first `max`
    /** null: the event lacks the field */
    rows: { values: (string | null)[]; count: number; lastMs: number; sum?: number }[]
  }[]
}

export interface NewValuesQuery {
  orgId: string
  field: EventFieldName
  arrivals: Arrivals
  max: number // stops the search
}

/** Values that no earlier stored event has, whoever sent it, in order of first arrival. */
export interface NewValues {
  values: { value: string; seq: number; receivedAtMs: number }[]
}

/** A field's value, or the reason it is missing: the event lacks the field, or the value is beyond the limit. */
export type CountedName = { name: string } | 'missing' | 'other'

export type ClassVendorQuery = Omit<BreakdownQuery, 'by' | 'values' | 'stepMs'>

/** Every event of the range is in one row, except those that expired before schema 10. */
export interface ClassVendor {
  rows: { class: CountedName; vendor: CountedName; count: number }[] // most frequent first
}

export interface AgentsQuery extends ClassVendorQuery {
  outcome?: string // default: every outcome
}

/**
 * Events with a name or a purpose, by vendor, name and purpose together, most frequent first. Events that expired
 * before schema 13 are in no row.
 */
export interface AgentCounts {
  rows: (AgentNames & { count: number })[]
}

export interface AgentNames {
  vendor: CountedName
  name: CountedName
  purpose: CountedName
}

export interface DurationsQuery {
  orgId: string
  sinceMs: number // as in MetricsQuery
  untilMs: number | null
  siteIds?: string[]
  types?: string[] // any of; a trailing `.*` is a prefix
  stepMs: number | null // as in BreakdownQuery
  edges?: number[]
  together?: boolean // counts all tools together, in rows with the tool null
}

/** Durations of calls by tool. Quantiles are within 2 % or 0.01 ms; counts are exact. */
export interface Durations {
  rows: {
    tool: string | null // null: tools beyond the limit
    startMs: number
    count: number // events with the tool and a duration
    p50Ms: number
    p95Ms: number
    p99Ms: number
  }[]
}

/** Whole days or months, UTC. Both ends are rounded down to the day. */
export interface DistinctQuery {
  orgId: string
  of: 'session' | 'subject'
  sinceMs: number
  untilMs: number | null
  siteIds?: string[]
  step: 'day' | 'month'
}

/** Distinct values per step. A month is not the sum of its days. The standard error is 1.6 %. */
export interface Distinct {
  rows: { startMs: number; count: number }[] // ascending, without empty steps
}

export interface TrustReachedQuery {
  orgId: string
  sinceMs: number // inclusive, by occurredAt
  untilMs: number // exclusive
  siteIds?: string[] // of the counted events; their sessions may continue elsewhere
  types: string[] // any of; a trailing `.*` is a prefix
  filter?: EventFilter // applies to the events, in addition to `types`; without times and text
  also?: AlsoFilter[]
  deadlineMs: number // when the query gives up
}

/** Events by the highest trust that any event of their session reached, up to a day before and after the range. */
export interface TrustReached {
  rows: { trust: string | null; events: number; sessions: number }[] // highest first; null: no known trust
  complete: boolean // false: too many sessions; the rows are of some, with all of their events
}

/** A row of the event tables that disagrees with the others. */
export interface EventFault {
  orgId: string | null // null: the database itself
  place: string // e.g. "arrivals 257 to 512"
  problem: string
}

export interface EventVerdict {
  orgs: { orgId: string; events: number }[]
  faults: EventFault[] // at most 100 per organization
}

/** Retention goes by arrival time. Metrics keep counting expired events. */
export interface ExpireCommand {
  orgId: string
  receivedBeforeMs: number
  /** Also expires events with a smaller arrival number, whatever their time. */
  beforeSeq?: number
  /** Arrivals after this time have a wrong clock; later arrivals show their age. Default: none has. */
  receivedUntilMs?: number
}

export interface ExpireResult {
  events: number // deleted in this step
  done: boolean // nothing that old remains; otherwise call again
}

/** Events to erase: of these sessions or these subjects. With both, an event must match both. */
export interface EraseCommand {
  orgId: string
  sessionIds: string[]
  subjects: string[]
}

/** The result of one erasure step. */
export interface EraseResult {
  events: number
  deliveries: number // webhook deliveries that contained such events
  samples: number // samples of rejected requests
  next: EraseCursor | null // pass to the next step; null: complete
}

/** Progress of an erasure: events up to an arrival, then deliveries. */
export type EraseCursor = ({ among: 'events' } & EraseRange) | { among: 'deliveries'; after: number }

/** Arrivals left to examine. `until` is the newest when the erasure began, because it might never end beside ingest. */
export interface EraseRange {
  after: number
  until: number
}

/** A rollup row that differs from its recount. */
export interface RollupRepair {
  row: string // the engine's name of the row
  difference: number
}
