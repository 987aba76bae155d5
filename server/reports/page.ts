/** The page of a report: one HTML file with charts as SVG, which requests nothing, runs no script and prints well. */
import { createHash } from 'node:crypto'
import { countText, plainHtml, textHtml } from '../text/html.ts'
import { perStep } from '../text/time-zone.ts'
import { besideText, notComparable, notComparableText } from '../counts/headlines.ts'
import { applianceObserver } from '../../db/contract/provenance.ts'
import type { ReportFacts } from './proof.ts'
import type {
  AnalyticsCounts,
  BreakdownView,
  DetectRequests,
  Impostor,
  PeriodView,
  Unit,
} from '../counts/shapes.ts'

interface ReportContents {
  facts: ReportFacts
  key: string // public key of the appliance
  counts: AnalyticsCounts
  requests: DetectRequests
  impostors: Impostor[]
}

/** Up to the proof, which follows. */
export function reportPage({ facts, key, counts, requests, impostors }: ReportContents): string {
  const { period, types, unit } = counts
  const columns = [unit.label, 'Before']
  const inUnit = ({ rows, more }: BreakdownView): Row[] => comparedRows(breakdownRows({ rows, more }), unit)
  const sections = [
    headlines(totalsOf(counts)),
    ...unitNotes(unit),
    timeline(period, counts),
    requestSection(requests, unit),
    impostorTable(impostors),
    table('Operators', columns, inUnit(counts.vendors)),
    table('Tools', ['Calls', 'Before', 'Errors'], breakdownRows(counts.tools, 'error')),
    table('Rules', ['Decisions', 'Before', 'Blocked'], breakdownRows(counts.rules, 'blocked')),
    table('Pages', columns, inUnit(counts.pages)),
    table(
      'Types and outcomes',
      ['Count', 'Before'],
      Object.entries(types)
        .toSorted(([, a], [, b]) => b.count - a.count)
        .flatMap(([type, typeCounts]) => [
          [type, typeCounts.count, typeCounts.before],
          ...Object.entries(typeCounts.outcomes).map(([outcome, { count, before: previousCount }]) => [
            `${type}, ${outcome}`,
            count,
            previousCount,
          ]),
        ]) as Row[],
    ),
  ]
  const sites = period.siteIds.map((id) => period.sites.find(({ siteId }) => siteId === id)?.name ?? id)
  const lead = [
    `${spanOf(period)}, ${plainHtml(period.zone)}`,
    ...(sites.length === 0 ? [] : [`Sites: ${sites.map(textHtml).join(', ')}`]),
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'sha256-${styleHash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${plainHtml(`Agents of ${facts.org}, ${spanOf(period)}`)}</title>
<style>${style}</style>
</head>
<body>
<main>
<header>
<h1>Agents of ${textHtml(facts.org)}</h1>
<p>${lead.join('. ')}</p>
</header>
${sections.filter((section) => section !== '').join('\n')}
<footer>
<h2>Proof</h2>
<p>Sightglass made this report on ${minuteOf(facts.at)} UTC and signed it with the key <code>${key}</code>.
The signature covers every byte of this file. Check it with <code>sightglass verify FILE</code>, or in a browser with
the page <code>/docs/verify-report</code> of the server, which also works from a file. Compare the key with one from
another source, such as an older report or a checkpoint in a log.</p>
<p>All numbers are exact counts by the hour of the event. “Before” is the previous period of the same length.
A request is one request by an agent. A visit is the start of a session of an agent. They are never added.</p>
</footer>
</main>
`
}

type Row = [name: string, ...counts: (number | null)[]] // null: not comparable

export interface Total {
  name: string
  count: number
  before: number | null // null: not comparable
}

export function totalsOf(counts: Pick<AnalyticsCounts, 'headlines'>): Total[] {
  return counts.headlines.map(({ name, count, before: previousCount }) => ({
    name,
    count,
    before: previousCount,
  }))
}

function headlines(totals: Total[]): string {
  const cells = totals.map(({ name, count, before: previousCount }) => {
    const earlier = previousCount === null ? notComparable : `${countText(previousCount)} before`
    return `<div><dt>${name}</dt><dd><b>${countText(count)}</b><small>${earlier}</small></dd></div>`
  })
  return `<dl class="headlines">${cells.join('')}</dl>`
}

function unitNotes(unit: Unit): string[] {
  const notes = [besideText(unit), unit.comparable ? null : notComparableText]
  return notes.flatMap((note) => (note === null ? [] : [`<p>${note}</p>`]))
}

/** Rows without the previous period where it was counted in another unit. */
function comparedRows(rows: Row[], { comparable }: Unit): Row[] {
  return comparable ? rows : rows.map(([name, count = 0]): Row => [name, count, null])
}

const outcomes = [
  { id: 'success', name: 'success', colour: '#2f7d4f' },
  { id: 'blocked', name: 'blocked', colour: '#9c4708' },
  { id: 'error', name: 'error', colour: '#b42318' },
  { id: 'other', name: 'other outcomes', colour: '#85888e' },
]

const kindOf = (outcome: string) => outcomes.find(({ id }) => id === outcome) ?? outcomes.at(-1)

const box = { width: 960, height: 230, left: 52, top: 10, bottom: 24 }

/** Stacked bars of requests or visits per step, by outcome. */
function timeline({ edges, zone }: PeriodView, { counted, unit }: AnalyticsCounts): string {
  const steps = edges.length - 1
  const stacks = outcomes.map((kind) => {
    const counts = Array<number>(steps).fill(0)
    for (const [outcome, of] of Object.entries(counted.outcomes))
      if (kindOf(outcome) === kind) of.steps.forEach((count, step) => (counts[step]! += count))
    return { ...kind, counts }
  })
  const sums = Array.from({ length: steps }, (_, step) =>
    stacks.reduce((sum, { counts }) => sum + counts[step]!, 0),
  )
  const maxCount = Math.max(...sums)
  if (maxCount === 0) return `<p>No ${unit.label.toLowerCase()} in this range.</p>`
  const plot = { width: (box.width - box.left) / steps, height: box.height - box.top - box.bottom }
  const bars = sums.map((sum, step) => {
    let y = box.top + plot.height
    const parts = stacks.map(({ id, counts }) => {
      const height = (counts[step]! / maxCount) * plot.height
      y -= height
      if (height === 0) return ''
      const place = `x="${round(box.left + step * plot.width)}" y="${round(y)}"`
      return `<rect class="${id}" ${place} width="${round(Math.max(0.5, plot.width - 1))}" height="${round(height)}"/>`
    })
    const label = `${minuteOf(edges[step]!, zone)}: ${countText(sum)}`
    return sum === 0 ? '' : `<g><title>${plainHtml(label)}</title>${parts.join('')}</g>`
  })
  const scale = [0, 0.5, 1].map((part) => {
    const y = round(box.top + plot.height * (1 - part))
    const place = `x="${box.left - 6}" y="${y + 4}" text-anchor="end"`
    const label = countText(Math.round(maxCount * part))
    return `<path d="M${box.left} ${y}H${box.width}"/><text ${place}>${label}</text>`
  })
  const days = [0, 1, 2, 3, 4, 5].map((part) => {
    const step = Math.min(steps - 1, Math.round((part * steps) / 6))
    const x = round(box.left + step * plot.width)
    return `<text x="${x}" y="${box.height - 6}">${plainHtml(dayOf(edges[step]!, zone))}</text>`
  })
  const shown = stacks.filter(({ counts }) => counts.some((count) => count > 0))
  const legend = shown.map(({ id, name }) => `<li><i class="${id}"></i>${name}</li>`)
  const about = `at most ${countText(maxCount)} ${unit.label.toLowerCase()} per bar`
  return `<section>
<h2>${unit.label} ${perStep(edges)}, by outcome</h2>
<ul class="legend">${legend.join('')}</ul>
<svg viewBox="0 0 ${box.width} ${box.height}" role="img" aria-label="${about}">
${scale.join('')}${bars.join('')}${days.join('')}</svg>
</section>`
}

/** Nothing without access logs. */
function requestSection(requests: DetectRequests, unit: Unit): string {
  const { verdicts, judgements, unjudged, purposes, all } = requests
  if (verdicts.rows.length === 0 && judgements.length === 0) return ''
  const rowsOf = (breakdown: BreakdownView): Row[] => comparedRows(breakdownRows(breakdown), unit)
  const share =
    all === null
      ? ''
      : `<p>Agents sent ${countText(all.agents.count)} of ${countText(all.requests.count)} requests.</p>`
  return `${share}${table('Verdicts on requests by agents', ['Requests', 'Before'], rowsOf(verdicts))}
${judgeNotes(unjudged)}${judgementTables(judgements, unit)}
${table('Purposes', ['Requests', 'Before'], rowsOf(purposes))}`
}

function judgeNotes(unjudged: DetectRequests['unjudged']): string {
  if (unjudged === null) return ''
  const timeText = unjudged.before === null ? '' : ` before ${unjudged.before.slice(0, 10)}`
  return `<p>The judge of ${countText(unjudged.count)} verdicts was not recorded${timeText}.</p>\n`
}

/** Verdicts that are worth no more than a sender's word, in whole or in part. */
function judgementTables(judgements: DetectRequests['judgements'], unit: Unit): string {
  const rowsOf = (judgementCounts: DetectRequests['judgements']): Row[] => {
    const rows = judgementCounts.map((row): Row => {
      const name = `${row.verdict ?? '(other)'}, ${keyName(row)}`
      return [name, row.count, row.before]
    })
    return comparedRows(rows, unit)
  }
  const observed = judgements.filter(
    ({ judgedBy, by: keyId }) => judgedBy === 'appliance' && keyId !== applianceObserver,
  )
  const reported = judgements.filter(({ judgedBy }) => judgedBy === 'sender')
  const columns = ['Requests', 'Before']
  return `${table('Of these verdicts, from addresses that a key reported', columns, rowsOf(observed))}
${table('Verdicts reported by senders, not checked and not counted above', columns, rowsOf(reported))}`
}

function keyName({ by: keyId, label }: DetectRequests['judgements'][number]): string {
  if (keyId === null) return 'other keys'
  return label === null ? `key ${keyId}` : `key ${label} (${keyId})`
}

function impostorTable(impostors: Impostor[]): string {
  const rows = impostors.map(({ vendor, name, requests }): Row => [name ?? vendor ?? '(no name)', requests])
  return rows.length === 0 ? '' : table('Impostors: requests that claim a name falsely', ['Requests'], rows)
}

/** With `outcome`, a third column: how many of the events had it. */
function breakdownRows({ rows, more: hiddenValues }: BreakdownView, outcome?: string): Row[] {
  const valueRows = rows.map(({ value, count, before: previousCount, outcomes }): Row => [
    value ?? '(others)',
    count,
    previousCount,
    ...(outcome === undefined ? [] : [outcomes[outcome] ?? 0]),
  ])
  return hiddenValues === null
    ? valueRows
    : [...valueRows, [`(${countText(hiddenValues.values)} more)`, hiddenValues.count, hiddenValues.before]]
}

/** Nothing without rows. */
function table(title: string, columns: string[], rows: Row[]): string {
  if (rows.length === 0) return ''
  const head = columns.map((name) => `<th scope="col">${name}</th>`).join('')
  const lines = rows.map(([name, ...counts]) => {
    const cells = columns.map((_, column) => {
      const count = counts[column]
      if (count === null) return `<td>${notComparable}</td>`
      return `<td>${count === undefined ? '' : countText(count)}</td>`
    })
    return `<tr><th scope="row">${textHtml(name)}</th>${cells.join('')}</tr>`
  })
  return `<section>
<h2>${title}</h2>
<table><thead><tr><th scope="col">Name</th>${head}</tr></thead><tbody>${lines.join('')}</tbody></table>
</section>`
}

const round = (value: number): number => Math.round(value * 100) / 100

function spanOf({ since, until, zone }: PeriodView): string {
  return `${minuteOf(since, zone)} to ${minuteOf(until, zone)}`
}

function minuteOf(time: string | number, zone = 'UTC'): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone: zone, dateStyle: 'medium', timeStyle: 'short' }).format(
    typeof time === 'string' ? Date.parse(time) : time,
  )
}

function dayOf(ms: number, zone: string): string {
  return new Intl.DateTimeFormat('en-GB', { timeZone: zone, day: 'numeric', month: 'short' }).format(ms)
}

const style = `
:root { color-scheme: light; font: 14px/1.45 ui-sans-serif, system-ui, 'Segoe UI', Roboto, sans-serif; color: #1b1c1e; }
body { margin: 0; background: #fff; }
main { max-width: 960px; margin: 0 auto; padding: 32px 24px; }
h1 { margin: 0; font-size: 24px; }
h2 { margin: 28px 0 8px; font-size: 16px; }
p { margin: 4px 0; overflow-wrap: anywhere; }
header p, small, footer { color: #55585d; }
.headlines { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: 12px; margin: 24px 0 0; }
.headlines dt { color: #55585d; font-size: 13px; white-space: nowrap; }
.headlines dd { margin: 0; }
.headlines b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 8px; border-bottom: 1px solid #e2e0db; text-align: right; vertical-align: top; }
th:first-child { padding-left: 0; text-align: left; overflow-wrap: anywhere; }
thead th { color: #55585d; font-weight: 550; }
tbody th { width: 100%; font-weight: 400; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: #64676c; font-size: 12px; }
svg path { stroke: #e2e0db; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0 0 4px; padding: 0; list-style: none; }
.legend i { display: inline-block; width: 10px; height: 10px; margin-right: 6px; border-radius: 2px; }
${outcomes.map(({ id, colour }) => `.${id} { fill: ${colour}; background: ${colour}; }`).join('\n')}
footer { margin-top: 32px; border-top: 1px solid #e2e0db; }
code { overflow-wrap: anywhere; }
/* The chart shrinks with the screen, and its labels with it. */
@media (max-width: 600px) { svg { margin-bottom: 12px; overflow: visible; } svg text { font-size: 25px; } }
@media print {
  main { max-width: none; padding: 0; }
  section, .headlines { break-inside: avoid; }
  table { break-inside: auto; }
  tr { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`

const styleHash = createHash('sha256').update(style).digest('base64')
