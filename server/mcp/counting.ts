/** Exact counts for assistants: from the hours behind GET /v1/metrics, or under other filters from the events. */
import { hourRows } from '../counts/period-counts.ts'
import { invalidQuery } from '../http/request.ts'
import { limits } from '../limits.ts'
import { countedMembers, filterableFields } from '../../db/contract/event-fields.ts'
import { vouchedJudges } from '../../db/contract/provenance.ts'
import type { CountedBy, CountedMember, EventFilter, EventStore } from '../../db/contract/store.ts'
import { hourMs } from '../../db/contract/units.ts'

type CountedEvents = Pick<EventStore, 'metrics' | 'breakdown' | 'filteredCounts' | 'histogram'>

const hourlyFields = ['type', 'outcome', 'siteId'] as const

export const countedFields: readonly string[] = [...hourlyFields, ...countedMembers]

export interface Counting {
  orgId: string
  filter: EventFilter & { sinceMs: number }
  nowMs: number
  /** Hourly counts may have expired events before it: then only stored ones are counted. */
  storedSinceMs?: number
}

export interface Counts {
  total: number
  steps: Map<number, number> // by their start, without those that have no events
  outcomes: Map<string, number>
  types: Map<string, number> | null // null: unknown
  complete: boolean
}

interface Groups {
  rows: [value: string, count: number][] // most frequent first
  beyond: number // events with further values, which are not counted one by one
}

/** An event is at most minutes ahead; beyond that its arrival counts. */
const endOf = ({ filter, nowMs }: Counting): number =>
  Math.max(filter.sinceMs, filter.untilMs ?? (Math.floor(nowMs / hourMs) + 2) * hourMs)

/** Whether the hourly counts have the filter's fields: type, outcome and site. */
function isHourly(filter: EventFilter): boolean {
  const { types: _types, outcomes: _outcomes, siteIds: _siteIds, sinceMs, untilMs, ...otherFilters } = filter
  const onTheHour = [sinceMs, untilMs].every((ms) => ms === undefined || ms % hourMs === 0)
  return onTheHour && Object.values(otherFilters).every((value) => value === undefined)
}

/** In steps from each of `edges` on. Null: more than one question may read. */
export async function countEvents(
  events: CountedEvents,
  counting: Counting,
  edges: number[] = [counting.filter.sinceMs],
): Promise<Counts | null> {
  const { filter } = counting
  if (filter.text !== undefined) return searchCounts(events, counting, edges)
  const { storedSinceMs = -Infinity } = counting
  const hourlyFilter = filter.sinceMs < storedSinceMs ? null : (hourlyVouched(filter) ?? hourlyMember(filter))
  if (hourlyFilter !== null) {
    const counts = await memberCounts(events, counting, edges, hourlyFilter)
    if (counts !== null) return counts
  }
  if (!isHourly(filter) || filter.sinceMs < storedSinceMs) return eventCounts(events, counting, edges)
  return hourSums(events, counting, edges)
}

const noCounts = () => ({
  total: 0,
  steps: new Map<number, number>(),
  outcomes: new Map<string, number>(),
  types: new Map<string, number>(),
  complete: true,
})

function addTo(
  counts: ReturnType<typeof noCounts>,
  { type, outcome, startMs, count }: { type: string; outcome: string; startMs: number; count: number },
): void {
  counts.total += count
  add(counts.steps, startMs, count)
  add(counts.outcomes, outcome, count)
  add(counts.types, type, count)
}

/** The start of the step of an hour. Hours come mostly in order. */
function stepper(edges: number[]): (atMs: number) => number {
  let step = 0
  return (atMs) => {
    if (edges[step]! > atMs) step = 0
    while (step + 1 < edges.length && edges[step + 1]! <= atMs) step++
    return edges[step]!
  }
}

const timeOf = (counting: Counting) => {
  const { siteIds, sinceMs } = counting.filter
  return { sinceMs, untilMs: endOf(counting), ...(siteIds && { siteIds }) }
}

const hoursOf = (counting: Counting) => {
  const { types, outcomes } = counting.filter
  return { ...timeOf(counting), ...(types && { types }), ...(outcomes && { outcomes }) }
}

/** Without rows by site, type and outcome, which are many. */
async function hourSums(events: CountedEvents, counting: Counting, edges: number[]): Promise<Counts> {
  const { orgId } = counting
  const sums = await events.metrics({ orgId, ...hoursOf(counting), rowsMax: 0 })
  const step = stepper(edges)
  const steps = new Map<number, number>()
  for (const { hourStartMs, count } of sums.byHour) add(steps, step(hourStartMs), count)
  const [types, outcomes] = [sums.byType, sums.byOutcome].map((counts) => new Map(Object.entries(counts)))
  return { total: sums.total, steps, types: types!, outcomes: outcomes!, complete: true }
}

/** The filter without its range, which `edges` are. */
function fieldsOf({ sinceMs: _since, untilMs: _until, ...fields }: EventFilter): EventFilter {
  return fields
}

/** The lists of a filter whose fields the hourly counts break down. */
const countedLists = filterableFields.flatMap(({ name, filter, counted }) =>
  counted ? [{ list: filter, by: name as CountedMember }] : [],
)

/** The one field beside type, outcome and site that is filtered by its values; null: none, or more than one. */
function hourlyMember(filter: EventFilter): { by: CountedMember; values: string[] } | null {
  const filteredLists = countedLists.filter(({ list }) => filter[list] !== undefined)
  const [only] = filteredLists
  const values = only && filter[only.list]
  if (only === undefined || values === undefined || filteredLists.length > 1) return null
  const otherFilters = { ...filter, [only.list]: undefined }
  return isHourly(otherFilters) && !values.includes('') ? { by: only.by, values } : null
}

/** Verdicts that the appliance vouches for, which hourly counts have too. */
function hourlyVouched(filter: EventFilter): { by: CountedBy; values: string[] } | null {
  const { verdicts, judges, ...otherFilters } = filter
  const isVouched =
    judges?.length === vouchedJudges.length && judges.every((judge) => vouchedJudges.includes(judge))
  if (verdicts === undefined || !isVouched || !isHourly(otherFilters) || verdicts.includes('')) return null
  return { by: 'vouched', values: verdicts }
}

/** Null: some values are counted as one, because an hour has too many. */
async function memberCounts(
  events: CountedEvents,
  counting: Counting,
  edges: number[],
  { by: dimension, values }: { by: CountedBy; values: string[] },
): Promise<Counts | null> {
  const { types, outcomes } = counting.filter
  const range = { ...timeOf(counting), ...(types && { types }) }
  const { rows } = await events.breakdown({
    orgId: counting.orgId,
    ...range,
    by: dimension,
    stepMs: null,
    ...(edges.length > 1 && { edges }),
  })
  if (rows.some(({ value }) => value === null)) return null
  const counts = noCounts()
  const step = stepper(edges)
  for (const { value, outcome, startMs, count } of rows) {
    if (value === null || !values.includes(value) || outcomes?.includes(outcome) === false) continue
    addTo(counts, { type: '', outcome, startMs: step(Math.max(startMs, edges[0]!)), count })
  }
  return { ...counts, types: null }
}

async function eventCounts(
  events: CountedEvents,
  counting: Counting,
  edges: number[],
): Promise<Counts | null> {
  const result = await events.filteredCounts({
    orgId: counting.orgId,
    filter: fieldsOf(counting.filter),
    edges: [...edges, endOf(counting)],
    breakdowns: [],
    budgetMs: limits.filteredCountMsMax,
  })
  if (!result.complete) return null
  const counts = noCounts()
  for (const row of result.rows) addTo(counts, row)
  return { ...counts, complete: result.expired === 0 || counting.storedSinceMs !== undefined }
}

async function searchCounts(events: CountedEvents, counting: Counting, edges: number[]): Promise<Counts> {
  const { orgId, filter } = counting
  const query = { orgId, filter, edges: [...edges, endOf(counting)], budgetMs: limits.histogramMsMax }
  const { rows, exactSinceMs } = await events.histogram(query)
  const counts = noCounts()
  for (const row of rows) addTo(counts, { ...row, type: '' })
  return { ...counts, types: null, complete: exactSinceMs <= filter.sinceMs }
}

/** By one of `countedFields`. Null: more than one question may read. Throws 400 for what cannot be grouped. */
export async function groupEvents(
  events: CountedEvents,
  counting: Counting,
  dimension: string,
): Promise<Groups | null> {
  const { filter } = counting
  if (dimension === 'siteId') {
    if (!isHourly(filter))
      throw invalidQuery('by', 'by siteId allows only the filters type, outcome and siteId, over whole hours')
    const sites = new Map<string, number>()
    for (const { siteId, count } of await hourRows(events, counting.orgId, hoursOf(counting)))
      add(sites, siteId, count)
    return { rows: sorted(sites), beyond: 0 }
  }
  if (dimension === 'type' || dimension === 'outcome') {
    if (dimension === 'type' && filter.text !== undefined)
      throw invalidQuery('by', 'q cannot be combined with this value of by')
    const counts = await countEvents(events, counting)
    // The hourly counts of another field have no types.
    const whole =
      dimension === 'type' && counts?.types === null
        ? await eventCounts(events, counting, [filter.sinceMs])
        : counts
    const groups = dimension === 'type' ? whole?.types : whole?.outcomes
    return groups == null ? null : { rows: sorted(groups), beyond: 0 }
  }
  if (filter.text !== undefined) throw invalidQuery('by', 'q cannot be combined with this value of by')
  const fieldGroups = await memberGroups(events, counting, dimension as CountedMember)
  if (fieldGroups === null) return null
  const values = new Map<string, number>()
  let beyond = 0
  for (const { value, outcome, count } of fieldGroups) {
    if (filter.outcomes !== undefined && !filter.outcomes.includes(outcome)) continue
    if (value === null) beyond += count
    else add(values, value, count)
  }
  return { rows: sorted(values), beyond }
}

interface Group {
  value: string | null
  outcome: string
  count: number
}

async function memberGroups(
  events: CountedEvents,
  counting: Counting,
  dimension: CountedMember,
): Promise<Group[] | null> {
  const { orgId, filter } = counting
  if (isHourly(filter)) {
    const types = filter.types && { types: filter.types }
    return (
      await events.breakdown({ orgId, ...timeOf(counting), ...types, by: vouchedOf(dimension), stepMs: null })
    ).rows
  }
  const result = await events.filteredCounts({
    orgId,
    filter: fieldsOf(filter),
    edges: [filter.sinceMs, endOf(counting)],
    breakdowns: [{ by: filter.judges === undefined ? vouchedOf(dimension) : dimension }],
    budgetMs: limits.filteredCountMsMax,
  })
  return result.complete ? result.breakdowns[0]! : null
}

/** Verdicts that senders gave themselves are not among the verdicts, unless judges are asked for. */
function vouchedOf(dimension: CountedMember): CountedBy {
  return dimension === 'verdict' ? 'vouched' : dimension
}

function add<K>(counts: Map<K, number>, key: K, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

function sorted(counts: Map<string, number>): [string, number][] {
  return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
}

/** Starts of at most `max` steps of whole hours from `sinceMs` on, at multiples of the step. */
export function stepsOf(counting: Counting, max: number): { edges: number[]; stepHours: number } {
  const { sinceMs } = counting.filter
  const endMs = endOf(counting)
  const hours = (endMs - sinceMs) / hourMs
  const stepHours =
    [1, 2, 3, 6, 12, 24, 48, 168, 336].find((candidate) => hours / candidate <= max - 1) ??
    Math.ceil(hours / (max - 1))
  const stepMs = stepHours * hourMs
  const edges = [sinceMs]
  for (let edgeMs = (Math.floor(sinceMs / stepMs) + 1) * stepMs; edgeMs < endMs; edgeMs += stepMs)
    edges.push(edgeMs)
  return { edges, stepHours }
}
