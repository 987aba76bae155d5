/** The naive model of the event engine: events in arrival order, and every result that readers must return. */
import { expect } from 'bun:test'
import type {
  Breakdown,
  CountedName,
  EventFilter,
  EventPosition,
  EventRecord,
  Metrics,
  MetricsText,
  TopQuery,
} from '../../db/contract/store.ts'
import { noon } from '../store/make.ts'
import { agreesInSessions } from './session-model.ts'
import type { Engine } from './subject.ts'

export function walk({ reader }: Engine, orgId: string, filter: EventFilter, limit: number): string[] {
  const texts: string[] = []
  let position: EventPosition | null = null
  let ceilingSeq: number | null = null
  do {
    const page: ReturnType<typeof reader.page> = reader.page({
      orgId,
      filter,
      limit,
      before: position,
      ceilingSeq,
    })
    if (position !== null) expect(page.events.length).toBeGreaterThan(0)
    texts.push(...page.events.map(({ json }) => json))
    position = page.next
    ceilingSeq = page.ceilingSeq
  } while (position !== null)
  return texts
}

export const newestFirst = (events: EventRecord[]) =>
  events
    .map((event, arrival) => ({ event, arrival }))
    .toSorted((a, b) => b.event.occurredAtMs - a.event.occurredAtMs || b.arrival - a.arrival)
    .map(({ event }) => event.json)

const hourMs = 3_600_000
const hourOf = ({ occurredAtMs }: EventRecord) => Math.floor(occurredAtMs / hourMs) * hourMs

function countBy<K extends string | number>(
  events: EventRecord[],
  keyOf: (event: EventRecord) => K | null,
): Map<K, number> {
  const counts = new Map<K, number>()
  for (const event of events) {
    const key = keyOf(event)
    if (key !== null) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Metrics and breakdowns against a recount of the events. */
export function agreesInCounts({ reader }: Engine, orgId: string, events: EventRecord[]): void {
  const ranges = [
    { sinceMs: 0, untilMs: null },
    { sinceMs: noon + 1_234_567, untilMs: noon + 3 * hourMs },
    { sinceMs: noon - 86_400_000 * 500, untilMs: noon + 59_000 },
  ]
  for (const { sinceMs, untilMs } of ranges) {
    const isIn = (event: EventRecord) =>
      hourOf(event) >= Math.floor(sinceMs / hourMs) * hourMs &&
      (untilMs === null || hourOf(event) < Math.floor(untilMs / hourMs) * hourMs)
    const counted = events.filter(isIn)
    const metrics = reader.metrics({ orgId, sinceMs, untilMs, rowsMax: 100_000 })
    expect(metrics.total).toBe(counted.length)
    expect(metrics.byType).toEqual(Object.fromEntries(countBy(counted, ({ type }) => type)))
    expect(metrics.byOutcome).toEqual(Object.fromEntries(countBy(counted, ({ outcome }) => outcome)))
    const byHour = [...countBy(counted, hourOf)].toSorted(([a], [b]) => a - b)
    expect(metrics.byHour).toEqual(byHour.map(([hourStartMs, count]) => ({ hourStartMs, count })))
    const rowKey = (siteId: string, startMs: number, type: string, outcome: string) =>
      `${startMs} ${siteId} ${type} ${outcome}`
    const rows = metrics.rows.map((row): [string, number] => [
      rowKey(row.siteId, row.bucketStartMs, row.type, row.outcome),
      row.count,
    ])
    expect(rows.length).toBe(new Set(rows.map(([key]) => key)).size)
    expect(new Map(rows)).toEqual(
      countBy(counted, (event) => rowKey(event.siteId, hourOf(event), event.type, event.outcome)),
    )
    isSameAsText(metrics, reader.metricsText({ orgId, sinceMs, untilMs, rowsMax: 100_000 }), orgId)
    const limitedMetrics = reader.metrics({ orgId, sinceMs, untilMs, siteIds: ['demo'], rowsMax: 2 })
    const ofDemo = counted.filter(({ siteId }) => siteId === 'demo')
    expect(limitedMetrics.total).toBe(ofDemo.length)
    expect(limitedMetrics.rows.length).toBeLessThanOrEqual(2)
    expect(limitedMetrics.truncated).toBe(
      countBy(ofDemo, (event) => rowKey('demo', hourOf(event), event.type, event.outcome)).size > 2,
    )
    const tools = reader.breakdown({
      orgId,
      sinceMs,
      untilMs,
      types: ['tool.*'],
      by: 'tool',
      stepMs: 24 * hourMs,
    })
    expect(
      new Map(tools.rows.map((row) => [`${row.startMs} ${row.value} ${row.outcome}`, row.count])),
    ).toEqual(
      countBy(counted, (event) =>
        event.tool === null || event.type !== 'tool.executed'
          ? null
          : `${dayOf(event)} ${event.tool} ${event.outcome}`,
      ),
    )
    agreesInHours(tools, counted, dayOf)
    const values = tools.rows.slice(0, 2).map(({ value }) => value ?? '')
    const query = { orgId, sinceMs, untilMs, by: 'tool' as const, values, stepMs: 24 * hourMs }
    expect(reader.breakdown({ ...query, types: ['tool.*'] }).rows).toEqual(
      tools.rows.filter(({ value }) => value !== null && values.includes(value)),
    )
    agreesInAgents(reader, { orgId, sinceMs, untilMs }, counted)
    const whole = reader.breakdown({ orgId, sinceMs, untilMs, siteIds: ['shop'], by: 'page', stepMs: null })
    const start = Math.floor(sinceMs / hourMs) * hourMs
    expect(
      new Map(whole.rows.map((row) => [`${row.startMs} ${row.value} ${row.outcome}`, row.count])),
    ).toEqual(
      countBy(counted, (event) =>
        event.page === null || event.siteId !== 'shop' ? null : `${start} ${event.page} ${event.outcome}`,
      ),
    )
  }
}

/** Agents, the breakdowns by name and by purpose that are made of them, and those by verdict and robots.txt. */
function agreesInAgents(
  reader: Engine['reader'],
  range: { orgId: string; sinceMs: number; untilMs: number | null },
  counted: EventRecord[],
): void {
  const shop = counted.filter(({ siteId }) => siteId === 'shop')
  const nameKey = (value: CountedName) => (typeof value === 'string' ? value : `name ${value.name}`)
  const { rows } = reader.agents({ ...range, siteIds: ['shop'], types: ['agent.*'] })
  const keys = rows.map(({ vendor, name, purpose }) => [vendor, name, purpose].map(nameKey).join(', '))
  const textKey = (text: string | null) => (text === null ? 'missing' : `name ${text}`)
  expect(keys.length).toBe(new Set(keys).size)
  expect(new Map(rows.map(({ count }, index) => [keys[index], count]))).toEqual(
    countBy(shop, ({ type, vendor, name, purpose }) =>
      type !== 'agent.detected' || (name ?? purpose) === null
        ? null
        : [vendor, name, purpose].map(textKey).join(', '),
    ),
  )
  for (const field of ['name', 'purpose', 'verdict', 'robots'] as const) {
    const breakdownRows = reader.breakdown({
      ...range,
      siteIds: ['shop'],
      by: field,
      stepMs: 24 * hourMs,
    }).rows
    expect(
      new Map(breakdownRows.map((row) => [`${row.startMs} ${row.value} ${row.outcome}`, row.count])),
    ).toEqual(
      countBy(shop, (event) =>
        event[field] === null ? null : `${dayOf(event)} ${event[field]} ${event.outcome}`,
      ),
    )
  }
}

const dayOf = (event: EventRecord) => Math.floor(event.occurredAtMs / (24 * hourMs)) * 24 * hourMs

/**
 * A handful of values per day is counted almost exactly. Every store hashes differently, so some values may collide in
 * a register; more collisions of 60 values than this allows happen once in a hundred million stores.
 */
function isSameAsText({ rows, ...sums }: Metrics, text: MetricsText, orgId: string): void {
  const { rowsJson, ...sumsOfText } = text
  expect(sumsOfText).toEqual(sums)
  const rowsOfText = rows.map(({ bucketStartMs, ...row }) => {
    return { ...row, orgId, bucketStart: new Date(bucketStartMs).toISOString() }
  })
  expect(JSON.parse(rowsJson)).toEqual(rowsOfText)
}

function agreesInDistinct({ reader }: Engine, orgId: string, counted: EventRecord[]): void {
  for (const field of ['session', 'subject'] as const) {
    for (const step of ['day', 'month'] as const) {
      const truth = new Map<number, Set<string>>()
      for (const { siteId, sessionId, subject, occurredAtMs } of counted) {
        const text = field === 'session' ? sessionId : subject
        if (text === null || siteId !== 'shop') continue
        const date = new Date(occurredAtMs)
        const day = step === 'day' ? date.getUTCDate() : 1
        const start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day)
        truth.set(start, (truth.get(start) ?? new Set()).add(text))
      }
      const { rows } = reader.distinct({
        orgId,
        of: field,
        sinceMs: 0,
        untilMs: null,
        siteIds: ['shop'],
        step,
      })
      expect(rows.map(({ startMs }) => startMs)).toEqual([...truth.keys()].sort((a, b) => a - b))
      for (const { startMs, count } of rows) {
        const { size } = truth.get(startMs)!
        expect(Math.abs(count - size)).toBeLessThanOrEqual(2 + size * 0.1)
      }
    }
  }
}

function groupBy(events: EventRecord[], keyOf: (event: EventRecord) => string): Map<string, EventRecord[]> {
  const groups = new Map<string, EventRecord[]>()
  for (const event of events) {
    const key = keyOf(event)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [event])
    else group.push(event)
  }
  return groups
}

/** Each row of the calls by tool and day has the first and the last hour with a call. */
function agreesInHours(
  { rows }: Breakdown,
  counted: EventRecord[],
  dayOf: (event: EventRecord) => number,
): void {
  const calls = counted.filter(({ type, tool }) => type === 'tool.executed' && tool !== null)
  const groups = groupBy(calls, (event) => `${event.tool} ${event.outcome} ${dayOf(event)}`)
  for (const { value, outcome, startMs, firstMs, lastMs } of rows) {
    const hours = (groups.get(`${value} ${outcome} ${startMs}`) ?? []).map(hourOf)
    expect([firstMs, lastMs]).toEqual([Math.min(...hours), Math.max(...hours)])
  }
}

/** Counts exactly, quantiles within the promise of 2 %; by hour, by day and over a range that begins within a day. */
function agreesInDurations({ reader }: Engine, orgId: string, counted: EventRecord[]): void {
  for (const [stepMs, sinceMs] of [
    [hourMs, 0],
    [24 * hourMs, noon - 30 * hourMs],
    [null, noon - 40 * hourMs],
  ] as const) {
    const { rows } = reader.durations({ orgId, sinceMs, untilMs: null, siteIds: ['shop'], stepMs })
    const timed = counted.filter(
      (event) =>
        event.siteId === 'shop' &&
        event.tool !== null &&
        event.durationMs !== null &&
        event.occurredAtMs >= sinceMs,
    )
    const startOf = ({ occurredAtMs }: EventRecord) =>
      stepMs === null ? sinceMs : Math.floor(occurredAtMs / stepMs) * stepMs
    const keyOf = (event: EventRecord) => `${startOf(event)} ${event.tool}`
    expect(new Map(rows.map((row) => [`${row.startMs} ${row.tool}`, row.count]))).toEqual(
      countBy(timed, keyOf),
    )
    const query = { orgId, sinceMs, untilMs: null, siteIds: ['shop'], stepMs }
    const together = reader.durations({ ...query, together: true }).rows
    expect(new Map(together.map((row) => [row.startMs, row.count]))).toEqual(countBy(timed, startOf))
    const groups = groupBy(timed, keyOf)
    const groupsTogether = groupBy(timed, (event) => `${startOf(event)} null`)
    for (const { tool, startMs, count, ...quantiles } of [...rows, ...together]) {
      const group = (tool === null ? groupsTogether : groups).get(`${startMs} ${tool}`)!
      const durations = group.map((event) => event.durationMs!).sort((a, b) => a - b)
      for (const [share, value] of [
        [0.5, quantiles.p50Ms],
        [0.95, quantiles.p95Ms],
        [0.99, quantiles.p99Ms],
      ] as const) {
        const exact = durations[Math.ceil(share * count) - 1]!
        expect(Math.abs(value - exact)).toBeLessThanOrEqual(Math.max(0.01, exact * 0.020001))
      }
    }
  }
}

/** Counts and groups from columns, and the vendors and subjects first stored in the second half. */
function agreesInColumns({ reader }: Engine, orgId: string, events: EventRecord[]): void {
  const times = events.map(({ occurredAtMs }) => occurredAtMs)
  const first = Math.min(noon, ...times)
  const edges = [first, first + 3_600_000, Math.max(noon, ...times) + 3_600_001]
  const filter = { outcomes: ['success'], siteIds: ['shop'] }
  const matching = newestFirst(
    events.filter((event) => event.outcome === 'success' && event.siteId === 'shop'),
  )
  const bars = reader.histogram({ orgId, filter, edges, budgetMs: 60_000 })
  expect(bars.exactSinceMs).toBe(first)
  expect(new Map(bars.rows.map((row) => [`${row.outcome} ${row.startMs}`, row.count]))).toEqual(
    countBy(
      events.filter((event) => event.outcome === 'success' && event.siteId === 'shop'),
      (event) => `${event.outcome} ${edges.findLast((edge) => edge <= event.occurredAtMs)!}`,
    ),
  )
  const groups: TopQuery['groups'] = [
    { by: ['sessionId', 'subject'], max: 1_000 },
    { by: ['page'], max: 1 },
  ]
  const newest = matching.slice(0, 200)
  const top = reader.top({ orgId, filter, eventsMax: 200, groups, budgetMs: 60_000 })
  expect([top.events, top.complete]).toEqual([newest.length, matching.length <= 200])
  const byId = new Map(events.map((event) => [event.json, event]))
  const counted = newest.map((json) => byId.get(json)!)
  expect(new Map(top.groups[0]!.rows.map(({ values, count }) => [JSON.stringify(values), count]))).toEqual(
    countBy(counted, (event) => JSON.stringify([event.sessionId, event.subject])),
  )
  expect(top.groups[1]!.distinct).toBe(new Set(counted.map(({ page }) => page)).size)
  const seqs = reader.tail({ orgId, filter: {}, afterSeq: 0, limit: 100_000 }).events.map(({ seq }) => seq)
  const half = Math.floor(events.length / 2)
  for (const field of ['vendor', 'subject'] as const) {
    const old = new Set(events.slice(0, half).map((event) => event[field]))
    const fresh = new Set(events.slice(half).map((event) => event[field]))
    const arrivals = { afterSeq: seqs[half - 1] ?? 0, untilSeq: seqs.at(-1) ?? 0 }
    const { values } = reader.newValues({ orgId, field, arrivals, max: 100_000 })
    expect(values.map(({ value }) => value)).toEqual(
      [...fresh].flatMap((value) => (value === null || old.has(value) ? [] : [value])),
    )
  }
}

/** `verify` finds no fault. */
export function isSound({ reader }: Engine): void {
  expect(reader.verify().faults).toEqual([])
}

/** Compares every query with the events in arrival order. Expired events still count. */
export function agrees(
  subject: Engine,
  orgId: string,
  events: EventRecord[],
  expired: EventRecord[] = [],
): void {
  const { reader } = subject
  const byType = Object.fromEntries(countBy([...expired, ...events], ({ type }) => type))
  expect(reader.overview(orgId)).toEqual({ total: expired.length + events.length, byType })
  const tail = reader.tail({ orgId, filter: {}, afterSeq: 0, limit: 100_000 })
  expect(tail.events.map(({ json }) => json)).toEqual(events.map(({ json }) => json))
  expect(walk(subject, orgId, {}, 37)).toEqual(newestFirst(events))
  const ofSession = (event: EventRecord) => event.sessionId === 'ses_1' && event.outcome === 'success'
  expect(walk(subject, orgId, { sessionIds: ['ses_1'], outcomes: ['success'] }, 5)).toEqual(
    newestFirst(events.filter(ofSession)),
  )
  for (const [names, purposes] of [
    [['Bot-1', ''], []],
    [
      ['Bot-2', 'Bot-4'],
      ['', 'training'],
    ],
    [['Bot-none'], []],
  ] as const) {
    const isMeant = (event: EventRecord) =>
      (names as readonly string[]).includes(event.name ?? '') &&
      (purposes.length === 0 || (purposes as readonly string[]).includes(event.purpose ?? ''))
    expect(walk(subject, orgId, { names: [...names], purposes: [...purposes] }, 7)).toEqual(
      newestFirst(events.filter(isMeant)),
    )
  }
  for (const verdicts of [['contradicted'], ['odd', ''], ['none']])
    expect(walk(subject, orgId, { verdicts }, 7)).toEqual(
      newestFirst(events.filter(({ verdict }) => verdicts.includes(verdict ?? ''))),
    )
  const subjects = ['who 9', 'who 18', 'who 207']
  expect(walk(subject, orgId, { subjects }, 2)).toEqual(
    newestFirst(events.filter((event) => event.subject !== null && subjects.includes(event.subject))),
  )
  agreesInColumns(subject, orgId, events)
  agreesInCounts(subject, orgId, [...expired, ...events])
  agreesInDistinct(subject, orgId, [...expired, ...events])
  agreesInDurations(subject, orgId, [...expired, ...events])
  agreesInSessions(subject, orgId, events)
  for (const event of events.filter((_, n) => n % 11 === 0)) {
    expect(reader.byId({ orgId, id: event.id })?.json).toBe(event.json)
  }
  expect(reader.byId({ orgId, id: 'never sent' })).toBeNull()
}
