/** Query of a measure over time under any filter, by the values of one field: what alert rules are evaluated from. */
import type { AlsoFilter } from './event-counts.ts'
import type { EventFieldName, EventFilter } from './event-fields.ts'

/** A filter on any field that has codes, without times and text. */
export interface SeriesFilter {
  filter: EventFilter
  also?: AlsoFilter[]
}

/** What is computed beside the number of events. */
export type SeriesValue = 'sessions' | 'subjects' | 'p95' | 'tokens'

export interface SeriesQuery extends SeriesFilter {
  orgId: string
  part?: SeriesFilter // also counts the events that match this too
  value?: SeriesValue
  by: Exclude<EventFieldName, 'sessionId' | 'subject'> | null
  groupsMax: number // those with the most events
  edges: number[] // ascending times: the start of each step and the end of the last one
  budgetMs: number
}

/**
 * Whole hours come from the rollups where these can answer, and count expired events too. Everything else is counted
 * from the columns of stored events, newest first.
 */
export interface Series {
  groups: SeriesGroup[] // most events first; without `by` one
  sinceMs: number // steps before this edge are incomplete; the last edge when nothing is complete
  rollups: boolean // whether whole hours came from the rollups
}

/** Numbers by step. */
export interface SeriesGroup {
  group: string | null // null: values beyond the limit of the field or of memory; '' without `by`
  events: number[]
  part: number[] // empty without `part`
  /**
   * Empty without `value`. Sessions and subjects are distinct per step. The p95 of durations in milliseconds is within
   * 2 % and 0 without durations. Tokens are the sum of `metadata.tokens`, a whole
   * number or an object with `input` and `output`.
   */
  values: number[]
}
