/** The shared page of Overview: the last 7 days in numbers, and what changed in the last 24 hours. */
import { countText, plainHtml, textHtml } from '../text/html.ts'
import { beforeNote, minuteOf, numbers, rect, spanOf, stepsByOutcome, timeline, type Body } from './charts.ts'
import type { Change, ChangeKind, Changes, WeekCounts } from '../counts/shapes.ts'
import { besideText, firstText } from '../counts/headlines.ts'

export const overviewPanelNames = ['headlines', 'timeline', 'changes'] as const

export type OverviewPanel = (typeof overviewPanelNames)[number]

export interface ShownOverview {
  counts: WeekCounts
  changes: Changes | null // null: not chosen
}

export function overviewBody({ counts, changes }: ShownOverview, panels: readonly OverviewPanel[]): Body {
  const { period, unit } = counts
  const lead = spanOf(period.since, period.until, period.zone)
  const inUnit = stepsByOutcome(counts.counted)
  const byPanel: { [panel in OverviewPanel]: () => string } = {
    headlines: () => headlines(counts),
    timeline: () => timeline(period.edges, inUnit, period.zone, unit.label),
    changes: () => (changes === null ? '' : changeList(changes, period.zone)),
  }
  return { lead, sections: panels.map((panel) => byPanel[panel]()) }
}

/** With a sentence about visits that are not among the requests. */
export function headlines(counts: WeekCounts): string {
  const lines = counts.headlines.map(({ name, count, before }) => {
    return { name, value: countText(count), note: beforeNote(before) }
  })
  const beside = besideText(counts.unit)
  return numbers(lines) + (beside === null ? '' : `<p class="muted">${beside}</p>`)
}

const counted = (n: number, noun: string): string => `${countText(n)} ${n === 1 ? noun : `${noun}s`}`

function percent(part: number, total: number): string {
  if (total === 0) return '–'
  const share = part / total
  if (share > 0 && share < 0.005) return 'under 1 %'
  if (share < 1 && share > 0.995) return 'over 99 %'
  return `${Math.round(share * 100)} %`
}

function rates({ count, before: previousCount, of: totalCounts }: Change, noun: string): string {
  if (totalCounts === null) return ''
  const now = percent(count, totalCounts.count)
  const then = percent(previousCount, totalCounts.before)
  return `: ${now} of ${counted(totalCounts.count, noun)}, ${then} before.`
}

/** The same words as on Overview (web/pages/overview/model.ts), before and after a stranger's name. */
export const sentences: {
  readonly [kind in ChangeKind]: { label: string; of: (change: Change) => [string, string] }
} = {
  impostor: {
    label: 'Impostor',
    of: ({ count: n }) => [
      `${counted(n, 'request')} ${n === 1 ? 'claims' : 'claim'} to be `,
      ', and the evidence contradicts it.',
    ],
  },
  refusedOperator: {
    label: 'Refused',
    of: ({ count: n }) => ['The site began to refuse ', `: ${counted(n, 'request')}.`],
  },
  refusingRule: {
    label: 'Blocked',
    of: ({ count: n }) => ['Rule ', ` began to block: ${counted(n, 'decision')}.`],
  },
  failingTool: { label: 'Errors', of: (change) => ['Tool ', ` fails more often${rates(change, 'call')}`] },
  failingOperator: {
    label: 'Errors',
    of: (change) => ['Requests by ', ` fail more often${rates(change, 'request')}`],
  },
  operator: {
    label: 'New operator',
    of: ({ count: n, unit }) => ['', ` ${firstText(n, unit)}.`],
  },
  tool: {
    label: 'New tool',
    of: ({ count: n }) => ['', ` was called for the first time: ${counted(n, 'call')}.`],
  },
}

function changeList(data: Changes, zone: string): string {
  const rows = data.changes.map((change) => {
    const { label, of: formatSentence } = sentences[change.kind]
    const [prefix, suffix] = formatSentence(change)
    const sentence = `${prefix}<b>${textHtml(change.name)}</b>${suffix}`
    return `<li><span class="muted">${label}</span><p>${sentence}</p>${bars(change, data)}</li>`
  })
  const emptyText = data.compared
    ? 'Nothing changed: no new operators, impostors, tools or refusals, and no error rate rose.'
    : 'No events in the 30 days before, so nothing can be compared yet.'
  const hiddenCount = Object.values(data.more).reduce((sum, n) => sum + n, 0)
  const notes = [
    hiddenCount > 0 && `Not listed: ${counted(hiddenCount, 'more change')}.`,
    !data.complete && 'Impostors are missing: too many contradicted requests to count in time.',
    rows.length > 0 &&
      'Compared with the 30 days before. Bars show about 7 days before, then the time since.',
  ].filter((note) => note !== false)
  return `<section class="panel"><h2>Changed since ${minuteOf(Date.parse(data.since), zone)}</h2>
${rows.length === 0 ? `<p class="muted">${emptyText}</p>` : `<ul class="shared-changes">${rows.join('\n')}</ul>`}
${notes.map((note) => `<p class="muted">${note}</p>`).join('')}</section>`
}

const size = { width: 120, height: 28 }

function bars({ steps, count, before: previousCount }: Change, { edges, since }: Changes): string {
  const maxCount = Math.max(1, ...steps)
  const width = size.width / steps.length
  const sinceMs = Date.parse(since)
  const shown = steps.map((n, step) => {
    const height = n === 0 ? 1 : Math.max(2, (n / maxCount) * size.height)
    const name = n === 0 || edges[step]! < sinceMs ? 'is-none' : 'is-bar'
    return rect(step * width, size.height - height, Math.max(1, width - 1), height, name)
  })
  const description = `${countText(count)} since then, ${countText(previousCount)} in the 30 days before`
  const box = `viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${plainHtml(description)}"`
  return `<svg class="shared-change" ${box}>${shown.join('')}</svg>`
}
