/** The texts and links of Overview, and the moment from which it reports. */
import { isoTime } from '../../app/clock.ts'
import { logsHref, type LogsFilter } from '../../range/filters.tsx'
import { percent, shareOf } from '../../charts/headlines.tsx'
import { counted, count } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import type { Change, ChangeKind, Changes } from '../../api/api.ts'
import { dayMs } from '../../../db/contract/units.ts'

/** What Overview says of a change: `before`, the name of a stranger, `after`. */
interface Sentence {
  before: string
  name: string
  after: string
}

interface KindTexts {
  label: string
  tone: 'error' | 'block' | 'accent'
  more: (n: number) => string
  sentence: (change: Change) => Omit<Sentence, 'name'>
}

/** What a new operator did, to follow its name. */
function firstText(n: number, unit: Change['unit']): string {
  if (unit === 'requests') return `sent its first ${counted(n, 'request')}`
  return unit === 'visits'
    ? `began its first ${counted(n, 'visit')}`
    : `sent its first ${counted(n, 'event')}`
}

const inRequests = (n: number) => counted(n, 'request')

function rates({ count: now, before: previousCount, of: whole }: Change, singular: string): string {
  if (whole === null) return ''
  const share = percent(shareOf(now, whole.count))
  return `: ${share} of ${counted(whole.count, singular)}, ${percent(shareOf(previousCount, whole.before))} before.`
}

/** In the sentences: "before" is the 30 days before the chosen moment. */
export const kinds: { readonly [kind in ChangeKind]: KindTexts } = {
  impostor: {
    label: 'Impostor',
    tone: 'error',
    more: (n) => `${counted(n, 'more impostor')}`,
    sentence: ({ count: n }) => ({
      before: `${inRequests(n)} ${n === 1 ? 'claims' : 'claim'} to be `,
      after: ', and the evidence contradicts it.',
    }),
  },
  refusedOperator: {
    label: 'Refused',
    tone: 'block',
    more: (n) => `${counted(n, 'more operator')} refused`,
    sentence: ({ count: n }) => ({
      before: 'The site began to refuse ',
      after: `: ${inRequests(n)}.`,
    }),
  },
  refusingRule: {
    label: 'Blocked',
    tone: 'block',
    more: (n) => `${counted(n, 'more rule')} that block`,
    sentence: ({ count: n }) => ({ before: 'Rule ', after: ` began to block: ${counted(n, 'decision')}.` }),
  },
  failingTool: {
    label: 'Errors',
    tone: 'error',
    more: (n) => `${counted(n, 'more tool')} with errors`,
    sentence: (change) => ({ before: 'Tool ', after: ` fails more often${rates(change, 'call')}` }),
  },
  failingOperator: {
    label: 'Errors',
    tone: 'error',
    more: (n) => `${counted(n, 'more operator')} with errors`,
    sentence: (change) => ({
      before: 'Requests by ',
      after: ` fail more often${rates(change, 'request')}`,
    }),
  },
  operator: {
    label: 'New operator',
    tone: 'accent',
    more: (n) => `${counted(n, 'more new operator')}`,
    sentence: ({ count: n, unit }) => ({ before: '', after: ` ${firstText(n, unit)}.` }),
  },
  tool: {
    label: 'New tool',
    tone: 'accent',
    more: (n) => `${counted(n, 'more new tool')}`,
    sentence: ({ count: n }) => ({
      before: '',
      after: ` was called for the first time: ${counted(n, 'call')}.`,
    }),
  },
}

export function sentenceOf(change: Change): Sentence {
  return { ...kinds[change.kind].sentence(change), name: change.name }
}

/** "2 more new tools, 1 more impostor", null without any. */
export function moreText({ more: moreCounts }: Pick<Changes, 'more'>): string | null {
  const parts = (Object.entries(moreCounts) as [ChangeKind, number][]).map(([kind, n]) => kinds[kind].more(n))
  return parts.length === 0 ? null : parts.join(', ')
}

/** The events behind a change; a rule's are on Authz, because Logs cannot filter by rule. */
export function hrefOf(change: Change, { since, until }: Pick<Changes, 'since' | 'until'>): string {
  const { kind, name, claims, unit } = change
  if (kind === 'refusingRule')
    return `/authz?${new URLSearchParams({ since, until, filter: `rule:${name}` })}`
  const type = unit === null || unit === 'events' ? null : measures[unit].type
  const filters: Record<Exclude<ChangeKind, 'refusingRule'>, LogsFilter> = {
    impostor: {
      type: 'agent.requested',
      verdict: 'contradicted',
      ...(claims?.vendor != null && { vendor: claims.vendor }),
      ...(claims?.agent != null && { name: claims.agent }),
    },
    refusedOperator: { type: 'agent.requested', vendor: name, outcome: 'blocked' },
    failingTool: { type: 'tool.executed', tool: name, outcome: 'error' },
    failingOperator: { type: 'agent.requested', vendor: name, outcome: 'error' },
    operator: { vendor: name, ...(type !== null && { type }) },
    tool: { type: 'tool.executed', tool: name },
  }
  return logsHref({ ...filters[kind], since, until })
}

/** What a chart of a change says to those who do not see it. */
export function chartText({ count: now, before: previousCount }: Change): string {
  return `${count(now)} since then, ${count(previousCount)} in the 30 days before`
}

/** The reports that the address can choose; without one, those since the last visit. */
export const reports = { '24h': dayMs, '7d': 7 * dayMs, '30d': 30 * dayMs } as const

/** A visit ends when Overview was not open for this long. */
const visitMs = 30 * 60_000

/** When this visit's report begins, when Overview was last open, and which changes were reported. */
export interface Look {
  since: string
  at: string
  /** Changes that the report before showed; this one begins in the hour in which that one ended. */
  hidden: string[]
  shown: string[]
}

/**
 * Half an hour after the last look a new report begins where the last one ended. The first one covers 24 hours, and
 * none more than 30 days.
 */
export function lookAgain(last: Look | null, nowMs: number): Look {
  if (last === null) return { ...nextLook(null, nowMs), since: isoTime(nowMs - reports['24h']) }
  const next = nowMs - Date.parse(last.at) < visitMs ? { ...last, at: isoTime(nowMs) } : nextLook(last, nowMs)
  const sinceMs = Math.min(nowMs, Math.max(Date.parse(next.since), nowMs - reports['30d']))
  return { ...next, since: isoTime(sinceMs) }
}

/** Begins a report where the last one ended. */
function nextLook(last: Look | null, nowMs: number): Look {
  const nowText = isoTime(nowMs)
  return { since: last?.at ?? nowText, at: nowText, hidden: last?.shown ?? [], shown: [] }
}

/** As many as the server stores; those that were reported first are forgotten first. */
const hiddenMax = 100

/** The report after everything in `last` was seen. The clock of another device may be ahead of this one. */
export function seeAll(last: Look, nowMs: number): Look {
  const sinceMs = Math.max(nowMs, Date.parse(last.since))
  const hidden = [...new Set([...last.hidden, ...last.shown])].slice(-hiddenMax)
  return { ...nextLook(last, nowMs), since: isoTime(sinceMs), hidden }
}

/** The report that began later; of one report, what was noted last. */
export function newerLook(look: Look | null, otherLook: Look | null): Look | null {
  if (look === null || otherLook === null) return look ?? otherLook
  const compareBy = (field: 'since' | 'at') => Date.parse(look[field]) - Date.parse(otherLook[field])
  return (compareBy('since') || compareBy('at')) >= 0 ? look : otherLook
}

/** What this browser has stored. */
export function parseLook(stored: string | null): Look | null {
  try {
    const { since, at: notedAt, hidden, shown } = JSON.parse(stored ?? '') as Partial<Look>
    if (Number.isNaN(Date.parse(since ?? '')) || Number.isNaN(Date.parse(notedAt ?? ''))) return null
    const texts = (list: unknown): string[] => (Array.isArray(list) ? list.map(String) : [])
    return { since: since!, at: notedAt!, hidden: texts(hidden), shown: texts(shown) }
  } catch {
    return null // nothing stored, or by another program
  }
}

export const keyOf = ({ kind, name }: Change): string => `${kind} ${name}`
