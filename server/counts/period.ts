/** What a dashboard page counts, from its URL: the period with its steps, the previous period, sites and filters. */
import { isoTime } from '../clock.ts'
import { invalidQuery, parseQueryTime, type ParameterKind, type Query } from '../http/request.ts'
import { edgesOf, isZone, momentOf, moved, steps, wallOf, type Step } from '../text/time-zone.ts'
import {
  pageFields,
  pageFilterName,
  type EventFieldName,
  type FilterLists,
} from '../../db/contract/event-fields.ts'
import { onlyVouched } from '../../db/rules/vouched-verdicts.ts'
import { isLongerThan } from '../text/text.ts'
import type { AlsoFilter, CountedMember, EventFilter, Store } from '../../db/contract/store.ts'
import type { PeriodView, RangeName } from './shapes.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

export const periodParameters: Record<string, ParameterKind> = {
  range: 'one',
  since: 'one',
  until: 'one',
  siteId: 'many',
  zone: 'one',
}

/** Whole hours, because events are counted per hour. */
export interface Period {
  range: RangeName
  zone: string
  sinceMs: number // inclusive, the start of the first step
  untilMs: number // exclusive; inside the last step while that step is current
  /** The previous period: the same hours, one length earlier. Empty for "all" and where counts expired. */
  before: { sinceMs: number; untilMs: number }
  step: Step
  edges: number[] // the starts of the steps, and the end of the last; the first may be cut
  onTheHour: boolean // false: days of the zone start inside a UTC hour, so steps are rounded down to it
  nowMs: number
  siteIds?: string[]
  filter?: CountFilter
}

export interface CountScope {
  store: Pick<Store, 'events' | 'sites' | 'accessLogs' | 'keys' | 'health'>
  orgId: string
  period: Period
  rowsMax?: number // of each breakdown
}

/** Ranges of the last N days: they begin N × 24 hours before the running hour, in every time zone. */
const lastDays: { readonly [range: string]: { step: Step; days: number } } = {
  '24h': { step: 'hour', days: 1 },
  '7d': { step: 'threeHours', days: 7 },
  '30d': { step: 'sixHours', days: 30 },
  '90d': { step: 'day', days: 90 },
}
const monthsBack = 12

/** Long enough that a chart has at most about 200 steps, except for years of imported events. */
function stepFor(lengthMs: number): Step {
  const days = lengthMs / dayMs
  if (days <= 3) return 'hour'
  if (days <= 8) return 'threeHours'
  if (days <= 42) return 'sixHours'
  if (days <= 200) return 'day'
  if (days <= 1_200) return 'week'
  return days <= 15 * 366 ? 'month' : 'year'
}

const down = (ms: number): number => Math.floor(ms / hourMs) * hourMs
const up = (ms: number): number => Math.ceil(ms / hourMs) * hourMs

/**
 * `range` up to the current hour, or `since` and `until`, in steps of `zone`. `firstMs` is the first hour with counts,
 * the start of "all". Throws 400 `invalid_query`.
 */
export function readPeriod(query: Query, nowMs: number, firstMs: number | null = null): Period {
  const siteIds = query.many('siteId')?.filter((siteId) => siteId !== '')
  const siteFilter = siteIds === undefined || siteIds.length === 0 ? {} : { siteIds }
  const zone = readZone(query)
  const since = query.one('since')
  const until = query.one('until')
  if (since === undefined && until === undefined) {
    return { ...runningPeriod(query.one('range') ?? '7d', zone, nowMs, firstMs), ...siteFilter }
  }
  if (query.one('range') !== undefined)
    throw invalidQuery('range', 'range cannot be combined with since and until')
  if (since === undefined) throw invalidQuery('since', 'until requires since', 'required')
  return { ...chosenPeriod(since, until, zone, nowMs), ...siteFilter }
}

/** The time zone that defines days; UTC by default. Throws 400 `invalid_query`. */
export function readZone(query: Query): string {
  const zone = query.one('zone') ?? 'UTC'
  if (!isZone(zone)) throw invalidQuery('zone', 'zone must be an IANA time zone such as Europe/Berlin')
  return zone
}

/** The same; reads the start of "all" from the store. */
export async function periodOf(
  store: { retention: Pick<Store['retention'], 'firstHour'> },
  orgId: string,
  query: Query,
  nowMs: number,
): Promise<Period> {
  const isAll = query.one('range') === 'all'
  return readPeriod(query, nowMs, isAll ? await store.retention.firstHour(orgId) : null)
}

type Shape = Pick<Period, 'range' | 'zone' | 'sinceMs' | 'untilMs' | 'step' | 'nowMs'>

function runningPeriod(range: string, zone: string, nowMs: number, firstMs: number | null): Period {
  const untilMs = down(nowMs) + hourMs
  if (range === 'all') {
    const sinceMs = Math.min(firstMs ?? untilMs - dayMs, untilMs - hourMs)
    return stepped({ range, zone, sinceMs, untilMs, step: stepFor(untilMs - sinceMs), nowMs }, null)
  }
  if (range === '12m') return lastMonths(zone, untilMs, nowMs)
  const shape = Object.hasOwn(lastDays, range) ? lastDays[range] : undefined
  if (shape === undefined)
    throw invalidQuery('range', `range must be one of ${[...Object.keys(lastDays), '12m'].join(', ')} or all`)
  const { step, days } = shape
  const sinceMs = down(nowMs) - days * dayMs
  const { edges, onTheHour } = edgesOf(sinceMs, untilMs, step, zone)
  const before = { sinceMs: sinceMs - days * dayMs, untilMs: sinceMs }
  return {
    range: range as RangeName,
    zone,
    sinceMs,
    untilMs,
    step,
    nowMs,
    onTheHour,
    // The first step is cut, so that the range begins at the same instant on every page and in every zone.
    edges: [sinceMs, ...edges.filter((edge) => edge > sinceMs)],
    before: isKept(before, nowMs) ? before : { sinceMs, untilMs: sinceMs },
  }
}

/** Weeks do not divide months: the first week is whole and starts earlier. By the wall time of the zone. */
function lastMonths(zone: string, untilMs: number, nowMs: number): Period {
  const earlier = (ms: number): number => down(momentOf(moved(wallOf(ms, zone), 'month', -monthsBack), zone))
  const shape: Shape = { range: '12m', zone, sinceMs: earlier(untilMs), untilMs, step: 'week', nowMs }
  return stepped(shape, (since) => ({ sinceMs: earlier(since), untilMs: Math.min(since, earlier(untilMs)) }))
}

/** A custom range is widened to whole steps, so that no bar of a chart is partial. */
function chosenPeriod(since: string, until: string | undefined, zone: string, nowMs: number): Period {
  const fromMs = parseQueryTime('since', since)
  const toMs = until === undefined ? down(nowMs) + hourMs : parseQueryTime('until', until)
  if (toMs <= fromMs) throw invalidQuery('until', 'until must be after since')
  const step = stepFor(up(toMs) - down(fromMs))
  const { edges } = edgesOf(down(fromMs), up(toMs), step, zone)
  const untilMs = edges.at(-1) ?? up(toMs)
  return stepped({ range: 'custom', zone, sinceMs: down(fromMs), untilMs, step, nowMs }, (sinceMs) => {
    const length = wallOf(untilMs, zone) - wallOf(sinceMs, zone)
    return { sinceMs: down(momentOf(wallOf(sinceMs, zone) - length, zone)), untilMs: sinceMs }
  })
}

function stepped(shape: Shape, beforeOf: ((sinceMs: number) => Period['before']) | null): Period {
  const { edges, onTheHour } = edgesOf(shape.sinceMs, shape.untilMs, shape.step, shape.zone)
  const sinceMs = edges[0] ?? shape.sinceMs
  const previousPeriod = beforeOf?.(sinceMs)
  const noPeriod = { sinceMs, untilMs: sinceMs }
  const isCompared = previousPeriod !== undefined && isKept(previousPeriod, shape.nowMs)
  return { ...shape, sinceMs, edges, onTheHour, before: isCompared ? previousPeriod : noPeriod }
}

/** Hours whose counts were deleted would make the comparison show growth that did not happen. */
function isKept(before: Period['before'], nowMs: number): boolean {
  return before.sinceMs >= nowMs - countsRetentionDays * dayMs
}

export function periodView(
  period: Period,
  sites: { siteId: string; name: string | null; hidden: boolean }[],
): PeriodView {
  return {
    range: period.range,
    zone: period.zone,
    since: isoTime(period.sinceMs),
    until: isoTime(period.untilMs),
    before: { since: isoTime(period.before.sinceMs), until: isoTime(period.before.untilMs) },
    now: isoTime(period.nowMs),
    stepHours: steps[period.step].hours,
    edges: period.edges,
    onTheHour: period.onTheHour,
    siteIds: period.siteIds ?? [],
    filters: period.filter?.named ?? [],
    expired: 0,
    complete: true,
    sites: sites.filter((site) => !site.hidden).map(({ siteId, name }) => ({ siteId, name })),
  }
}

/** The number of steps in a chart of the period. */
export function stepCount({ edges }: Pick<Period, 'edges'>): number {
  return edges.length - 1
}

/** The step that contains a moment of the period. */
export function stepAt({ edges }: Pick<Period, 'edges'>, ms: number): number {
  let low = 0
  let high = edges.length - 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (edges[middle]! <= ms) low = middle
    else high = middle
  }
  return low
}

interface Dimension {
  field: EventFieldName
  list: keyof FilterLists | null // null: filters counts only
  charsMax: number
}

const dimensions: { readonly [name: string]: Dimension } = Object.fromEntries(
  pageFields.map(({ name, filter, charsMax }) => {
    const longest = name === 'type' ? charsMax + '.*'.length : charsMax
    return [pageFilterName(name), { field: name, list: filter, charsMax: longest }]
  }),
)

/** The filters of a URL, in the form of the store. */
export interface CountFilter {
  named: { name: string; value: string }[]
  filter: EventFilter
  also: AlsoFilter[]
}

/** Null when hourly counts do not suffice: they combine types and outcomes with one other field. */
export function hourlyFilter({ filter, also }: CountFilter): Pick<EventFilter, 'types' | 'outcomes'> | null {
  const { types, outcomes, ...otherFilters } = filter
  if (also.length > 0 || Object.keys(otherFilters).length > 0) return null
  return { ...(types && { types }), ...(outcomes && { outcomes }) }
}

/** The intersection of two type lists, where a trailing `.*` is a prefix; null means any type. */
export function sharedTypes(a: string[] | undefined, b: string[] | undefined): string[] | null {
  if (a === undefined || b === undefined) return a ?? b ?? null
  return [...new Set(a.flatMap((typeA) => b.flatMap((typeB) => narrower(typeA, typeB))))]
}

function narrower(typeA: string, typeB: string): string[] {
  if (typeA === typeB) return [typeA]
  if (typeB.endsWith('.*') && typeA.startsWith(typeB.slice(0, -1))) return [typeA]
  return typeA.endsWith('.*') && typeB.startsWith(typeA.slice(0, -1)) ? [typeB] : []
}

const filtersMax = 20

/** `filter=vendor:GPTBot`, repeatable; values of one name are alternatives. Null without filters; throws 400. */
export function readCountFilter(query: Query): CountFilter | null {
  const filterTexts = [...new Set(query.many('filter') ?? [])]
  if (filterTexts.length === 0) return null
  if (filterTexts.length > filtersMax)
    throw invalidQuery('filter', `at most ${filtersMax} filters are allowed`, 'too_many')
  const countFilter: CountFilter = { named: [], filter: {}, also: [] }
  for (const text of filterTexts) addFilter(countFilter, text)
  return { ...countFilter, filter: onlyVouched(countFilter.filter) }
}

function addFilter({ named: namedValues, filter, also }: CountFilter, text: string): void {
  const colon = text.indexOf(':')
  const name = text.slice(0, Math.max(0, colon))
  const value = text.slice(colon + 1)
  const dimension = Object.hasOwn(dimensions, name) ? dimensions[name] : undefined
  if (dimension === undefined)
    throw invalidQuery(
      'filter',
      `filter must be NAME:VALUE with one of ${Object.keys(dimensions).join(', ')}`,
    )
  if (isLongerThan(value, dimension.charsMax))
    throw invalidQuery('filter', `${name} must have at most ${dimension.charsMax} characters`, 'too_long')
  namedValues.push({ name, value })
  const { field, list } = dimension
  if (list !== null) {
    filter[list] = [...(filter[list] ?? []), value]
    return
  }
  const countedField = field as CountedMember
  const existingFilter = also.find((entry) => entry.by === countedField)
  if (existingFilter) existingFilter.values.push(value)
  else also.push({ by: countedField, values: [value] })
}
