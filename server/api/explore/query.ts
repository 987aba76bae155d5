/** Reads what to explore from a query string: the measure, the field, the filters and the steps. */
import { exploreMeasures, type ExploreMeasure, type ExploreQuery } from '../../../db/contract/explore.ts'
import { eventFields, pageFilterName, type EventFieldName } from '../../../db/contract/event-fields.ts'
import { exactEdgesOf, steps, type Step } from '../../text/time-zone.ts'
import {
  invalidQuery,
  parseQueryTime,
  shortName,
  type ParameterKind,
  type Query,
} from '../../http/request.ts'
import { onlyVouched } from '../../../db/rules/vouched-verdicts.ts'
import { isLongerThan } from '../../text/text.ts'
import { readText } from '../traces/filter.ts'
import { limits } from '../../limits.ts'
import { periodOf, readZone, type Period } from '../../counts/period.ts'
import type { CountedMember, Store } from '../../../db/contract/store.ts'
import { hourMs } from '../../../db/contract/units.ts'

/** Parameters of both routes. */
export const exploreParameters = {
  measure: 'one',
  by: 'one',
  rows: 'one',
  filter: 'many',
  siteId: 'many',
  q: 'one',
  since: 'one',
  until: 'one',
  zone: 'one',
} as const satisfies Record<string, ParameterKind>

/** Parameters of the dashboard's page. */
export const explorePageParameters = { ...exploreParameters, range: 'one' } as const

type Asked = Pick<ExploreQuery, 'measure' | 'by' | 'filter' | 'also' | 'metadata' | 'rowsMax'>

const measureNames: readonly string[] = exploreMeasures

/** By their names and by those of the filters of pages. */
const fieldsByName = new Map<string, (typeof eventFields)[number]>()
for (const field of eventFields) fieldsByName.set(field.name, field)
for (const field of eventFields) fieldsByName.set(pageFilterName(field.name), field)

const fieldList = [...eventFields.map(({ name }) => name), 'metadata.NAME'].join(', ')
const metadataPrefix = 'metadata.'

/** Everything but the times. Throws 400 `invalid_query` that names the wrong parameter. */
export function readAsked(query: Query): Asked {
  const measure = query.one('measure') ?? 'events'
  if (!measureNames.includes(measure))
    throw invalidQuery('measure', `measure must be one of ${measureNames.join(', ')}`)
  const dimension = query.one('by') ?? ''
  const siteIds = query.many('siteId')?.filter((siteId) => siteId !== '') ?? []
  const exploreQuery: Asked = {
    measure: measure as ExploreMeasure,
    by: dimension === '' ? null : readField('by', dimension),
    rowsMax: readRows(query),
    filter: siteIds.length === 0 ? {} : { siteIds },
  }
  const filterTexts = [...new Set(query.many('filter') ?? [])]
  if (filterTexts.length > limits.exploreFiltersMax)
    throw invalidQuery('filter', `at most ${limits.exploreFiltersMax} filters are allowed`, 'too_many')
  for (const text of filterTexts) addFilter(exploreQuery, text)
  const text = query.one('q')
  if (text !== undefined) exploreQuery.filter.text = readText(text)
  // Grouped by judge, a sender's verdicts are a row of their own.
  return exploreQuery.by === 'judgedBy'
    ? exploreQuery
    : { ...exploreQuery, filter: onlyVouched(exploreQuery.filter) }
}

function readRows(query: Query): number {
  const text = query.one('rows') ?? `${limits.exploreRowsDefault}`
  const rows = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : 0
  if (rows < 1 || rows > limits.exploreRowsMax)
    throw invalidQuery('rows', `rows must be an integer from 1 to ${limits.exploreRowsMax}`)
  return rows
}

function readField(parameter: string, name: string): EventFieldName | { metadata: string } {
  if (name.startsWith(metadataPrefix))
    return { metadata: readPath(parameter, name.slice(metadataPrefix.length)) }
  const field = fieldsByName.get(name)
  if (field === undefined)
    throw invalidQuery(
      parameter,
      parameter === 'by'
        ? `by must be one of ${fieldList}`
        : `filter must be NAME:VALUE with one of ${fieldList}`,
    )
  return field.name
}

function readPath(parameter: string, path: string): string {
  const parts = path.split('.').length
  if (path !== '' && parts <= limits.explorePathPartsMax && !isLongerThan(path, limits.explorePathCharsMax))
    return path
  throw invalidQuery(
    parameter,
    `a path below metadata must have between 1 and ${limits.explorePathCharsMax} characters and at most ` +
      `${limits.explorePathPartsMax} parts`,
    'wrong_length',
  )
}

/** `filter=vendor:GPTBot` or `filter=metadata.plan:pro`. Values of one name are alternatives; '' is a missing one. */
function addFilter(exploreQuery: Asked, text: string): void {
  const colon = text.indexOf(':')
  if (colon < 0) throw invalidQuery('filter', `filter must be NAME:VALUE with one of ${fieldList}`)
  const name = text.slice(0, colon)
  const value = text.slice(colon + 1)
  const field = readField('filter', name)
  if (typeof field === 'object') {
    addTo((exploreQuery.metadata ??= []), (metadataFilter) => metadataFilter.path === field.metadata, value, {
      path: field.metadata,
    })
    return
  }
  const { filter: list, charsMax } = fieldsByName.get(field)!
  if (isLongerThan(value, charsMax + '.*'.length))
    throw invalidQuery('filter', `${shortName(name)} must have at most ${charsMax} characters`, 'too_long')
  if (list !== null) exploreQuery.filter[list] = [...(exploreQuery.filter[list] ?? []), value]
  else {
    const countedField = field as CountedMember
    addTo((exploreQuery.also ??= []), (fieldFilter) => fieldFilter.by === countedField, value, {
      by: countedField,
    })
  }
}

function addTo<T extends object>(
  lists: (T & { values: string[] })[],
  isSame: (filter: T) => boolean,
  value: string,
  newFilter: T,
): void {
  const existingFilter = lists.find(isSame)
  if (existingFilter) existingFilter.values.push(value)
  else lists.push({ ...newFilter, values: [value] })
}

const downHour = (ms: number): number => Math.floor(ms / hourMs) * hourMs
/** Events may be dated so far ahead of their arrival. */
const aheadMs = 5 * 60_000

/**
 * From `since` to `until`, exactly, cut at the steps of `step`; without it one step. By default the last 30 days up to
 * the end of the running hour.
 */
export function readEdges(query: Query, nowMs: number): { edges: number[]; zone: string } {
  const zone = readZone(query)
  const since = query.one('since')
  const until = query.one('until')
  const endMs = downHour(nowMs + aheadMs) + hourMs
  const sinceMs =
    since === undefined ? downHour(nowMs - limits.metricsDefaultMs) : parseQueryTime('since', since)
  const untilMs = until === undefined ? endMs : parseQueryTime('until', until)
  if (untilMs <= sinceMs) throw invalidQuery('until', 'until must be after since')
  const step = query.one('step')
  if (step === undefined) return { edges: [sinceMs, untilMs], zone }
  if (!Object.hasOwn(stepNames, step))
    throw invalidQuery('step', `step must be one of ${Object.keys(stepNames).join(', ')}`)
  const name = stepNames[step as keyof typeof stepNames]
  if ((untilMs - sinceMs) / (steps[name].hours * hourMs) > limits.exploreStepsMax)
    throw invalidQuery(
      'step',
      `at most ${limits.exploreStepsMax} steps are allowed: choose a longer step or a shorter range`,
      'too_many',
    )
  const inner = exactEdgesOf(sinceMs, untilMs, name, zone).filter((edge) => edge > sinceMs && edge < untilMs)
  return { edges: [sinceMs, ...inner, untilMs], zone }
}

const stepNames = {
  hour: 'hour',
  day: 'day',
  week: 'week',
  month: 'month',
} as const satisfies { [name: string]: Step }

export const exploreStepNames = Object.keys(stepNames)

export interface PageQuery {
  asked: Asked & Pick<ExploreQuery, 'edges'>
  period: Period
  filters: { name: string; value: string }[]
}

/** What a URL of the dashboard asks: its range in the steps of a chart. */
export async function readPage(
  store: Pick<Store, 'retention'>,
  orgId: string,
  query: Query,
  nowMs: number,
): Promise<PageQuery> {
  const exploreQuery = readAsked(query)
  const period = exactPeriod(query, await periodOf(store, orgId, query, nowMs))
  const edges = [...period.edges.slice(0, -1), Math.min(period.untilMs, period.edges.at(-1)!)]
  const filters = (query.many('filter') ?? []).map((text) => {
    const colon = text.indexOf(':')
    return { name: text.slice(0, colon), value: text.slice(colon + 1) }
  })
  const { text } = exploreQuery.filter
  if (text !== undefined) filters.push({ name: 'text', value: text })
  return { asked: { ...exploreQuery, edges }, period, filters }
}

/** In a zone whose offset is not whole hours other pages round steps down to the UTC hour. */
function exactPeriod(query: Query, period: Period): Period {
  if (period.onTheHour) return period
  const readTime = (name: string): number | undefined => {
    const text = query.one(name)
    return text === undefined ? undefined : parseQueryTime(name, text)
  }
  const { zone, step } = period
  const since = readTime('since')
  const until = readTime('until')
  // Rounded down, the first step may begin up to an hour before its day.
  const edges = exactEdgesOf(since ?? period.sinceMs + hourMs - 1, until ?? period.untilMs, step, zone)
  const untilMs = until === undefined ? period.untilMs : edges.at(-1)!
  return { ...period, edges, sinceMs: edges[0]!, untilMs, onTheHour: true }
}
