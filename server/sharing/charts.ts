/** Charts, tables and times of shared pages, as HTML and SVG without scripts. */
import { countText, plainHtml, textHtml } from '../text/html.ts'
import { perStep } from '../text/time-zone.ts'
import type { EventCounts } from '../counts/shapes.ts'
import { notComparable } from '../counts/headlines.ts'

export interface Body {
  lead: string
  sections: string[]
}

export interface Series {
  name: string
  className: string
  counts: (number | null)[] // null: nothing to measure in this step
}

interface Chart {
  title: string // HTML
  edges: number[]
  series: Series[]
  zone: string
  show: (value: number) => string
  unit: string
}

/** Each part is a name and a number, and what is said below it. */
export function numbers(parts: { name: string; value: string; note?: string | undefined }[]): string {
  const lines = parts.map(({ name, value, note }) => {
    const noteHtml = note === undefined ? '' : `<dd class="muted">${note}</dd>`
    return `<div><dt>${textHtml(name)}</dt><dd>${value}</dd>${noteHtml}</div>`
  })
  return `<section class="panel shared-headlines"><dl>${lines.join('\n')}</dl></section>`
}

/** Null: the previous period was counted in another unit. */
export function beforeNote(previousCount: number | null): string | undefined {
  if (previousCount === null) return notComparable
  return previousCount > 0 ? `${countText(previousCount)} in the period before` : undefined
}

const size = { width: 960, height: 200 }

/** Events, requests or visits per step, stacked by outcome. */
export function timeline(
  edges: number[],
  counts: { [outcome: string]: number[] },
  zone: string,
  noun = 'Events',
): string {
  const names = Object.keys(counts).toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1))
  const series = names.map((name) => ({ name, className: outcomeClass(name), counts: counts[name]! }))
  return stackedBars({
    title: `${noun} ${perStep(edges)}, by outcome`,
    edges,
    series,
    zone,
    show: countText,
    unit: ` ${noun.toLowerCase()}`,
  })
}

export function stepsByOutcome(totals: EventCounts): { [outcome: string]: number[] } {
  return Object.fromEntries(Object.entries(totals.outcomes).map(([name, { steps }]) => [name, steps]))
}

export function stackedBars({ title, edges, series, zone, show, unit }: Chart): string {
  const steps = edges.length - 1
  const sums = Array.from({ length: steps }, (_, step) =>
    series.reduce((sum, { counts }) => sum + (counts[step] ?? 0), 0),
  )
  const maxSum = Math.max(1, ...sums)
  const width = size.width / steps
  const bars = sums.flatMap((sum, step) => {
    if (sum === 0) return []
    let y = size.height
    const parts = series.map(({ className, counts }) => {
      const height = ((counts[step] ?? 0) / maxSum) * size.height
      y -= height
      return height === 0 ? '' : rect(step * width, y, Math.max(1, width - 1), height, className)
    })
    const label = `${minuteOf(edges[step]!, zone)}: ${show(sum)}`
    return [`<g><title>${plainHtml(label)}</title>${parts.join('')}</g>`]
  })
  const total = sums.reduce((a, b) => a + b, 0)
  const description = `${show(total)}${unit}, at most ${show(maxSum)} per bar`
  return panelOf(
    { title, edges, series, zone },
    { most: show(maxSum), about: description, kind: '', inner: bars.join('') },
  )
}

/** A line per series with gaps where nothing was measured; a value between two gaps is a dot. */
export function lines({ title, edges, series, zone, show }: Omit<Chart, 'unit'>): string {
  const values = series.flatMap(({ counts }) => counts.filter((count) => count !== null))
  const maxValue = Math.max(...values, 0)
  const width = size.width / (edges.length - 1)
  const paths = series.map(({ name, className, counts }) => {
    const points = counts.map((count, step) => {
      if (count === null) return ''
      const coordinates = `${round((step + 0.5) * width)} ${round(size.height * (1 - count / (maxValue || 1)))}`
      return (counts[step - 1] ?? null) === null ? `M${coordinates}L${coordinates}` : `L${coordinates}`
    })
    return `<path class="${className}" d="${points.join('')}"><title>${plainHtml(name)}</title></path>`
  })
  const description = `At most ${show(maxValue)} per step`
  const inner = paths.toReversed().join('')
  return panelOf(
    { title, edges, series, zone },
    { most: show(maxValue), about: description, kind: ' shared-lines', inner },
  )
}

function panelOf(
  { title, edges, series, zone }: Pick<Chart, 'title' | 'edges' | 'series' | 'zone'>,
  {
    most: maxText,
    about: description,
    kind,
    inner,
  }: { most: string; about: string; kind: string; inner: string },
): string {
  const steps = edges.length - 1
  const ticks = [0, 0.5, 1].map((part) => `<span>${dayOf(edges[Math.round(part * steps)]!, zone)}</span>`)
  const legend = series.map(({ name, className }) => `<li><i class="${className}"></i>${textHtml(name)}</li>`)
  const box = `viewBox="0 0 ${size.width} ${size.height}" preserveAspectRatio="none" role="img"`
  return `<section class="panel"><h2>${title}</h2>
<ul class="shared-legend">${legend.join('')}</ul>
<p class="shared-most">${maxText}</p>
<svg class="shared-chart${kind}" ${box} aria-label="${description}">${inner}</svg>
<p class="shared-ticks">${ticks.join('')}</p></section>`
}

const outcomeOrder = ['success', 'blocked', 'error']

const rankOf = (name: string): number =>
  (outcomeOrder.indexOf(name) + outcomeOrder.length + 1) % (outcomeOrder.length + 1)

export const outcomeClass = (name: string): string =>
  outcomeOrder.includes(name) ? `is-${name}` : 'is-other'

export function rect(x: number, y: number, width: number, height: number, name: string): string {
  return `<rect class="${name}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/>`
}

const round = (value: number): number => Math.round(value * 100) / 100

interface TableRow {
  name: string
  value: number | null // the length of its bar
  cells: string[]
  isRest?: boolean | undefined // of the values beyond the shown ones
}

const barBox = 'viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"'

/** The first column has the names. `title` and `columns` are HTML. */
export function table(title: string, columns: string[], rows: TableRow[]): string {
  const maxValue = Math.max(1, ...rows.map(({ value, isRest }) => (isRest ? 0 : (value ?? 0))))
  const body = rows.map(({ name, value, cells, isRest }) => {
    const length = isRest ? '' : rect(0, 0, ((value ?? 0) / maxValue) * 100, 4, 'is-bar')
    const bar = `<svg class="shared-bar" ${barBox}>${length}</svg>`
    const otherCells = cells.map((cell) => `<td class="number">${cell}</td>`).join('')
    return `<tr><th scope="row">${textHtml(name)}${bar}</th>${otherCells}</tr>`
  })
  const head = columns.map(
    (column, index) => `<th scope="col"${index === 0 ? '' : ' class="number"'}>${column}</th>`,
  )
  const shown =
    rows.length === 0
      ? '<p class="muted">None in this range.</p>'
      : `<table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('')}</tbody></table>`
  return `<section class="panel"><h2>${title}</h2>${shown}</section>`
}

export function spanOf(since: string, until: string, zone: string): string {
  return `${minuteOf(Date.parse(since), zone)} to ${minuteOf(Date.parse(until), zone)}, ${textHtml(zone)}`
}

export function minuteOf(ms: number, zone = 'UTC', seconds = false): string {
  const options = { timeZone: zone, dateStyle: 'medium', timeStyle: seconds ? 'medium' : 'short' } as const
  return new Intl.DateTimeFormat('en-GB', options).format(ms)
}

function dayOf(ms: number, zone: string): string {
  const options = {
    timeZone: zone,
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  } as const
  return new Intl.DateTimeFormat('en-GB', options).format(ms)
}
