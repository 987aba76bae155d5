/** The shared page of an Explore query: one measure by one field, as a chart and a table. */
import { eventFields } from '../../db/contract/event-fields.ts'
import { countText, textHtml } from '../text/html.ts'
import { perStep } from '../text/time-zone.ts'
import { lines, numbers, outcomeClass, spanOf, stackedBars, table, type Body, type Series } from './charts.ts'
import type { Explored, ExploredNumbers, ExploreMeasure, ExploreQuery } from '../../db/contract/explore.ts'
import type { PeriodView } from '../counts/shapes.ts'

export interface ShownExploration {
  asked: Pick<ExploreQuery, 'measure' | 'by' | 'edges'>
  period: PeriodView
  explored: Explored
}

interface MeasureWords {
  name: string
  show: (value: number) => string
  isSum?: true // steps and values add up
}

const whole = (value: number): string => countText(Math.round(value))

/** The same words as on Explore (web/pages/analytics/explore-model.ts). */
export const shownMeasures: { readonly [measure in ExploreMeasure]: MeasureWords } = {
  events: { name: 'Events', show: whole, isSum: true },
  errors: { name: 'Errors', show: whole, isSum: true },
  sessions: { name: 'Sessions', show: whole },
  subjects: { name: 'Subjects', show: whole },
  p50: { name: 'p50 duration', show: durationText },
  p95: { name: 'p95 duration', show: durationText },
  p99: { name: 'p99 duration', show: durationText },
  bytes: { name: 'Bytes', show: bytesText, isSum: true },
  tokens: { name: 'Tokens', show: whole, isSum: true },
}

const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 86_400_000

function durationText(ms: number): string {
  if (ms < 10 && !Number.isInteger(ms)) return `${ms.toFixed(1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 59.95 * minuteMs) return `${(ms / minuteMs).toFixed(1)} min`
  if (ms < 2 * dayMs) return `${(ms / hourMs).toFixed(1)} h`
  return `${whole(ms / dayMs)} d`
}

const byteUnits = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const

/** 1 kB is 1,000 bytes, and 1 MB is 10⁶ (contract §19). */
function bytesText(bytes: number): string {
  let amount = bytes
  let unit = 0
  // Otherwise 999.5 kB would round to 1000 kB.
  while (amount >= 999.5 && unit < byteUnits.length - 1) {
    amount /= 1_000
    unit += 1
  }
  const shown = unit === 0 || amount >= 99.95 ? whole(amount) : amount.toFixed(1)
  return `${shown} ${bytes === 1 ? 'byte' : byteUnits[unit]}`
}

export function exploreBody({ asked: exploreQuery, period, explored }: ShownExploration): Body {
  const { measure, by: dimension, edges } = exploreQuery
  const { name, isSum } = shownMeasures[measure]
  const byName = nameOf(dimension)
  const sites = period.siteIds.map((id) => period.sites.find(({ siteId }) => siteId === id)?.name ?? id)
  const chosen = [
    ...sites.map((site) => `site: ${textHtml(site)}`),
    ...period.filters.map((filter) => `${textHtml(filter.name)}: ${textHtml(filter.value || 'none')}`),
  ]
  const lead = [spanOf(period.since, period.until, period.zone), ...chosen].join(' · ')
  if (!explored.complete)
    return { lead, sections: ['<p>There are too many events to read. Narrow the range or the filters.</p>'] }
  const { all: totals } = explored
  const total = { name, value: numberText(measure, totals) }
  const ofEvents = { name: 'Events', value: countText(totals.events) }
  const headline = numbers(isEventCount(measure) ? [total] : [total, ofEvents])
  if (totals.events === 0)
    return { lead, sections: [headline, '<p class="muted">No events in this range.</p>'] }
  const title = byName === null ? name : `${name} by ${textHtml(byName)}`
  const { series, isCut } = seriesOf(exploreQuery, explored)
  const { show } = shownMeasures[measure]
  const chart = {
    title: `${name} ${perStep(edges)}${byName === null ? '' : `, by ${textHtml(byName)}`}`,
    edges,
    series,
    zone: period.zone,
    show,
  }
  const sections = [
    headline,
    isSum
      ? stackedBars({ ...chart, unit: measure === 'bytes' ? '' : ` ${name.toLowerCase()}` })
      : lines(chart),
    ...(dimension === null ? [] : [valueTable(title, exploreQuery, explored)]),
    ...notes(exploreQuery, explored, isCut).map((note) => `<p class="muted">${note}</p>`),
  ]
  return { lead, sections }
}

const isEventCount = (measure: ExploreMeasure): boolean => measure === 'events' || measure === 'errors'
const isQuantile = (measure: ExploreMeasure): boolean => shownMeasures[measure].show === durationText

function nameOf(dimension: ExploreQuery['by']): string | null {
  if (dimension === null) return null
  if (typeof dimension === 'object') return `metadata.${dimension.metadata}`
  return eventFields.find(({ name }) => name === dimension)?.label ?? dimension
}

function numberText(measure: ExploreMeasure, { total, error }: ExploredNumbers): string {
  if (total === null) return '–'
  return `${error > 0 && !isQuantile(measure) ? '≈ ' : ''}${shownMeasures[measure].show(total)}`
}

interface Row {
  name: string
  kind: 'value' | 'missing' | 'other'
  numbers: ExploredNumbers
}

function rowsOf(dimension: ExploreQuery['by'], { rows, missing, other: otherValues }: Explored): Row[] {
  return [
    ...rows.map((row): Row => ({ name: row.value, kind: 'value', numbers: row })),
    ...(missing === null
      ? []
      : [{ name: `(no ${nameOf(dimension) ?? ''})`, kind: 'missing', numbers: missing } as const]),
    ...(otherValues === null
      ? []
      : [{ name: othersName(otherValues.values), kind: 'other', numbers: otherValues } as const]),
  ]
}

const othersName = (values: number): string => (values > 0 ? `(${countText(values)} others)` : '(others)')

/** Values with a series of their own: as many as there are colours. */
const seriesMax = 8

/** As on Explore: further values are one series where they add up; otherwise they are only in the table. */
function seriesOf(
  { measure, by: dimension }: ShownExploration['asked'],
  explored: Explored,
): { series: Series[]; isCut: boolean } {
  const { name, isSum } = shownMeasures[measure]
  if (dimension === null)
    return { series: [{ name, className: 'is-1', counts: explored.all.steps }], isCut: false }
  const rows = rowsOf(dimension, explored)
  const hiddenRows = explored.rows.slice(seriesMax)
  const kinds = { missing: 'is-none', other: 'is-other' } as const
  let index = 0
  const series = rows
    .filter(({ kind }) => kind !== 'value' || index++ < seriesMax)
    .filter(({ kind }) => kind !== 'other' || hiddenRows.length === 0)
    .map((row, place): Series => {
      const valueClass = dimension === 'outcome' ? outcomeClass(row.name) : `is-${place + 1}`
      const className = row.kind === 'value' ? valueClass : kinds[row.kind]
      return { name: row.name, className, counts: row.numbers.steps }
    })
  if (hiddenRows.length === 0) return { series, isCut: false }
  if (!isSum) return { series, isCut: true }
  const otherNumbers = [...hiddenRows, ...(explored.other === null ? [] : [explored.other])]
  const counts = explored.all.steps.map((_, step) =>
    otherNumbers.reduce((sum, { steps }) => sum + (steps[step] ?? 0), 0),
  )
  const values = hiddenRows.length + (explored.other?.values ?? 0)
  return { series: [...series, { name: othersName(values), className: 'is-other', counts }], isCut: false }
}

const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

function valueTable(
  title: string,
  { measure, by: dimension }: ShownExploration['asked'],
  explored: Explored,
): string {
  const { name, isSum } = shownMeasures[measure]
  const sum = explored.all.total ?? 0
  const withEvents = !isEventCount(measure)
  const columns = [
    typeof dimension === 'object' ? textHtml(nameOf(dimension) ?? '') : capitalized(nameOf(dimension) ?? ''),
    name,
    ...(isSum ? ['Share'] : []),
    ...(withEvents ? ['Events'] : []),
  ]
  const rows = rowsOf(dimension, explored).map((row) => {
    const { total, events } = row.numbers
    const share = sum === 0 ? '' : `${(((total ?? 0) / sum) * 100).toFixed(1)} %`
    const cells = [
      numberText(measure, row.numbers),
      ...(isSum ? [share] : []),
      ...(withEvents ? [countText(events)] : []),
    ]
    return { name: row.name, value: total, cells, isRest: row.kind !== 'value' }
  })
  return table(title, columns, rows)
}

function notes(
  { measure }: ShownExploration['asked'],
  { all: totals, rows, ...explored }: Explored,
  isCut: boolean,
) {
  const noteTexts: string[] = []
  if (isCut) noteTexts.push(`The chart shows ${seriesMax} of ${countText(rows.length)} values.`)
  if (isQuantile(measure)) noteTexts.push('Durations are accurate to 2 %.')
  else if (totals.error > 0)
    noteTexts.push(`Numbers with ≈ are estimates, standard error ${(totals.error * 100).toFixed(1)} %.`)
  if (explored.isCut)
    noteTexts.push(
      'This field has more values than can be counted individually. The rest is in others, whatever its size.',
    )
  if (explored.expired > 0)
    noteTexts.push(
      `Retention deleted up to ${countText(explored.expired)} events of this range that may match.`,
    )
  return noteTexts
}
