/** The details that pages open: of a vendor and of identities, from the newest events, and why an agent was blocked. */
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import { AppError } from '../errors.ts'
import type { EventFilter, Store, StoredEvent, Top, TopField } from '../../db/contract/store.ts'
import type { CountFilter, CountScope } from './period.ts'
import { rangeUnit } from './unit.ts'
import { unitTypes } from './unit-types.ts'
import type { IdentityDetail, Named, Unit, VendorDetail, Why } from './shapes.ts'

const newestMax = 1_000
const namesMax = 20

/** The intersection of the page's filter and the reader's. */
function filterOf({ sinceMs, untilMs, siteIds, filter: chosen }: CountScope['period'], only: EventFilter) {
  const intersection: EventFilter = { ...chosen?.filter, ...only }
  for (const list of ['types', 'outcomes', 'vendors'] as const) {
    const mine = only[list]
    const theirs = chosen?.filter[list]
    if (!mine || !theirs) continue
    const shared = mine.filter((value) => theirs.includes(value))
    intersection[list] = shared.length > 0 ? shared : [noValue]
  }
  return { ...intersection, sinceMs, untilMs, ...(siteIds && { siteIds }) }
}

/** Matches no event, because ingest rejects NUL. */
const noValue = '\0'

type Groups = { by: TopField[]; max: number }[]

function newest(
  { store, orgId, period }: CountScope,
  filter: EventFilter,
  groups: Groups,
  eventsMax = newestMax,
) {
  const also = period.filter?.also ?? []
  return store.events.top({
    orgId,
    also,
    eventsMax,
    groups,
    budgetMs: limits.topMsMax,
    filter: filterOf(period, filter),
  })
}

const timeOf = (ms: number | null): string | null => (ms === null ? null : isoTime(ms))

function vendorsOf({ store, orgId, period }: CountScope, types?: string[]) {
  const { sinceMs, untilMs, siteIds } = period
  return store.events.breakdown({
    orgId,
    sinceMs,
    untilMs,
    by: 'vendor',
    stepMs: null,
    ...(siteIds && { siteIds }),
    ...(types && { types }),
  })
}

/** Without hours: when not all events are read, the first one is unknown. */
async function filteredVendors(
  { store, orgId, period }: CountScope,
  { filter, also }: CountFilter,
  types?: string[],
) {
  const { sinceMs, untilMs, siteIds } = period
  const { breakdowns } = await store.events.filteredCounts({
    orgId,
    also,
    edges: [sinceMs, untilMs],
    budgetMs: limits.filteredCountMsMax,
    filter: { ...filter, ...(siteIds && { siteIds }) },
    breakdowns: [{ by: 'vendor', ...(types && { types }) }],
  })
  return { rows: (breakdowns[0] ?? []).map((row) => ({ ...row, firstMs: sinceMs })) }
}

const vendorFields = ['class', 'trust', 'page', 'tool', 'userAgent', 'subject'] as const
/** What a request or visit has; other events may have it too. */
const unitFields: readonly string[] = ['class', 'page', 'userAgent']
const vendorRowsMax = 1_000

/**
 * Counts the values of a field by type: those of requests or visits in the unit of the range, the others in all events
 * but the visits that begin with a request.
 */
function namesByType(
  { rows }: Top['groups'][number],
  field: string,
  { name, type: unitType }: Unit,
): Named[] {
  const counts = new Map<string, number>()
  for (const { values, count } of rows) {
    const [type = null, value = null] = values
    const isCounted = unitFields.includes(field)
      ? type === unitType
      : name === 'visits' || type !== unitTypes.visits
    if (value !== null && isCounted) counts.set(value, (counts.get(value) ?? 0) + count)
  }
  return mostFrequent(counts)
}

export async function vendorDetail(scope: CountScope, vendor: string): Promise<VendorDetail> {
  const groups: Groups = [
    { by: ['sessionId'], max: 0 },
    ...vendorFields.map((field) => ({ by: ['type', field] satisfies TopField[], max: vendorRowsMax })),
  ]
  const { filter } = scope.period
  const rowsOf = (types?: string[]) =>
    filter ? filteredVendors(scope, filter, types) : vendorsOf(scope, types)
  const unit = await rangeUnit(scope.store.events, scope.orgId, scope.period)
  const [top, all, inUnit] = await Promise.all([
    newest(scope, { vendors: [vendor] }, groups),
    rowsOf(),
    rowsOf([unit.type]),
  ])
  const vendorRows = all.rows.filter((row) => row.value === vendor)
  const firstMs = Math.min(...vendorRows.map((row) => row.firstMs))
  const [sessions, ...fields] = top.groups
  const [classes, trusts, pages, tools, userAgents, subjects] = fields.map((group, index) =>
    namesByType(group, vendorFields[index]!, unit),
  )
  return {
    unit,
    count: inUnit.rows.reduce((sum, row) => (row.value === vendor ? sum + row.count : sum), 0),
    firstAt: top.complete || vendorRows.length === 0 ? timeOf(top.oldestMs) : isoTime(firstMs),
    firstIsHour: !top.complete,
    lastAt: timeOf(top.newestMs),
    looked: top.events,
    complete: top.complete,
    sessions: sessions!.distinct,
    classes: classes!,
    trusts: trusts!,
    pages: pages!,
    tools: tools!,
    userAgents: userAgents!,
    subjects: subjects!,
  }
}

type Subject = IdentityDetail['subjects'][number]

const subjectsShownMax = 200
const failuresMax = 1_000

/** The maximum of events and subjects in a file; above it the file has the newest, and `complete` is false. */
const fileEventsMax = 200_000
const fileSubjectsMax = 50_000

const subjectGroup = (max: number) => [
  { by: ['subject', 'protocol', 'trust', 'vendor'] satisfies TopField[], max },
]

/** The newest events for the page; for a CSV (`rowsMax`) all events of the range, up to the maximum. */
export async function identityDetail(scope: CountScope): Promise<IdentityDetail> {
  const types = ['auth.identity_presented']
  const isFile = scope.rowsMax !== undefined
  const [presentations, successes] = await Promise.all([
    newest(scope, { types }, [
      { by: ['outcome', 'reason', 'error'], max: failuresMax },
      { by: ['outcome', 'subject', 'protocol', 'trust', 'vendor'], max: newestMax },
    ]),
    isFile
      ? newest(scope, { types, outcomes: ['success'] }, subjectGroup(fileSubjectsMax), fileEventsMax)
      : null,
  ])
  const [outcomes, presented] = presentations.groups
  const failures = new Map<string, number>()
  for (const { values, count } of outcomes!.rows) {
    const [outcome, reason, error] = values
    const name = reason ?? error ?? '(no reason given)'
    if (outcome !== 'success') failures.set(name, (failures.get(name) ?? 0) + count)
  }
  const rows =
    successes === null
      ? presented!.rows.flatMap(({ values: [outcome, ...values], ...row }) =>
          outcome === 'success' ? [{ ...row, values }] : [],
        )
      : successes.groups[0]!.rows
  const subjects = subjectsOf(rows)
  const { events: looked, complete } = successes ?? presentations
  const isWhole = complete && (successes === null || successes.groups[0]!.distinct <= fileSubjectsMax)
  return {
    looked,
    complete: isWhole,
    failures: mostFrequent(failures),
    subjects: isFile ? subjects : subjects.slice(0, subjectsShownMax),
  }
}

function mostFrequent(counts: Map<string, number>): Named[] {
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
    .slice(0, namesMax)
}

/** One row per subject, protocol and trust, with the vendor of its newest event; largest first. */
function subjectsOf(rows: Top['groups'][number]['rows']): Subject[] {
  const subjects = new Map<string, Subject & { lastMs: number }>()
  for (const { values, count, lastMs } of rows) {
    const [subject, protocol, trust, vendor] = values.map((value) => value ?? '')
    if (subject === undefined || subject === '') continue
    const key = JSON.stringify([subject, protocol, trust])
    const existingSubject = subjects.get(key)
    if (existingSubject !== undefined) existingSubject.count += count
    if (existingSubject !== undefined && existingSubject.lastMs >= lastMs) continue
    const details = { protocol: protocol!, trust: trust!, vendor: vendor!, lastAt: isoTime(lastMs) }
    subjects.set(key, { subject, ...details, lastMs, count: existingSubject?.count ?? count })
  }
  return [...subjects.values()]
    .sort((a, b) => b.count - a.count || b.lastMs - a.lastMs)
    .map(({ lastMs: _lastMs, ...subject }) => subject)
}

const earlierMax = 100
const versionsMax = 100

/**
 * Why an agent was blocked: the decision, its session before it, and the tool's descriptor at the time. Throws 404 for
 * an event that does not exist or is not a decision.
 */
export async function explainDecision(store: Pick<Store, 'events' | 'registry'>, orgId: string, id: string) {
  const stored = await store.events.byId({ orgId, id })
  const event = stored === null ? null : (JSON.parse(stored.json) as Decision)
  if (stored === null || event === null || !event.type.startsWith('authz.')) {
    throw new AppError('not_found', 'No decision has this id.')
  }
  const [session, tool] = await Promise.all([
    store.events.page({
      orgId,
      filter: { siteIds: [event.siteId], sessionIds: [event.sessionId], untilMs: stored.occurredAtMs + 1 },
      limit: earlierMax + 1,
      before: null,
      ceilingSeq: null,
    }),
    toolThen(store, orgId, event, stored.occurredAtMs),
  ])
  const earlier = session.events.filter((candidate) => candidate.seq !== stored.seq)
  // An event in the same millisecond that arrived later came after the decision.
  const earlierEvents = earlier.filter(
    (candidate) => candidate.occurredAtMs < stored.occurredAtMs || candidate.seq < stored.seq,
  )
  const explanation: Why = {
    ...shown(stored),
    earlier: earlierEvents.slice(0, earlierMax).map(shown),
    earlierComplete: session.next === null && earlierEvents.length <= earlierMax,
    tool,
  }
  return explanation
}

interface Decision {
  type: string
  siteId: string
  sessionId: string
  tool?: string | null
}

const shown = (event: StoredEvent) => ({
  receivedAt: isoTime(event.receivedAtMs),
  event: JSON.parse(event.json) as unknown,
})

/** The newest version pushed before the decision; null when none is stored. */
async function toolThen(
  store: Pick<Store, 'registry'>,
  orgId: string,
  { siteId, tool }: Decision,
  atMs: number,
): Promise<Why['tool']> {
  if (tool == null) return null
  const toolHistory = await store.registry.tool({ orgId, siteId, name: tool, limit: versionsMax })
  const version = toolHistory?.versions.find((candidate) => candidate.atMs <= atMs)
  if (version === undefined || version.change === 'removed') return null
  const { description = null } = JSON.parse(version.json) as { description?: string | null }
  return { version: version.version, since: isoTime(version.atMs), description }
}
