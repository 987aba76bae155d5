/** What the newest events of a period say beyond the counts: a vendor's doings, identities and why they failed. */
import type { EventFilter, EventPosition, StoredEvent } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import type { Asked } from './counts.ts'
import type { CountFilter } from './dimensions.ts'
import type { IdentityDetail, Named, VendorDetail } from './shapes.ts'

const newestMax = 1_000
const namesMax = 20

/** The members that are looked at; the events were checked when they came. */
interface Seen {
  sessionId: string
  outcome: string
  tool?: string | null
  error?: string | null
  agent?: {
    class?: string | null
    trust?: string | null
    vendor?: string | null
    userAgent?: string | null
  } | null
  policy?: { ruleId?: string | null; reason?: string | null } | null
  metadata?: { page?: string | null; protocol?: string | null; subject?: string | null } | null
}

/** What the page asks for and what its reader filters by, together. */
function filterOf({ sinceMs, untilMs, siteIds, filter: chosen }: Asked['period'], only: EventFilter) {
  const both: EventFilter = { ...chosen?.filter, ...only }
  for (const list of ['types', 'outcomes', 'vendors'] as const) {
    const [mine, theirs] = [only[list], chosen?.filter[list]]
    if (!mine || !theirs) continue
    const shared = mine.filter((value) => theirs.includes(value))
    both[list] = shared.length > 0 ? shared : [noValue]
  }
  return { ...both, sinceMs, untilMs, ...(siteIds && { siteIds }) }
}

/** No event has it: NUL is refused at ingest. */
const noValue = '\0'

/** Filters that the store's pages do not know. */
function passes(event: Seen, period: Asked['period']): boolean {
  const also = period.filter?.also ?? []
  return also.every(({ by, values }) => {
    if (by === 'page') return values.includes(event.metadata?.page ?? '')
    return values.includes((by === 'ruleId' ? event.policy?.ruleId : event.policy?.reason) ?? '')
  })
}

async function newest({ store, orgId, period }: Asked, filter: EventFilter) {
  const page = await store.events.page({
    orgId,
    filter: filterOf(period, filter),
    limit: newestMax,
    bytesMax: limits.pageBytesMax,
    before: null,
    ceilingSeq: null,
  })
  const all = page.events.map((stored) => ({ stored, seen: JSON.parse(stored.json) as Seen }))
  const taken = all.filter(({ seen }) => passes(seen, period))
  const [stored, seen] = [taken.map((one) => one.stored), taken.map((one) => one.seen)]
  return { stored, seen, looked: seen.length, complete: page.next === null }
}

/** Counts names, most first; the rest beyond twenty stays out, because the page names only the largest. */
function names(all: Iterable<string | null | undefined>): Named[] {
  const counts = new Map<string, number>()
  for (const name of all) if (name != null && name !== '') counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
    .slice(0, namesMax)
}

const timeOf = (event: StoredEvent | undefined): string | null =>
  event === undefined ? null : isoTime(event.occurredAtMs)

function vendorsOf({ store, orgId, period: { sinceMs, untilMs, siteIds } }: Asked) {
  return store.events.breakdown({
    ...{ orgId, sinceMs, untilMs, by: 'vendor', stepMs: null },
    ...(siteIds && { siteIds }),
  })
}

/** Without hours: where not all events are looked at, the first of them is not known. */
async function filteredVendors({ store, orgId, period }: Asked, { filter, also }: CountFilter) {
  const { sinceMs, untilMs, siteIds } = period
  const { cuts } = await store.events.tally({
    ...{ orgId, also, edges: [sinceMs, untilMs], budgetMs: limits.filteredCountMsMax },
    filter: { ...filter, ...(siteIds && { siteIds }) },
    cuts: [{ by: 'vendor' }],
  })
  return { rows: (cuts[0] ?? []).map((row) => ({ ...row, firstMs: sinceMs })) }
}

export async function vendorDetail(asked: Asked, vendor: string): Promise<VendorDetail> {
  const [{ stored, seen, looked, complete }, { rows }] = await Promise.all([
    newest(asked, { vendors: [vendor] }),
    asked.period.filter ? filteredVendors(asked, asked.period.filter) : vendorsOf(asked),
  ])
  const mine = rows.filter((row) => row.value === vendor)
  const firstMs = Math.min(...mine.map((row) => row.firstMs))
  return {
    events: mine.reduce((sum, row) => sum + row.count, 0),
    firstAt: complete || mine.length === 0 ? timeOf(stored.at(-1)) : isoTime(firstMs),
    firstIsHour: !complete,
    lastAt: timeOf(stored[0]),
    looked,
    complete,
    sessions: new Set(seen.map((event) => event.sessionId)).size,
    classes: names(seen.map((event) => event.agent?.class)),
    trusts: names(seen.map((event) => event.agent?.trust)),
    pages: names(seen.map((event) => event.metadata?.page)),
    tools: names(seen.map((event) => event.tool)),
    userAgents: names(seen.map((event) => event.agent?.userAgent)),
    subjects: names(seen.map((event) => event.metadata?.subject)),
  }
}

type Subject = IdentityDetail['subjects'][number]

const subjectsShownMax = 200

/** The newest events for the page; for a CSV (`rowsMax`) all of the range, as far as a file may go. */
export async function identityDetail(asked: Asked): Promise<IdentityDetail> {
  const types = ['auth.identity_presented']
  const { stored, seen, looked, complete } = await newest(asked, { types })
  const failed = seen.filter((event) => event.outcome !== 'success')
  const failures = names(failed.map((event) => event.policy?.reason || event.error || '(no reason given)'))
  const byCount = (subjects: Iterable<Subject>) => [...subjects].sort((a, b) => b.count - a.count)
  if (asked.rowsMax !== undefined) {
    const all = await everySubject(asked, { types, outcomes: ['success'] })
    return { ...all, failures, subjects: byCount(all.subjects) }
  }
  const subjects = new Map<string, Subject>()
  seen.forEach((event, index) => addSubject(subjects, event, stored[index]))
  return { looked, complete, failures, subjects: byCount(subjects.values()).slice(0, subjectsShownMax) }
}

function addSubject(subjects: Map<string, Subject>, event: Seen, stored: StoredEvent | undefined): void {
  const subject = event.metadata?.subject ?? ''
  if (event.outcome !== 'success' || subject === '') return
  const [protocol, trust] = [event.metadata?.protocol ?? '', event.agent?.trust ?? '']
  const key = JSON.stringify([subject, protocol, trust])
  const known = subjects.get(key)
  if (known) known.count += 1
  else {
    const vendor = event.agent?.vendor ?? ''
    subjects.set(key, { subject, protocol, trust, vendor, count: 1, lastAt: timeOf(stored) ?? '' })
  }
}

/** So many events and subjects a file is made of; beyond them it is of the newest, and says so by `complete`. */
const fileEventsMax = 200_000
const fileSubjectsMax = 50_000

async function everySubject({ store, orgId, period }: Asked, only: EventFilter) {
  const filter = filterOf(period, only)
  const subjects = new Map<string, Subject>()
  let looked = 0
  let place: { before: EventPosition | null; ceilingSeq: number | null } = { before: null, ceilingSeq: null }
  for (;;) {
    const { events, next, ceilingSeq } = await store.events.page({
      orgId,
      filter,
      limit: newestMax,
      ...place,
    })
    for (const event of events) {
      const seen = JSON.parse(event.json) as Seen
      if (passes(seen, period)) addSubject(subjects, seen, event)
    }
    looked += events.length
    const complete = next === null
    if (complete || looked >= fileEventsMax || subjects.size >= fileSubjectsMax)
      return { looked, complete, subjects: subjects.values() }
    place = { before: next, ceilingSeq }
  }
}
