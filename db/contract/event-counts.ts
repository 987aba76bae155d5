/** Queries that count events (metrics, breakdowns, histograms, newest values), and commands that delete events. */
import type { EventFieldName } from './event-fields.ts'
import type { EventFilter } from './event-filter.ts'

/** Which hours to count, by occurredAt; both ends are cut down to the hour. */
export interface MetricsQuery {
  orgId: string
  sinceMs: number // inclusive
  untilMs: number | null // exclusive; null: without end
  siteIds?: string[] // any of
  rowsMax: number
}

export interface MetricsRow {
  siteId: string
  bucketStartMs: number
  type: string
  outcome: string
  count: number
}

/** Everything that was accepted and not erased, whatever retention took; exact at every moment (contract §7). */
export interface Metrics {
  total: number
  byType: { [type: string]: number }
  byOutcome: { [outcome: string]: number }
  byHour: { hourStartMs: number; count: number }[] // ascending, without zeros
  rows: MetricsRow[] // ascending by hour, site, type, outcome; the first `rowsMax`
  truncated: boolean // there are more rows; the sums above count them too
}

/** The same with its rows as JSON text, so that a calling thread need not parse and write thousands of them. */
export interface MetricsText extends Omit<Metrics, 'rows'> {
  rowsJson: string // a list of { orgId, siteId, bucketStart (ISO 8601), type, outcome, count }
}

/** Members by whose values the dashboard counts. */
export type CountedMember =
  | 'class'
  | 'vendor'
  | 'name'
  | 'purpose'
  | 'trust'
  | 'tool'
  | 'protocol'
  | 'decision'
  | 'ruleId'
  | 'reason'
  | 'page'

export interface BreakdownQuery {
  orgId: string
  sinceMs: number // as in MetricsQuery
  untilMs: number | null
  siteIds?: string[]
  types?: string[] // any of; a trailing `.*` is a prefix
  by: CountedMember
  stepMs: number | null // whole hours, counted from 1970 UTC; null: one step over the whole range
  edges?: number[] // instead of `stepMs`: where steps begin, whole hours, ascending; those of days of a time zone
}

/** Events without the member are in none of the rows. A step has 1,000 values at most, the others count as one. */
export interface Breakdown {
  rows: {
    value: string | null // null: beyond the value limit
    outcome: string
    startMs: number
    firstMs: number // the first hour of the step in which there was one
    lastMs: number
    count: number
  }[]
}

/** Values of a field that an event filter does not know. */
export interface AlsoFilter {
  by: CountedMember
  values: string[] // any of; '' for events without it
}

export interface TallyCut {
  by: CountedMember | 'agent' // 'agent': vendor, name and purpose together, of events with one of the last two
  and?: CountedMember // counts pairs of values, those without the field too
  types?: string[] // any of; a trailing `.*` is a prefix
}

export interface TallyQuery {
  orgId: string
  filter: EventFilter // without times and text
  also?: AlsoFilter[]
  edges: number[] // moments, ascending: an event counts in the step that begins last before it
  by?: 'occurred' | 'received' // the time that `edges` divide; 'occurred' when left out
  arrivals?: Arrivals // without it, all of them
  cuts: TallyCut[]
  budgetMs: number
}

/** A range of arrival numbers. */
export interface Arrivals {
  afterSeq: number // exclusive
  untilSeq: number // inclusive
  exceptKeys?: string[] // events that these keys sent are left out
}

/** Exact for what is stored, at the moment it was asked; texts and rollups are not looked at. */
export interface EventTally {
  rows: { type: string; outcome: string; startMs: number; count: number }[]
  /**
   * As `cuts` were asked; `value` null: beyond the value limit, '' (only in pairs): the field is missing. Of agents it
   * is the JSON of `AgentNames`.
   */
  cuts: { value: string | null; and: string | null; outcome: string; startMs: number; count: number }[][]
  /** Events of the time that retention took and that the filter may have taken, at most. */
  expired: number
  complete: boolean // false: there were too many for the budget, and the counts are empty
}

export interface HistogramQuery {
  orgId: string
  filter: EventFilter
  edges: number[] // moments, ascending: where the steps begin, and where the last one ends
  budgetMs: number
}

/** Stored events by outcome and step, counted from the newest back. With `filter.text` every candidate is parsed. */
export interface EventHistogram {
  rows: { outcome: string; startMs: number; count: number }[]
  exactSinceMs: number // events before it are counted in part; the first edge unless the budget was used up
}

/** A field that the store indexes, or one that it reads from the event's JSON: `agent.userAgent` and `error`. */
export type TopField = EventFieldName | 'userAgent' | 'error'

export interface TopQuery {
  orgId: string
  filter: EventFilter // without text
  also?: AlsoFilter[]
  eventsMax: number // of the newest matching events
  groups: { by: TopField[]; max: number }[]
  budgetMs: number
}

/** The values among the newest matching events. */
export interface Top {
  events: number // how many were counted
  complete: boolean // whether that is every matching event
  newestMs: number | null
  oldestMs: number | null
  /** As `groups` were asked for; the most frequent first, then in the order of their values. */
  groups: {
    distinct: number // how many there are, of which `rows` has the first `max`
    rows: { values: (string | null)[]; count: number; lastMs: number }[] // null: the event lacks the field
  }[]
}

export interface NewValuesQuery {
  orgId: string
  field: EventFieldName
  arrivals: Arrivals
  max: number // ends the search
}

/** Values that no stored event before had, whoever sent it; in order of their first arrival. */
export interface NewValues {
  values: { value: string; seq: number; receivedAtMs: number }[]
}

/** A member's value, or why it has none: events may lack the member, and values past a limit count as one. */
export type CountedName = { name: string } | 'missing' | 'other'

export type ClassVendorQuery = Omit<BreakdownQuery, 'by' | 'stepMs'>

/** Every event of the range is in one row, but those that retention took before this was counted (schema 10). */
export interface ClassVendor {
  rows: { class: CountedName; vendor: CountedName; count: number }[] // the most frequent first
}

export interface AgentsQuery extends ClassVendorQuery {
  outcome?: string // without it every outcome
}

/**
 * Events with a name or a purpose, by vendor, name and purpose together; the most frequent first. Those that retention
 * deleted before this was counted (schema 13) are in no row.
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
  together?: boolean // all tools as one, whose rows have the tool null
}

/** How long calls of each tool took. Quantiles are off by 2 % at most, or by 0.01 ms; counts are exact. */
export interface Durations {
  rows: {
    tool: string | null // null: beyond the value limit
    startMs: number
    count: number // events with the tool and a duration
    p50Ms: number
    p95Ms: number
    p99Ms: number
  }[]
}

/** Whole days and months, UTC; both ends are cut down to the day. */
export interface DistinctQuery {
  orgId: string
  of: 'session' | 'subject'
  sinceMs: number
  untilMs: number | null
  siteIds?: string[]
  step: 'day' | 'month'
}

/** How many different ones there were; a month's number is not the sum of its days. The standard error is 1.6 %. */
export interface Distinct {
  rows: { startMs: number; count: number }[] // ascending, without steps that had none
}

export interface TrustReachedQuery {
  orgId: string
  sinceMs: number // inclusive, by occurredAt
  untilMs: number // exclusive
  siteIds?: string[] // of the events that are counted; their sessions may go on elsewhere
  types: string[] // any of; a trailing `.*` is a prefix
  filter?: EventFilter // of the events, beside their types; without times and text
  also?: AlsoFilter[]
  deadlineMs: number // after which it gives up
}

/** Events by the highest trust that any event of their session reached, up to a day before and after the range. */
export interface TrustReached {
  rows: { trust: string | null; events: number; sessions: number }[] // highest first; null: no known trust
  complete: boolean // false: there were too many sessions; some are missing, with their events
}

/** Something in the event tables that does not fit the rest. */
export interface EventFault {
  orgId: string | null // null: the database itself
  place: string // e.g. "arrivals 257 to 512"
  problem: string
}

export interface EventVerdict {
  orgs: { orgId: string; events: number }[]
  faults: EventFault[] // the first hundred of each organization
}

/** Retention counts from arrival; metrics keep counting what it took. */
export interface ExpireCommand {
  orgId: string
  receivedBeforeMs: number
  /** Also what has a smaller arrival number, whatever its time. */
  beforeSeq?: number
  /**
   * Arrivals after this have the time of a wrong clock, so those that came later say how old they are; without it no
   * arrival has.
   */
  receivedUntilMs?: number
  small?: boolean // a step that writes as little as possible, for a disk without room
}

export interface ExpireResult {
  events: number // taken by this step
  done: boolean // nothing that old is left; otherwise call again
}

/** Events to erase: of these sessions, or of these subjects; of both only where both fit. */
export interface EraseCommand {
  orgId: string
  sessionIds: string[]
  subjects: string[]
}

/** How an erasure goes on from one step to the next. */
export interface EraseResult {
  events: number
  deliveries: number // webhook deliveries that carried such events
  samples: number // of refused requests
  next: EraseCursor | null // to be given to the next step; null: all is gone
}

/** How far an erasure has come: events up to an arrival first, then deliveries. */
export type EraseCursor = ({ among: 'events' } & EraseRange) | { among: 'deliveries'; after: number }

/** Arrivals that are still to be looked at; `until` is the last one of when it began, or it might never end. */
export interface EraseRange {
  after: number
  until: number
}

/** A rollup row that differs from its recount. */
export interface RollupRepair {
  row: string // the engine's name for it
  difference: number
}
