/** Explore: one measure of the stored events, by the values of a field or of a member of their metadata, over time. */
import type { AlsoFilter } from './event-counts.ts'
import type { EventFieldName, EventFilter } from './event-fields.ts'

/**
 * What is measured of the matching events:
 *
 * - `events`: their number; `errors`: of those with the outcome `error`
 * - `sessions`, `subjects`: distinct values
 * - `p50`, `p95`, `p99`: quantiles of `durationMs`, within 2 % or 0.01 ms
 * - `bytes`: the sum of `metadata.bytes`
 * - `tokens`: the sum of `metadata.tokens`, or of its `input` and `output`
 *
 * Sums add whole numbers from 0 up. Other values count as missing.
 */
export const exploreMeasures = [
  'events',
  'errors',
  'sessions',
  'subjects',
  'p50',
  'p95',
  'p99',
  'bytes',
  'tokens',
] as const
export type ExploreMeasure = (typeof exploreMeasures)[number]

/**
 * A path below `metadata`. A dot separates members or belongs to the name of one: of `a.b`, the member "a.b" wins over
 * the member "b" of "a". Strings, numbers and booleans are values by their text, lists and objects by their JSON. A
 * missing member, null and '' are missing.
 */
export interface MetadataPath {
  metadata: string // 1 to 200 characters, at most 8 parts
}

export interface ExploreQuery {
  orgId: string
  filter: EventFilter // without times
  also?: AlsoFilter[]
  metadata?: { path: string; values: string[] }[] // each any of its values; '' matches events without the member
  measure: ExploreMeasure
  by: EventFieldName | MetadataPath | null
  edges: number[] // ascending times: an event counts in the step of the last edge at or before it
  rowsMax: number
  budgetMs: number
}

/** One measure over the range. Null: nothing to measure, for quantiles. */
export interface ExploredNumbers {
  events: number // that have what is measured
  total: number | null // of the whole range: for distinct values and quantiles not the sum of the steps
  steps: (number | null)[]
  /** The relative standard error of `total`; 0 for exact numbers. */
  error: number
}

/** Counts stored events in one snapshot. */
export interface Explored {
  rows: (ExploredNumbers & { value: string })[] // most first; quantiles by their number of events
  missing: ExploredNumbers | null // events without the field
  other: (ExploredNumbers & { values: number }) | null // all further values together
  all: ExploredNumbers
  /** More values than fit in memory: `other` may contain values that are larger than those in `rows`. */
  isCut: boolean
  /** The most events of this time that may have matched and have expired. */
  expired: number
  complete: boolean // false: the budget ended, and there are no numbers
}

/** The answer for an organization without events, and for one whose budget ended. */
export function nothingExplored({ edges, measure }: ExploreQuery, complete: boolean): Explored {
  const isQuantile = measure === 'p50' || measure === 'p95' || measure === 'p99'
  const emptyValue = isQuantile ? null : 0
  const totals = { events: 0, total: emptyValue, steps: edges.slice(1).map(() => emptyValue), error: 0 }
  return { rows: [], missing: null, other: null, all: totals, isCut: false, expired: 0, complete }
}

/** Of a read that may take long: `signal` ends it with `cancelled`; `onProgress` gets shares from 0 to 1. */
export interface Following {
  signal?: AbortSignal
  onProgress?: (share: number) => void
}
