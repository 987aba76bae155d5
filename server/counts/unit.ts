/**
 * Decides the unit in which people compare sites, agents and pages over a range (contract §19): requests where a site
 * has some, else visits. A request and its own detection are never added.
 */
import { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import { sharedTypes, type Period } from './period.ts'
import { typeLabel, typeLabels, unitTypes } from './unit-types.ts'
import type { EventStore } from '../../db/contract/store.ts'
import type { Unit, UnitName } from './shapes.ts'

/** Requests and visits of one site, in the range and in the previous period. */
interface SiteTraffic {
  siteId: string | null // null: sites beyond the limit of the store
  requests: number
  visits: number
  requestsBefore: number
  visitsBefore: number
}

type Range = Pick<Period, 'sinceMs' | 'untilMs' | 'before' | 'siteIds' | 'filter'>
type CountedEvents = Pick<EventStore, 'series' | 'metrics' | 'filteredCounts'>

/** All sites of the range together. The sums of hours are cached, unlike the counts by site. */
async function allTraffic(events: CountedEvents, orgId: string, range: Range): Promise<SiteTraffic> {
  const { siteIds } = range
  const only = { types: Object.values(unitTypes), ...(siteIds && { siteIds }) }
  const sumOf = ({ sinceMs, untilMs }: Period['before']) =>
    events.metrics({ orgId, sinceMs, untilMs, ...only, rowsMax: 0 })
  const [now, before] = await Promise.all([sumOf(range), sumOf(range.before)])
  return {
    siteId: siteIds?.[0] ?? null,
    requests: now.byType[unitTypes.requests] ?? 0,
    visits: now.byType[unitTypes.visits] ?? 0,
    requestsBefore: before.byType[unitTypes.requests] ?? 0,
    visitsBefore: before.byType[unitTypes.visits] ?? 0,
  }
}

/** One entry where sites cannot differ: there is one, or all of them have only requests or only visits. */
async function traffic(events: CountedEvents, orgId: string, range: Range): Promise<SiteTraffic[]> {
  const all = await allTraffic(events, orgId, range)
  const isOneUnit = all.requests + all.requestsBefore === 0 || all.visits + all.visitsBefore === 0
  return range.siteIds?.length === 1 || isOneUnit ? [all] : siteTraffic(events, orgId, range)
}

/** From the hourly counts, which include events that retention deleted since. */
async function siteTraffic(
  events: Pick<EventStore, 'series'>,
  orgId: string,
  { sinceMs, untilMs, before, siteIds }: Range,
): Promise<SiteTraffic[]> {
  const hasBefore = before.sinceMs < before.untilMs
  const starts = hasBefore ? [before.sinceMs, before.untilMs, sinceMs] : [sinceMs]
  const edges = [...new Set([...starts, untilMs])]
  const nowStep = edges.indexOf(sinceMs)
  const series = await events.series({
    orgId,
    filter: { types: Object.values(unitTypes), ...(siteIds && { siteIds }) },
    part: { filter: { types: [unitTypes.requests] } },
    by: 'siteId',
    groupsMax: Number.MAX_SAFE_INTEGER,
    edges,
    budgetMs: limits.filteredCountMsMax,
  })
  if (series.sinceMs > edges[0]!)
    throw new AppError('overloaded', 'Too many hours to count in time. Choose a shorter range.')
  return series.groups.map(({ group, events: all, part: requests }) => {
    const requestsNow = requests[nowStep] ?? 0
    const requestsBefore = hasBefore ? (requests[0] ?? 0) : 0
    return {
      siteId: group,
      requests: requestsNow,
      visits: (all[nowStep] ?? 0) - requestsNow,
      requestsBefore,
      visitsBefore: hasBefore ? (all[0] ?? 0) - requestsBefore : 0,
    }
  })
}

/** Requests where any site has some. A range with neither keeps the unit of the previous period: a fall to 0 shows. */
function unitName(sites: readonly SiteTraffic[]): UnitName {
  if (sites.some(({ requests }) => requests > 0)) return 'requests'
  if (sites.some(({ visits }) => visits > 0)) return 'visits'
  return sites.some(({ requestsBefore }) => requestsBefore > 0) ? 'requests' : 'visits'
}

/** Whether the previous period can be counted in the same unit: no site had only the other one in one of the two. */
function isComparable(sites: readonly SiteTraffic[], unit: UnitName): boolean {
  return sites.every(({ requests, visits, requestsBefore, visitsBefore }) => {
    const beganRequests = requests > 0 && requestsBefore === 0 && visitsBefore > 0
    const endedRequests = requests === 0 && visits > 0 && requestsBefore > 0
    if (unit === 'requests') return !beganRequests && !endedRequests
    return !endedRequests || visitsBefore > 0
  })
}

/** Sites whose visits stand beside the requests of others. */
function visitSites(sites: readonly SiteTraffic[], unit: UnitName): SiteTraffic[] {
  return unit === 'visits' ? [] : sites.filter(({ requests, visits }) => requests === 0 && visits > 0)
}

/**
 * The type that a page counts: of its unit, unless its filter leaves that out and names one other type. A prefix such
 * as `tool.*` names the first type with a name of its own.
 */
function countedType(name: UnitName, chosenTypes: string[] | undefined): string {
  const type = unitTypes[name]
  const [chosen, ...more] = chosenTypes ?? []
  const isLeftOut = sharedTypes([type], chosenTypes)?.length === 0
  if (!isLeftOut || chosen === undefined || more.length > 0) return type
  if (!chosen.endsWith('.*')) return chosen
  return Object.keys(typeLabels).find((known) => sharedTypes([known], [chosen])?.length === 1) ?? type
}

/** The unit of a page's sites and range. Filters change it only to the one type that they name. */
export async function rangeUnit(events: CountedEvents, orgId: string, period: Range): Promise<Unit> {
  const sites = await traffic(events, orgId, period)
  const name = unitName(sites)
  const type = countedType(name, period.filter?.filter.types)
  const label = typeLabel(type)
  if (type !== unitTypes[name]) return { name, type, label, comparable: true, beside: null }
  const others = visitSites(sites, name)
  const visits =
    period.filter === undefined
      ? others.reduce((sum, site) => sum + site.visits, 0)
      : await filteredVisits(events, orgId, period, others)
  return {
    name,
    type,
    label,
    comparable: isComparable(sites, name),
    beside: visits === 0 ? null : { visits, sites: others.length },
  }
}

async function filteredVisits(
  events: CountedEvents,
  orgId: string,
  period: Range,
  sites: readonly SiteTraffic[],
): Promise<number> {
  const { sinceMs, untilMs, filter } = period
  const siteIds = sites.flatMap(({ siteId }) => siteId ?? [])
  if (siteIds.length === 0 || filter === undefined) return 0
  const { rows } = await events.filteredCounts({
    orgId,
    filter: { ...filter.filter, types: [unitTypes.visits], siteIds },
    also: filter.also,
    edges: [sinceMs, untilMs],
    breakdowns: [],
    budgetMs: limits.filteredCountMsMax,
  })
  return rows.reduce((sum, { count }) => sum + count, 0)
}
