/** The page of a share link: HTML with charts as SVG, without scripts, cookies or links into the dashboard. */
import { createHash } from 'node:crypto'
import { filterableFields } from '../../db/contract/event-fields.ts'
import type { BreakdownView, EventCounts, PeriodCount } from '../counts/shapes.ts'
import { limits } from '../limits.ts'
import { countText, plainHtml, textHtml } from '../text/html.ts'
import { minuteOf, numbers, spanOf, stepsByOutcome, table, timeline, type Body } from './charts.ts'
import { exploreBody } from './explore.ts'
import { headlines, overviewBody, type OverviewPanel } from './overview.ts'
import type { Panel, ShareContent, SharedEvent, Shown } from './content.ts'

interface SharedPage {
  name: string
  content: ShareContent
  shown: Shown
  expiresAtMs: number
  now: number
  links: string[] // of the dashboard's icon and style sheet
}

export function sharedPage({ name, content, shown, expiresAtMs, now, links }: SharedPage): string {
  const { lead, sections } = bodyOf(shown, content)
  const updated = `Updated ${minuteOf(now)} UTC. This link ends on ${dayText(expiresAtMs)}.`
  return documentOf(
    links,
    name,
    `<header><h1>${textHtml(name)}</h1><p>${lead}</p></header>
${sections.join('\n')}
<footer><p>${updated} Made with Sightglass.</p></footer>`,
  )
}

function bodyOf(shown: Shown, content: ShareContent): Body {
  if (shown.page === 'explore') return exploreBody(shown)
  if (shown.page === 'overview') return overviewBody(shown, content.panels as OverviewPanel[])
  return shown.page === 'analytics' ? analytics(shown, content.panels as Panel[]) : view(shown, content)
}

const dayText = (ms: number): string =>
  new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', dateStyle: 'medium' }).format(ms)

/** For links that never existed, have expired or were revoked: the page does not say which. */
export function endedPage(links: string[]): string {
  return documentOf(
    links,
    'Link not found',
    '<header><h1>Link not found</h1><p>This link does not exist, has expired or was revoked. ' +
      'Ask the person who sent it for a new one.</p></header>',
  )
}

function documentOf(links: string[], title: string, main: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${plainHtml(title)}</title>
${links.join('\n')}
<style>${style}</style>
</head>
<body>
<main class="shared">
${main}
</main>
</body>
</html>
`
}

function analytics({ counts }: Shown & { page: 'analytics' }, panels: Panel[]): Body {
  const { period, types, unit } = counts
  const unitLabel = unit.label
  const inUnit = stepsByOutcome(counts.counted)
  const names = period.siteIds.map((id) => period.sites.find(({ siteId }) => siteId === id)?.name ?? id)
  const chosen = [
    ...names.map((site) => `site: ${textHtml(site)}`),
    ...period.filters.map((filter) => `${textHtml(filter.name)}: ${textHtml(filter.value)}`),
  ]
  const lead = [spanOf(period.since, period.until, period.zone), ...chosen].join(' · ')
  if (!period.complete)
    return { lead, sections: ['<p>There are too many events to count. Narrow the range or the filters.</p>'] }
  const byPanel: { [panel in Panel]: () => string } = {
    headlines: () => headlines(counts),
    timeline: () => timeline(period.edges, inUnit, period.zone, unitLabel),
    types: () => countsBy('Types', ['Type', 'Count'], rowsOf(types)),
    outcomes: () => countsBy('Outcomes', ['Outcome', unitLabel], rowsOf(counts.counted.outcomes)),
    vendors: () => countsBy('Vendors', ['Vendor', unitLabel], breakdownRows(counts.vendors)),
    classes: () => countsBy('Agent classes', ['Class', unitLabel], breakdownRows(counts.classes)),
    tools: () => countsBy('Tools', ['Tool', 'Tool calls'], breakdownRows(counts.tools)),
    pages: () => countsBy('Pages', ['Page', unitLabel], breakdownRows(counts.pages)),
    protocols: () => countsBy('Protocols', ['Protocol', 'Identities'], breakdownRows(counts.protocols)),
    rules: () => countsBy('Rules', ['Rule', 'Decisions'], breakdownRows(counts.rules)),
  }
  const isWide = (panel: Panel) => panel === 'headlines' || panel === 'timeline'
  const wide = panels.filter(isWide)
  const narrow = panels.filter((panel) => !isWide(panel)).map((panel) => byPanel[panel]())
  const grid = narrow.length === 0 ? [] : [`<div class="shared-grid">${narrow.join('\n')}</div>`]
  return { lead, sections: [...wide.map((panel) => byPanel[panel]()), ...grid] }
}

function view(
  { filter, zone, histogram, events }: Shown & { page: 'view' },
  { identities }: ShareContent,
): Body {
  const { since, until, edges, counts, total, complete, lookedSince } = histogram
  const chosen = Object.entries(filter).flatMap(([name, values]) =>
    Array.isArray(values)
      ? values.map((value) => `${textHtml(filterNames[name] ?? name)}: ${textHtml(value)}`)
      : [],
  )
  const sections = [
    numbers([{ name: 'Events', value: countText(total) }]),
    timeline(edges, counts, zone),
    ...(complete
      ? []
      : [`<p>Events before ${minuteOf(Date.parse(lookedSince), zone)} were not all counted.</p>`]),
    ...(events === null ? [] : [eventTable(events, identities, zone)]),
  ]
  return { lead: [spanOf(since, until, zone), ...chosen].join(' · '), sections }
}

const filterNames: { readonly [list: string]: string } = {
  ...Object.fromEntries(filterableFields.map(({ filter, label }) => [filter, label])),
  networks: 'network',
}

interface Row {
  name: string
  count: number
  isRest?: boolean // of the values beyond the shown ones
}

function rowsOf(counts: { [name: string]: PeriodCount }): Row[] {
  const allRows = Object.entries(counts).map(([name, { count }]) => ({ name, count }))
  const rows = allRows.toSorted((a, b) => b.count - a.count)
  const hiddenRows = rows.splice(limits.shareRowsMax)
  return withRest(
    rows,
    hiddenRows.length,
    hiddenRows.reduce((sum, { count }) => sum + count, 0),
  )
}

function breakdownRows({ rows, more: hiddenValues }: BreakdownView): Row[] {
  const valueRows = rows.map(({ value, count }) => ({
    name: value ?? '(others)',
    count,
    isRest: value === null,
  }))
  return withRest(valueRows, hiddenValues?.values ?? 0, hiddenValues?.count ?? 0)
}

function withRest(rows: Row[], values: number, count: number): Row[] {
  return values === 0 ? rows : [...rows, { name: `(${countText(values)} more)`, count, isRest: true }]
}

function countsBy(title: string, columns: [name: string, count: string], rows: Row[]): string {
  const shown = rows.map(({ name, count, isRest }) => {
    return { name, value: count, cells: [countText(count)], isRest }
  })
  return table(title, columns, shown)
}

function eventTable(events: SharedEvent[], identities: boolean, zone: string): string {
  const columns = [
    'Time',
    'Type',
    'Outcome',
    'Site',
    'Agent',
    'Tool',
    ...(identities ? ['Session', 'Identity'] : []),
  ]
  const rows = events.map(({ atMs, texts }) => {
    const cells = texts.map((text) => `<td>${text === '' ? '' : textHtml(text)}</td>`)
    return `<tr><td>${textHtml(minuteOf(atMs, zone, true))}</td>${cells.join('')}</tr>`
  })
  const head = columns.map((name) => `<th scope="col">${name}</th>`).join('')
  const table = `<table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`
  const body =
    rows.length === 0
      ? '<p class="muted">No events in this range.</p>'
      : `<div class="table" tabindex="0">${table}</div>`
  return `<section class="panel"><h2>Newest events</h2>${body}</section>`
}

const tones: { readonly [name: string]: string } = {
  success: 'allow',
  blocked: 'block',
  error: 'error',
  other: 'class-other',
  none: 'line-strong',
  bar: 'accent',
  ...Object.fromEntries(Array.from({ length: 8 }, (_, index) => [index + 1, `series-${index + 1}`])),
}

const toneStyle = Object.entries(tones)
  .map(([name, tone]) => `.shared .is-${name} { color: var(--${tone}); }\n`)
  .join('')

/** Colours and sizes are the dashboard's tokens. */
const style = `
.shared { display: grid; gap: var(--s4); max-width: var(--page-width); margin: 0 auto;
  padding: var(--s5) var(--s4) var(--s6); }
.shared > header p, .shared > footer p { margin-top: var(--s1); color: var(--ink-2); overflow-wrap: anywhere; }
.shared h1 { font-size: var(--text-title); overflow-wrap: anywhere; }
.shared h2 { margin-bottom: var(--s2); font-size: var(--text-lead); }
.shared .panel { padding: var(--s4); min-width: 0; }
.shared-grid { display: grid; gap: var(--s4); align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); }
.shared-headlines dl { display: flex; flex-wrap: wrap; gap: var(--s4) var(--s6); margin: 0; }
.shared-headlines dt { color: var(--ink-2); font-size: var(--text-label); }
.shared-headlines dd { margin: 0; font-size: var(--text-number); font-variant-numeric: tabular-nums; }
.shared-headlines dd.muted { font-size: var(--text-label); }
.shared-chart { display: block; width: 100%; height: var(--chart-height); border-bottom: 1px solid var(--line); }
.shared-most, .shared-ticks { color: var(--ink-3); font-size: var(--text-label); }
.shared-ticks { display: flex; justify-content: space-between; gap: var(--s2); margin-top: var(--s1); }
.shared-legend { display: flex; flex-wrap: wrap; gap: var(--s1) var(--s3); margin: 0 0 var(--s2); padding: 0;
  list-style: none; color: var(--ink-2); font-size: var(--text-label); }
.shared-legend i { display: inline-block; width: 10px; height: 10px; margin-right: 5px;
  border-radius: var(--radius-dot); }
.shared-legend i { background: currentColor; }
.shared rect { fill: currentColor; }
${toneStyle}.shared-lines path { fill: none; stroke: currentColor; stroke-width: 2px; stroke-linecap: round;
  stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.shared-changes { display: grid; gap: var(--s3); margin: 0 0 var(--s3); padding: 0; list-style: none; }
.shared-changes li { display: grid; grid-template-columns: 12ch minmax(0, 1fr) auto; gap: var(--s1) var(--s3);
  align-items: center; overflow-wrap: anywhere; }
.shared-changes p { margin: 0; }
.shared-change { width: 120px; height: 28px; }
@media (max-width: 600px) { .shared-changes li { grid-template-columns: minmax(0, 1fr); } }
.shared-bar { display: block; width: 100%; height: 4px; margin-top: 3px; }
.shared table { width: 100%; border-collapse: collapse; }
.shared th, .shared td { padding: var(--s1) 0; border: 0; text-align: left; vertical-align: top;
  white-space: normal; overflow-wrap: anywhere; }
.shared td + td, .shared th + th, .shared th + td { padding-left: var(--s3); }
.shared .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.shared tbody th { width: 100%; font-weight: 400; }
.shared .table { overflow-x: auto; }
.shared .table td { min-width: 16ch; }
.shared .table td:nth-child(-n + 3) { white-space: nowrap; }
.shared .table td:nth-child(n + 5) { min-width: 22ch; }
`

const styleHash = createHash('sha256').update(style).digest('base64')

/** No script, no connection, no frame but on the sites that the link allows. */
export function sharedPolicy(frameOrigins: string[]): string {
  const ancestors = frameOrigins.length === 0 ? "'none'" : frameOrigins.join(' ')
  return (
    `default-src 'none'; style-src 'self' 'sha256-${styleHash}'; img-src 'self' data:; base-uri 'none'; ` +
    `form-action 'none'; frame-ancestors ${ancestors}`
  )
}
