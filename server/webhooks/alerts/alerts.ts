/** Describes alerts for people: sentence, severity, dashboard link, and the notices above every page. */
import { isoTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import type { Incident, Rule } from '../../../db/contract/alerts.ts'
import type { Endpoint } from '../../../db/contract/webhooks.ts'
import { filterableFields } from '../../../db/contract/event-fields.ts'
import { hourMs } from '../../../db/contract/units.ts'

type Data = Incident['data']
type Severity = 'critical' | 'warning' | 'info'

/** The data comes from `evaluate.ts`; each kind of rule has a field that no other kind has. */
export function incidentSentence({ data }: Pick<Incident, 'data'>): string {
  if ('measure' in data) return measureSentence(data)
  if ('vendor' in data) return `New vendor: ${data['vendor']}.`
  if ('tool' in data) return `High error rate of tool ${data['tool']}: ${shareWords(data, 'execution')}.`
  if ('share' in data) return `High blocked share: ${shareWords(data, 'event')}.`
  if ('minutes' in data) {
    return `No events for ${count(data['minutes'], 'minute')}. The last event arrived at ${data['lastEventAt']}.`
  }
  if ('keyId' in data) return `Ingest key ${data['prefix']}… (${data['label']}) was used from a browser.`
  return 'An alert rule opened an alert.'
}

/** "Blocked checkouts (vendor GPTBot): 120 events in 1 hour, above 100. 82 % of the rise …". */
function measureSentence(data: Data): string {
  const { name, groupBy, group, value, noData, windowMinutes, condition, expected, explanation } = data
  const measure = String(data['measure'])
  const noun = measure === 'count' ? typeNoun(data['filter']) : measureNouns[measure]
  const subject =
    groupBy === undefined ? String(name) : `${String(name)} (${String(groupBy)} ${String(group)})`
  const window = windowText(Number(windowMinutes))
  const { kind, value: limit } = condition as { kind: string; value?: number }
  const because = typeof explanation === 'string' && explanation !== '' ? ` ${explanation}.` : ''
  if (noData === true || kind === 'absence')
    return `${subject}: no ${pluralOf(typeNoun(data['filter']))} in ${window}.${because}`
  const shown = measureText(measure, Number(value), noun)
  const comparison =
    kind === 'change'
      ? `usually ${measureText(measure, Number(expected), noun)}`
      : `${kind} ${measureText(measure, Number(limit), noun)}`
  return `${subject}: ${shown} in ${window}, ${comparison}.${because}`
}

const measureNouns: { readonly [measure: string]: string } = {
  errors: 'error',
  sessions: 'session',
  tokens: 'token',
}

/** A rule that names one type counts in its unit. A request and its detection are two events. */
const typeNouns: { readonly [type: string]: string } = {
  'agent.requested': 'request',
  'agent.detected': 'visit',
  'agent.referred': 'referral',
  'authz.evaluated': 'decision',
  'tool.executed': 'tool call',
}

function typeNoun(filter: unknown): string {
  const [type, ...more] = (filter as { type?: string[] } | null | undefined)?.type ?? []
  if (type === undefined || more.length > 0 || !Object.hasOwn(typeNouns, type)) return 'event'
  return typeNouns[type] ?? 'event'
}

const pluralOf = (noun: string): string => `${noun}s`

function measureText(measure: string, value: number, noun = 'event'): string {
  if (measure === 'share') return percent(value)
  const short = Math.round(value * 10) / 10
  if (measure === 'p95') return `p95 of ${short.toLocaleString('en')} ms`
  if (measure === 'subjects')
    return `${short.toLocaleString('en')} ${short === 1 ? 'identity' : 'identities'}`
  return count(short, noun)
}

function windowText(minutes: number): string {
  if (minutes % 1_440 === 0) return count(minutes / 1_440, 'day')
  return minutes % 60 === 0 ? count(minutes / 60, 'hour') : count(minutes, 'minute')
}

function shareWords({ share, threshold, events }: Data, noun: string): string {
  return `${percent(share)} of ${count(events, noun)} in the last hour (threshold ${percent(threshold)})`
}

/** `0.125` → `12.5 %`. */
function percent(share: unknown): string {
  return `${Math.round(Number(share) * 1_000) / 10} %`
}

function count(value: unknown, noun: string): string {
  return `${Number(value).toLocaleString('en')} ${noun}${Number(value) === 1 ? '' : 's'}`
}

/** Names come from senders of events, so they are cut before they fill a chat channel. */
const nameCharsMax = 100

/**
 * The sentence for a chat (Slack, Mattermost and Teams show `text`). Senders of events choose the names of vendors and
 * tools, so nothing in a name may become a link, a mention or markup. `data` has the exact values.
 */
export function chatText(incident: Pick<Incident, 'data'>, prefix: string, link: string | null): string {
  const data = Object.fromEntries(
    Object.entries(incident.data).map(([name, value]) => [
      name,
      typeof value === 'string' ? escapeForChat(value) : value,
    ]),
  )
  const sentence = incidentSentence({ data })
  return `${prefix}${sentence}${link === null ? '' : ` ${link}`}`
}

const lookalikes: { [character: string]: string } = {
  '<': '‹',
  '>': '›',
  '&': '+',
  '@': '＠',
  '#': '＃',
  '[': '(',
  ']': ')',
  '|': '/',
  '`': "'",
  '*': '∗',
  '~': '∼',
  '\\': '/',
}

/** Others than alerts also name what strangers chose. */
export function escapeForChat(text: string): string {
  const flat = text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()
  const plain = flat.replace(/[<>&@#[\]|`*~\\]/g, (character) => lookalikes[character] ?? '')
  // Chats turn anything that looks like an address into a link.
  const unlinked = plain.replaceAll('://', ': ').replace(/\b(www)\./gi, '$1 ')
  const characters = [...unlinked]
  return characters.length <= nameCharsMax ? unlinked : `${characters.slice(0, nameCharsMax).join('')}…`
}

const severities: readonly Severity[] = ['critical', 'warning', 'info']

export function severityOf({ data }: Pick<Incident, 'data'>): Severity {
  if ('keyId' in data) return 'critical'
  return 'vendor' in data ? 'info' : 'warning'
}

/**
 * Open, then acknowledged, pending and resolved; within each by severity, by excess over the threshold, newest first.
 */
export function worstFirst(incidents: readonly Incident[]): Incident[] {
  const state = ({ resolvedAtMs, acknowledgedAtMs, state: incidentState }: Incident) =>
    resolvedAtMs !== null ? 3 : incidentState === 'pending' ? 2 : acknowledgedAtMs !== null ? 1 : 0
  const excess = ({ data }: Incident) => Number(data['share'] ?? 0) - Number(data['threshold'] ?? 0)
  return incidents.toSorted((a, b) => {
    const byState = state(a) - state(b)
    if (byState !== 0) return byState
    const byTime = b.openedAtMs - a.openedAtMs
    if (a.resolvedAtMs !== null) return byTime
    const bySeverity = severities.indexOf(severityOf(a)) - severities.indexOf(severityOf(b))
    return bySeverity || excess(b) - excess(a) || byTime
  })
}

/** The dashboard page, with range and filter, that shows the events behind an alert. */
export function linkOf({ data, openedAtMs, resolvedAtMs }: Incident): string {
  if ('keyId' in data) return '/settings/ingest-keys'
  const query = new URLSearchParams()
  const add = (name: string, value: unknown) => query.append(name, String(value))
  let sinceMs = openedAtMs - hourMs
  if ('measure' in data) {
    sinceMs = openedAtMs - Number(data['windowMinutes']) * 60_000
    for (const [name, values] of logFilters(data)) for (const value of values) add(name, value)
  } else if ('vendor' in data) {
    add('vendor', data['vendor'])
    // The first event may have happened before it arrived.
    sinceMs = timeOf(data['firstSeenAt'], openedAtMs) - hourMs
  } else if ('tool' in data) {
    add('type', 'tool.executed')
    add('tool', data['tool'])
    add('outcome', 'error')
  } else if ('share' in data) {
    add('outcome', 'blocked')
  } else {
    sinceMs = timeOf(data['lastEventAt'], sinceMs) - hourMs
  }
  add('since', isoTime(sinceMs))
  if (resolvedAtMs !== null) add('until', isoTime(resolvedAtMs))
  return `/logs?${query}`
}

/** Those that Logs can filter by. */
function logFilters({ filter, groupBy, group, measure }: Data): [string, string[]][] {
  const filters: { [name: string]: string[] } = { ...(filter as { [name: string]: string[] }) }
  if (measure === 'errors') filters['outcome'] = ['error']
  if (groupBy !== undefined) filters[String(groupBy)] = [String(group)]
  return Object.entries(filters).filter(([name]) => filterableFields.some((field) => field.name === name))
}

function timeOf(text: unknown, otherwiseMs: number): number {
  const ms = Date.parse(String(text))
  return Number.isNaN(ms) ? otherwiseMs : ms
}

/** Alerts as a series of Prometheus, like its own ALERTS: one sample per alert, labelled with its state. */
export function alertSamples(
  incidents: Incident[],
  rules: Rule[],
  slugs: ReadonlyMap<string, string>,
): { labels: { [name: string]: string }; value: number }[] {
  const byId = new Map(rules.map((rule) => [rule.id, rule]))
  return worstFirst(incidents)
    .slice(0, limits.alertSeriesMax)
    .map((incident) => {
      const { orgId, ruleId, subject, state, acknowledgedAtMs } = incident
      const rule = byId.get(ruleId)
      const labels = {
        alertname: rule === undefined ? ruleId : rule.name || rule.kind,
        alertstate: state,
        acknowledged: String(acknowledgedAtMs !== null),
        organization: slugs.get(orgId) ?? orgId,
        rule: ruleId,
        severity: severityOf(incident),
        subject,
      }
      return { labels, value: 1 }
    })
}

export interface Notice {
  code:
    | 'alert_open'
    | 'clock_jumped'
    | 'endpoint_failing'
    | 'endpoint_paused_failing'
    | 'endpoint_paused_gone'
    | 'events_missed'
  endpointId: string | null // null: about no endpoint
  message: string
  href?: string // the page to act on; by default the Webhooks page
}

/** Open alerts with a notice of their own; one more notice counts the rest. */
const alertNoticesMax = 5

/** Notices for unresolved alerts that nobody has acknowledged, worst first. */
export function alertNotices(unresolved: Incident[]): Notice[] {
  const open = worstFirst(
    unresolved.filter(({ acknowledgedAtMs, state }) => acknowledgedAtMs === null && state === 'firing'),
  )
  const shown = open
    .slice(0, alertNoticesMax)
    .map((incident) => alert(`Alert: ${incidentSentence(incident)}`))
  const moreCount = open.length - shown.length
  return moreCount > 0
    ? [...shown, alert(`${count(moreCount, 'more alert')} ${moreCount === 1 ? 'is' : 'are'} open.`)]
    : shown
}

const alert = (message: string): Notice => ({ code: 'alert_open', endpointId: null, message })

export function endpointNotices(endpoints: Endpoint[]): Notice[] {
  return endpoints.flatMap((endpoint) => {
    const { id, url, pausedReason, failingSinceMs, missed } = endpoint
    const failingSince = failingSinceMs === null ? null : isoTime(failingSinceMs)
    const notices: Notice[] = []
    const add = (code: Notice['code'], message: string) => notices.push({ code, endpointId: id, message })
    if (pausedReason === 'failing') {
      add(
        'endpoint_paused_failing',
        `Every delivery to ${url} has failed since ${failingSince}. It is paused and retried once per hour.`,
      )
    } else if (pausedReason === 'gone') {
      add('endpoint_paused_gone', `${url} answered 410 Gone. It is paused until somebody resumes it.`)
    } else if (failingSince !== null) {
      add('endpoint_failing', `Deliveries to ${url} have failed since ${failingSince}.`)
    }
    if (missed > 0)
      add('events_missed', `Retention deleted ${count(missed, 'event')} before they were sent to ${url}.`)
    return notices
  })
}
