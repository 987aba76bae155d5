/** The page of a share link: HTML with charts as SVG, without scripts, cookies or links into the dashboard. */
import { createHash } from 'node:crypto'
import { isoTime } from '../clock.ts'
import type { BreakdownView, EventCounts, PeriodCount } from '../dashboard/shapes.ts'
import { limits } from '../limits.ts'
import { countText, plainHtml, textHtml } from '../text/html.ts'
import type { EventFilter } from '../../db/contract/store.ts'
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
  const { lead, sections } =
    shown.page === 'analytics' ? analytics(shown, content.panels) : view(shown, content)
  const updated = `Updated ${minuteOf(now)} UTC. This link ends on ${isoTime(expiresAtMs).slice(0, 10)}.`
  return documentOf(
    links,
    name,
    `<header><h1>${textHtml(name)}</h1><p>${lead}</p></header>
${sections.join('\n')}
<footer><p>${updated} Made with Sightglass.</p></footer>`,
  )
}

/** For links that never existed, have expired or were revoked: which of them is nobody's business. */
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

interface Body {
  lead: string
  sections: string[]
}

function analytics({ counts }: Shown & { page: 'analytics' }, panels: Panel[]): Body {
  const { period, all, types } = counts
  const names = period.siteIds.map((id) => period.sites.find(({ siteId }) => siteId === id)?.name ?? id)
  const chosen = [
    ...names.map((site) => `site: ${textHtml(site)}`),
    ...period.filters.map((filter) => `${textHtml(filter.name)}: ${textHtml(filter.value)}`),
  ]
  const lead = [spanOf(period.since, period.until, period.zone), ...chosen].join(' · ')
  if (!period.complete)
    return { lead, sections: ['<p>There are too many events to count. Narrow the range or the filters.</p>'] }
  const outcomes = Object.fromEntries(Object.entries(all.outcomes).map(([name, { steps }]) => [name, steps]))
  const byPanel: { [panel in Panel]: () => string } = {
    headlines: () => headlines(all),
    timeline: () => timeline(period.edges, outcomes, period.zone),
    types: () => table('Types', 'Type', rowsOf(types)),
    outcomes: () => table('Outcomes', 'Outcome', rowsOf(all.outcomes)),
    vendors: () => table('Vendors', 'Vendor', breakdownRows(counts.vendors)),
    classes: () => table('Agent classes', 'Class', breakdownRows(counts.classes)),
    tools: () => table('Tools', 'Tool', breakdownRows(counts.tools)),
    pages: () => table('Pages', 'Page', breakdownRows(counts.pages)),
    protocols: () => table('Protocols', 'Protocol', breakdownRows(counts.protocols)),
    rules: () => table('Rules', 'Rule', breakdownRows(counts.rules)),
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
    `<section class="panel shared-headlines"><dl><div><dt>Events</dt><dd>${countText(total)}</dd></div></dl></section>`,
    timeline(edges, counts, zone),
    ...(complete
      ? []
      : [`<p>Events before ${minuteOf(Date.parse(lookedSince), zone)} were not all counted.</p>`]),
    ...(events === null ? [] : [eventTable(events, identities, zone)]),
  ]
  return { lead: [spanOf(since, until, zone), ...chosen].join(' · '), sections }
}

const filterNames: { readonly [list: string]: string } = {
  ...{ types: 'type', outcomes: 'outcome', siteIds: 'site', sessionIds: 'session', classes: 'agent class' },
  ...{ vendors: 'vendor', trusts: 'trust', tools: 'tool', protocols: 'protocol', subjects: 'identity' },
  ...{
    decisions: 'decision',
    names: 'agent name',
    purposes: 'purpose',
    verdicts: 'verdict',
    robots: 'robots.txt',
  },
} satisfies { [list in keyof EventFilter]?: string }

function headlines(all: EventCounts): string {
  const [count, before] = [all.count, all.before]
  const change = before > 0 ? `<dd class="muted">${countText(before)} in the period before</dd>` : ''
  const outcomes = Object.entries(all.outcomes)
    .toSorted(([, a], [, b]) => b.count - a.count)
    .slice(0, 3)
    .map(([name, each]) => `<div><dt>${textHtml(name)}</dt><dd>${countText(each.count)}</dd></div>`)
  return `<section class="panel shared-headlines"><dl><div><dt>Events</dt><dd>${countText(count)}</dd>${change}</div>
${outcomes.join('')}</dl></section>`
}

const size = { width: 960, height: 200 }

/** Bars per step, stacked by outcome. */
function timeline(edges: number[], counts: { [outcome: string]: number[] }, zone: string): string {
  const names = Object.keys(counts).toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1))
  const steps = edges.length - 1
  const sums = Array.from({ length: steps }, (_, step) =>
    names.reduce((sum, name) => sum + counts[name]![step]!, 0),
  )
  const most = Math.max(1, ...sums)
  const width = size.width / steps
  const bars = sums.flatMap((sum, step) => {
    if (sum === 0) return []
    let y = size.height
    const parts = names.map((name) => {
      const height = (counts[name]![step]! / most) * size.height
      y -= height
      return height === 0 ? '' : rect(step * width, y, Math.max(1, width - 1), height, classOf(name))
    })
    const label = `${minuteOf(edges[step]!, zone)}: ${countText(sum)}`
    return [`<g><title>${plainHtml(label)}</title>${parts.join('')}</g>`]
  })
  const ticks = [0, 0.5, 1].map((part) => `<span>${dayOf(edges[Math.round(part * steps)]!, zone)}</span>`)
  const total = sums.reduce((a, b) => a + b, 0)
  const legend = names.map((name) => `<li><i class="${classOf(name)}"></i>${textHtml(name)}</li>`).join('')
  const about = `${countText(total)} events, at most ${countText(most)} per bar`
  const box = `viewBox="0 0 ${size.width} ${size.height}" preserveAspectRatio="none" role="img"`
  return `<section class="panel"><h2>Events over time, by outcome</h2>
<ul class="shared-legend">${legend}</ul>
<p class="shared-most">${countText(most)}</p>
<svg class="shared-chart" ${box} aria-label="${about}">${bars.join('')}</svg>
<p class="shared-ticks">${ticks.join('')}</p></section>`
}

const outcomeOrder = ['success', 'blocked', 'error']

const rankOf = (name: string): number =>
  (outcomeOrder.indexOf(name) + outcomeOrder.length + 1) % (outcomeOrder.length + 1)

const classOf = (name: string): string => (outcomeOrder.includes(name) ? `is-${name}` : 'is-other')

function rect(x: number, y: number, width: number, height: number, name: string): string {
  return `<rect class="${name}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/>`
}

const round = (value: number): number => Math.round(value * 100) / 100

interface Row {
  name: string
  count: number
  isRest?: boolean // of the values beyond the shown ones
}

function rowsOf(counts: { [name: string]: PeriodCount }): Row[] {
  const all = Object.entries(counts).map(([name, { count }]) => ({ name, count }))
  const rows = all.toSorted((a, b) => b.count - a.count)
  const rest = rows.splice(limits.shareRowsMax)
  return withRest(
    rows,
    rest.length,
    rest.reduce((sum, { count }) => sum + count, 0),
  )
}

function breakdownRows({ rows, more }: BreakdownView): Row[] {
  const known = rows.map(({ value, count }) => ({ name: value ?? '(others)', count, isRest: value === null }))
  return withRest(known, more?.values ?? 0, more?.count ?? 0)
}

function withRest(rows: Row[], values: number, count: number): Row[] {
  return values === 0 ? rows : [...rows, { name: `(${countText(values)} more)`, count, isRest: true }]
}

const barBox = 'viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"'

function table(title: string, column: string, rows: Row[]): string {
  const most = Math.max(1, ...rows.map(({ count, isRest }) => (isRest ? 0 : count)))
  const lines = rows.map(({ name, count, isRest }) => {
    const length = isRest ? '' : rect(0, 0, (count / most) * 100, 4, 'is-bar')
    const bar = `<svg class="shared-bar" ${barBox}>${length}</svg>`
    return `<tr><th scope="row">${textHtml(name)}${bar}</th><td class="number">${countText(count)}</td></tr>`
  })
  const head = `<th scope="col">${column}</th><th scope="col" class="number">Events</th>`
  const body =
    lines.length === 0
      ? '<p class="muted">None in this range.</p>'
      : `<table><thead><tr>${head}</tr></thead><tbody>${lines.join('')}</tbody></table>`
  return `<section class="panel"><h2>${title}</h2>${body}</section>`
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

function spanOf(since: string, until: string, zone: string): string {
  return `${minuteOf(Date.parse(since), zone)} to ${minuteOf(Date.parse(until), zone)}, ${textHtml(zone)}`
}

function minuteOf(ms: number, zone = 'UTC', seconds = false): string {
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
.shared .is-success { fill: var(--allow); background: var(--allow); }
.shared .is-blocked { fill: var(--block); background: var(--block); }
.shared .is-error { fill: var(--error); background: var(--error); }
.shared .is-other { fill: var(--class-other); background: var(--class-other); }
.shared .is-bar { fill: var(--accent); }
.shared-bar { display: block; width: 100%; height: 4px; margin-top: 3px; }
.shared table { width: 100%; border-collapse: collapse; }
.shared th, .shared td { padding: var(--s1) 0; border: 0; text-align: left; vertical-align: top;
  white-space: normal; overflow-wrap: anywhere; }
.shared td + td, .shared th + th, .shared th + td { padding-left: var(--s3); }
.shared .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.shared tbody th { width: 100%; font-weight: 400; }
.shared .table { overflow-x: auto; }
.shared .table td { min-width: 9ch; }
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
