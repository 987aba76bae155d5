/** Explore in the URL: its measure, field, filters and view; its numbers as series, rows and cells of a file. */
import { eventFields, pageFilterName } from '../../../db/contract/event-fields.ts'
import { choiceOf, rangeParams, rangePart } from '../../range/range.ts'
import { bytesText, count, exactDuration } from '../../text/format.ts'
import { colourOf, type Series } from '../../charts/chart-model.ts'
import type { ExploreAnswer } from '../../api/api.ts'

export const explorePath = '/analytics/explore'

export type Measure = ExploreAnswer['measure']

interface MeasureWords {
  name: string
  about: string
  show: (value: number) => string
  isSum?: true // steps and values add up, so that they can be stacked
  unit?: string // of its cells in a file
}

const wholeCount = (value: number): string => count(Math.round(value))

export const measureWords: { readonly [measure in Measure]: MeasureWords } = {
  events: { name: 'Events', about: 'stored events', show: wholeCount, isSum: true },
  errors: { name: 'Errors', about: 'events with outcome error', show: wholeCount, isSum: true },
  sessions: { name: 'Sessions', about: 'distinct sessions', show: wholeCount },
  subjects: { name: 'Subjects', about: 'distinct verified subjects', show: wholeCount },
  p50: { name: 'p50 duration', about: '50 % of the durations are shorter', show: exactDuration, unit: 'ms' },
  p95: { name: 'p95 duration', about: '95 % of the durations are shorter', show: exactDuration, unit: 'ms' },
  p99: { name: 'p99 duration', about: '99 % of the durations are shorter', show: exactDuration, unit: 'ms' },
  bytes: { name: 'Bytes', about: 'sum of metadata.bytes', show: bytesText, isSum: true, unit: 'bytes' },
  tokens: { name: 'Tokens', about: 'tokens, the sum of metadata.tokens', show: wholeCount, isSum: true },
}
export const measureNames = Object.keys(measureWords) as Measure[]

/** Fields by their names in the filters of pages. */
export const fieldWords: { readonly [name: string]: string } = Object.fromEntries(
  eventFields.map(({ name, label }) => [pageFilterName(name), label]),
)

export const metadataPrefix = 'metadata.'
export const views = ['bars', 'lines', 'table'] as const
export type View = (typeof views)[number]
export const rowChoices = [5, 10, 20, 50, 100, 1_000] as const

interface Exploration {
  measure: Measure
  by: string // a field, `metadata.` and a path, or '' for all events together
  view: View
  rows: number
}

const defaults: Exploration = { measure: 'events', by: 'vendor', view: 'bars', rows: 10 }

const isMeasure = (text: string): text is Measure => Object.hasOwn(measureWords, text)

/** Unknown values are those of the default, so that an edited link still shows something. */
export function explorationOf(query: URLSearchParams): Exploration {
  const measure = query.get('measure') ?? defaults.measure
  const dimension = query.get('by') ?? defaults.by
  const view = views.find((knownView) => knownView === query.get('view'))
  const rows = rowChoices.find((choice) => `${choice}` === query.get('rows'))
  return {
    measure: isMeasure(measure) ? measure : defaults.measure,
    by:
      dimension === '' || dimension.startsWith(metadataPrefix) || Object.hasOwn(fieldWords, dimension)
        ? dimension
        : defaults.by,
    view: view ?? defaults.view,
    rows: rows ?? defaults.rows,
  }
}

/** Parts that do not add up cannot be stacked. */
export function shownView({ measure, view }: Exploration): View {
  return view === 'bars' && measureWords[measure].isSum === undefined ? 'lines' : view
}

/** The query of the request: everything but how it is shown. */
export function requestOf(query: URLSearchParams, timeZone: string): URLSearchParams {
  const params = rangeParams(choiceOf(query), timeZone)
  const { measure, by: dimension, rows } = explorationOf(query)
  params.set('measure', measure)
  if (dimension !== '') params.set('by', dimension)
  params.set('rows', `${rows}`)
  addFilters(params, query)
  return params
}

function addFilters(params: URLSearchParams, query: URLSearchParams): void {
  for (const filter of query.getAll('filter')) params.append('filter', filter)
  const text = query.get('q') ?? ''
  if (text !== '') params.set('q', text)
}

/** The part of a URL that a saved view contains: all of it, with its measure (app/saved-views.ts). */
export function viewSearch(search: string): string {
  const query = new URLSearchParams(search)
  const { measure, by: dimension, view, rows } = explorationOf(query)
  const params = new URLSearchParams({ measure, by: dimension, view, rows: `${rows}` })
  addFilters(params, query)
  const range = rangePart(search)
  return `?${params.toString().replaceAll('%2A', '*')}${range === '' ? '' : `&${range}`}`
}

/** "vendor", "metadata.plan"; '' for all events together. */
export const byWord = (dimension: string): string => fieldWords[dimension] ?? dimension

const noneName = (dimension: string): string => `(no ${byWord(dimension)})`

/** Values with a series of their own: as many as there are colours. */
const seriesMax = 8

interface Row {
  key: string
  name: string
  value: string | null // null: several values, or none
  numbers: ExploreAnswer['all']
}

/** The rows of the answer: its values, events without the field, further values; without a field all events. */
export function rowsOf(answer: ExploreAnswer): Row[] {
  const { by: dimension, rows, missing, other: otherNumbers, all: allNumbers } = answer
  if (dimension === null)
    return [{ key: 'all', name: measureWords[answer.measure].name, value: null, numbers: allNumbers }]
  const othersName =
    (otherNumbers?.values ?? 0) > 0 ? `(${count(otherNumbers?.values ?? 0)} others)` : '(others)'
  return [
    ...rows.map((numbers) => ({
      key: `=${numbers.value}`,
      name: numbers.value,
      value: numbers.value,
      numbers,
    })),
    ...(missing === null
      ? []
      : [{ key: 'missing', name: noneName(pageFilterName(dimension)), value: null, numbers: missing }]),
    ...(otherNumbers === null
      ? []
      : [{ key: 'other', name: othersName, value: null, numbers: otherNumbers }]),
  ]
}

/**
 * Series of the largest values. A chart of sums has one more for the rest, so that it shows all of the sum. Parts of
 * other measures do not add up, so further values are only in the table.
 */
export function seriesOf(answer: ExploreAnswer): Series[] {
  const rows = rowsOf(answer)
  const namedRows = rows.filter(({ value }) => value !== null)
  const remainingRows = namedRows.slice(seriesMax)
  const hasRest = remainingRows.length > 0
  const shown = [
    ...namedRows.slice(0, seriesMax),
    ...rows.filter(({ key, value }) => value === null && !(hasRest && key === 'other')),
  ]
  const series = shown.map((row, index): Series => {
    const colour = restColours[row.key] ?? colourOf(row.name, index)
    return {
      name: row.name,
      value: row.value,
      colour,
      counts: row.numbers.steps.map((step) => step ?? Number.NaN),
    }
  })
  if (!hasRest || measureWords[answer.measure].isSum === undefined) return series
  const remainingNumbers = [
    ...remainingRows.map(({ numbers }) => numbers),
    ...(answer.other === null ? [] : [answer.other]),
  ]
  const counts = answer.all.steps.map((_, step) =>
    remainingNumbers.reduce((sum, { steps }) => sum + (steps[step] ?? 0), 0),
  )
  const name = `(${count(remainingRows.length + (answer.other?.values ?? 0))} others)`
  return [...series, { name, value: null, colour: 'class-other', counts }]
}

/** What a chart leaves out; null when it has everything. */
export function leftOut(answer: ExploreAnswer): string | null {
  const values = answer.rows.length
  if (values <= seriesMax || measureWords[answer.measure].isSum) return null
  return `${seriesMax} of ${count(values)} values, all in the table`
}

const restColours: { readonly [key: string]: string } = { missing: 'line-strong', other: 'class-other' }

/** What is shown, as a file: a row per step and a column per series. */
export function stepCells(
  series: readonly Series[],
  edges: readonly number[],
  timeOf: (ms: number) => string,
) {
  return edges
    .slice(0, -1)
    .map((edge, step) => [
      timeOf(edge),
      ...series.map(({ counts }) => (Number.isNaN(counts[step] ?? Number.NaN) ? '' : (counts[step] ?? 0))),
    ])
}

/** Paths of metadata in events, most frequent first, as suggestions. */
export function metadataPaths(events: Iterable<{ metadata?: unknown }>, max = 100): string[] {
  const counts = new Map<string, number>()
  const add = (value: unknown, path: string, depth: number): void => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      if (path !== '' && path.length <= 200) counts.set(path, (counts.get(path) ?? 0) + 1)
      return
    }
    if (depth < 4)
      for (const [name, inner] of Object.entries(value))
        add(inner, path === '' ? name : `${path}.${name}`, depth + 1)
  }
  for (const { metadata } of events) add(metadata, '', 0)
  return [...counts]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, max)
    .map(([path]) => path)
}
