/** A reader with warm caches gives the same answers as a new one, whatever happens in between. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type {
  BreakdownQuery,
  EventFilter,
  EventRecord,
  FilteredCountsQuery,
} from '../../db/contract/store.ts'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import { noon } from '../store/make.ts'
import { runs } from '../support/runs.ts'
import { agrees, agreesInCounts, isSound, newestFirst, walk } from './model.ts'
import { countAll, engine, event, type Engine } from './subject.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

test('merged, emptied and deleted blocks are read again', () => {
  const subject = engine()
  const events = Array.from({ length: 900 }, (_, n) => event(n, n * 1_000))
  for (const record of events.slice(0, 300)) subject.group(() => subject.append('org_a', [record]))
  agrees(subject, 'org_a', events.slice(0, 300))
  subject.idle() // merges
  agrees(subject, 'org_a', events.slice(0, 300))
  subject.group(() => subject.append('org_a', events.slice(300)))
  agrees(subject, 'org_a', events)
  expect(subject.erase('org_a', ['ses_3'], [])).toBe(180)
  const notErased = events.filter(({ sessionId }) => sessionId !== 'ses_3')
  agrees(subject, 'org_a', notErased)
  subject.removeSite('org_a', 'demo')
  const remainingEvents = notErased.filter(({ siteId }) => siteId !== 'demo')
  agrees(subject, 'org_a', remainingEvents)
  subject.undone(() =>
    subject.append(
      'org_a',
      events.slice(0, 5).map((record) => ({ ...record, id: `x${record.id}` })),
    ),
  )
  agrees(subject, 'org_a', remainingEvents)
  isSound(subject)
  subject.removeOrg('org_a')
  agrees(subject, 'org_a', [])
  subject.group(() => subject.append('org_a', events.slice(0, 50)))
  agrees(subject, 'org_a', events.slice(0, 50))
  subject.close()
}, 90_000)

const filteredQuery = (filter: EventFilter, hour: number): FilteredCountsQuery => ({
  orgId: 'org_a',
  filter,
  breakdowns: [{ by: 'agent' }, { by: 'page' }],
  budgetMs: 60_000,
  edges: [0, 2, 7, 20].map((hourOffset) => noon + (hour + hourOffset) * hourMs),
})

/** Counts of the events that match a filter, in steps of some hours. */
function agreesInFiltered(subject: Engine, filter: EventFilter, events: EventRecord[]): void {
  for (const hour of [-1, 3]) {
    const query = filteredQuery(filter, hour)
    const { rows, breakdowns } = subject.reader.filteredCounts(query)
    const [sinceMs = 0, untilMs = 0] = [query.edges[0], query.edges.at(-1)]
    const rangeEvents = events.filter(({ occurredAtMs: atMs }) => atMs >= sinceMs && atMs < untilMs)
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(rangeEvents.length)
    const pages = (breakdowns[1] ?? []).map(({ value, outcome, startMs, count }) =>
      JSON.stringify([value, outcome, startMs, count]),
    )
    const start = ({ occurredAtMs: atMs }: EventRecord) => query.edges.findLast((edge) => edge <= atMs)!
    const groups = Map.groupBy(rangeEvents, (record) =>
      JSON.stringify([record.page, record.outcome, start(record)]),
    )
    const recount = Array.from(groups, ([key, members]) => `${key.slice(0, -1)},${members.length}]`)
    expect(pages.toSorted()).toEqual(recount.toSorted())
    expect(breakdowns[0]).toEqual(subject.freshly((reader) => reader.filteredCounts(query)).breakdowns[0]!)
  }
}

test('cached matches of sealed segments stay right through arrivals, erasure, expiry and a restart', () => {
  const subject = engine()
  const count = 2 * sealed + 1_000
  const allEvents = Array.from({ length: count }, (_, n) => ({
    ...event(n, n * 500),
    vendor: n % Math.floor(sealed / 6.5) === 17 ? 'rare' : `vendor ${n % 4}`,
    sessionId: `ses_${Math.floor(n / 40)}`,
  }))
  const filters: [EventFilter, (record: (typeof allEvents)[number]) => boolean][] = [
    [{ vendors: ['rare'] }, ({ vendor }) => vendor === 'rare'],
    [
      { vendors: ['rare'], types: ['tool.executed'] },
      (record) => record.vendor === 'rare' && record.type === 'tool.executed',
    ],
    [{ vendors: ['nobody'] }, () => false],
    [{ sessionIds: ['ses_7', 'ses_300'] }, (record) => ['ses_7', 'ses_300'].includes(record.sessionId)],
    [
      { tools: ['tool 2'], types: ['tool.executed'], vendors: ['rare', 'vendor 1'] },
      (record) =>
        record.tool === 'tool 2' &&
        record.type === 'tool.executed' &&
        ['rare', 'vendor 1'].includes(record.vendor),
    ],
  ]
  let storedEvents: typeof allEvents = []
  const look = () => {
    for (const [filter, isTaken] of filters) {
      expect(walk(subject, 'org_a', filter, 500)).toEqual(newestFirst(storedEvents.filter(isTaken)))
      agreesInFiltered(subject, filter, storedEvents.filter(isTaken))
    }
  }
  for (const upTo of [sealed + 500, sealed * 1.5, count]) {
    while (storedEvents.length < upTo) {
      const next = allEvents.slice(storedEvents.length, storedEvents.length + 2_000)
      subject.group(() => subject.append('org_a', next, storedEvents.length))
      storedEvents = allEvents.slice(0, storedEvents.length + 2_000)
      if (storedEvents.length % 10_000 === 0) look()
    }
    subject.idle()
    look()
    look()
  }
  expect(subject.tables('event_segment')).toBe(2)
  const rare = { vendors: ['rare'] }
  const blocksOf = (hour: number) =>
    subject.reads(() => subject.reader.filteredCounts(filteredQuery(rare, hour))).blocks
  expect([blocksOf(-1), blocksOf(2)]).toEqual([0, 0])
  subject.erase('org_a', ['ses_300'], [])
  storedEvents = storedEvents.filter(({ sessionId }) => sessionId !== 'ses_300')
  look()
  subject.expire('org_a', sealed * 1.1)
  expect(subject.tables('event_segment')).toBe(1)
  storedEvents = storedEvents.slice(-countAll(subject.reader, 'org_a'))
  look()
  subject.removeOrg('org_a')
  storedEvents = []
  look()
  storedEvents = allEvents.slice(500, sealed + 1_000)
  for (let from = 0; from < storedEvents.length; from += 2_000)
    subject.group(() => subject.append('org_a', storedEvents.slice(from, from + 2_000)))
  subject.idle()
  look()
  const metrics = subject.reader.metrics({ orgId: 'org_a', sinceMs: 0, untilMs: null, rowsMax: 10 })
  expect(metrics.total).toBe(storedEvents.length)
  subject.close()
}, 90_000)

test('hours are read again after late events, erasure, expiry or a repair', async () => {
  const subject = engine()
  const count = 4_500
  const events = Array.from({ length: count }, (_, n) => {
    const isLate = n % 97 === 0
    return event(n, isLate ? ((n * 7_919) % count) * 600_000 : n * 600_000)
  })
  let storedEvents: EventRecord[] = []
  for (let from = 0; from < count; from += 500) {
    subject.group(() => subject.append('org_a', events.slice(from, from + 500), from))
    storedEvents = events.slice(0, from + 500)
    agreesInCounts(subject, 'org_a', storedEvents)
    if (from % 1_500 === 0) subject.idle() // folds
    agreesInCounts(subject, 'org_a', storedEvents)
  }
  const firstHour = Math.floor(noon / 3_600_000)
  const damaged = Array.from({ length: 800 }, (_, hour) => firstHour + hour).filter((hour) => hour % 25 === 1)
  subject.sql('UPDATE rollup_metric SET live = live + 7 WHERE hour % 25 = 1')
  subject.sql('UPDATE event_org SET rewrites = rewrites + 1') // so that the wrong counts are cached
  const fullRange = { orgId: 'org_a', sinceMs: 0, untilMs: null, rowsMax: 10 }
  expect(subject.reader.metrics(fullRange).total).toBeGreaterThan(storedEvents.length)
  for (const hour of damaged) {
    const repairs = await subject.reader.recount({ orgId: 'org_a', hourStartMs: hour * 3_600_000 })
    if (repairs.length > 0) subject.repair('org_a', repairs)
  }
  agreesInCounts(subject, 'org_a', storedEvents)
  subject.erase('org_a', ['ses_2'], [])
  storedEvents = storedEvents.filter(({ sessionId }) => sessionId !== 'ses_2')
  agreesInCounts(subject, 'org_a', storedEvents)
  subject.removeSite('org_a', 'demo')
  storedEvents = storedEvents.filter(({ siteId }) => siteId !== 'demo')
  agreesInCounts(subject, 'org_a', storedEvents)
  subject.expire('org_a', 2_500)
  agreesInCounts(subject, 'org_a', storedEvents)
  const moreEvents = events
    .slice(0, 300)
    .map((record) => ({ ...record, id: `more_${record.id}`, siteId: 'other' }))
  subject.group(() => subject.append('org_a', moreEvents, count))
  subject.idle()
  subject.expire('org_a', 10 ** 9) // before a query reads which hours the fold changed
  agreesInCounts(subject, 'org_a', [...storedEvents, ...moreEvents])
  subject.removeOrg('org_a')
  agreesInCounts(subject, 'org_a', [])
  subject.close()
}, 90_000)

/** What dashboards ask about the values of a field: whole periods, steps of hours and days, some types and values. */
function breakdownsOf(firstDay: number, hour: number): BreakdownQuery[] {
  const sinceMs = noon + firstDay * dayMs + hour * hourMs
  const fullRange = { orgId: 'org_a', sinceMs, untilMs: null, stepMs: null }
  const edges = Array.from({ length: 30 }, (_, n) => sinceMs + n * 5 * hourMs)
  return [
    { ...fullRange, by: 'vendor' },
    { ...fullRange, by: 'vendor', edges: [sinceMs, sinceMs + 2 * dayMs] },
    { ...fullRange, by: 'tool', types: ['tool.*'], untilMs: sinceMs + 3 * dayMs },
    { ...fullRange, by: 'tool', siteIds: ['shop'], edges, values: ['tool 2', 'tool 4'] },
    { ...fullRange, by: 'page', stepMs: dayMs },
    { ...fullRange, by: 'name' },
  ]
}

test('law: sums of days and hours are right through arrivals, late events, erasure, expiry and repair', () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), events: fc.integer({ min: 1, max: 900 }) }),
    fc.record({ kind: fc.constant('late' as const), day: fc.integer({ min: 0, max: 6 }) }),
    fc.record({ kind: fc.constantFrom('fold' as const, 'undo' as const, 'repair' as const) }),
    fc.record({ kind: fc.constant('erase' as const), subject: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constant('expire' as const), share: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ kind: fc.constant('look' as const), day: fc.integer({ min: -1, max: 5 }), hour: fc.nat(23) }),
  )
  fc.assert(
    fc.property(fc.array(change, { minLength: 6, maxLength: 14 }), (changes) => {
      const subject = engine()
      let next = 0
      const batch = (count: number, timeOf: (n: number) => number) => {
        const events = Array.from({ length: count }, (_, n) => ({
          ...event(next + n, timeOf(next + n)),
          subject: `who_${(next + n) % 40}`,
        }))
        subject.append('org_a', events, next)
        next += count
      }
      const add = (count: number, timeOf = (n: number) => n * 90_000) =>
        subject.group(() => batch(count, timeOf))
      const look = (day: number, hour: number) => {
        for (const query of breakdownsOf(day, hour)) {
          const breakdown = subject.reader.breakdown(query)
          expect([query, breakdown]).toEqual([query, subject.freshly((reader) => reader.breakdown(query))])
        }
      }
      add(2_500)
      subject.idle() // folds
      look(0, 5)
      for (const storedChange of changes) {
        if (storedChange.kind === 'append') add(storedChange.events)
        if (storedChange.kind === 'late') add(20, (n) => storedChange.day * dayMs + n * 60_000)
        if (storedChange.kind === 'fold') subject.idle()
        if (storedChange.kind === 'undo') subject.undone(() => batch(300, (n) => n * 90_000))
        if (storedChange.kind === 'erase') subject.erase('org_a', [], [`who_${storedChange.subject}`])
        if (storedChange.kind === 'expire') subject.expire('org_a', (next * storedChange.share) / 100)
        if (storedChange.kind === 'repair') subject.sql('UPDATE event_org SET rewrites = rewrites + 1')
        look(
          storedChange.kind === 'look' ? storedChange.day : 0,
          storedChange.kind === 'look' ? storedChange.hour : 5,
        )
      }
      subject.close()
    }),
    { numRuns: runs(30) },
  )
}, 90_000)

test('after a new event a month of values is read from sums: only its hour is read again', () => {
  const subject = engine()
  const count = 9_000
  const events = Array.from({ length: count }, (_, n) => event(n, n * 300_000)) // 31 days
  for (let from = 0; from < count; from += 3_000)
    subject.group(() => subject.append('org_a', events.slice(from, from + 3_000), from))
  subject.idle()
  const query = (hours: number): BreakdownQuery => {
    const sinceMs = noon + dayMs + hours * hourMs
    const edges = [sinceMs, sinceMs + 29 * dayMs]
    return { orgId: 'org_a', by: 'vendor', sinceMs, untilMs: sinceMs + 30 * dayMs, stepMs: null, edges }
  }
  const rowsOf = (hours: number) => subject.reads(() => subject.reader.breakdown(query(hours))).rows
  const whole = rowsOf(5)
  expect(whole).toBeGreaterThan(5_000)
  subject.group(() => subject.append('org_a', [event(count, (count - 100) * 300_000)], count))
  subject.idle()
  const again = rowsOf(5)
  expect(again).toBeGreaterThan(0)
  expect(again).toBeLessThan(whole / 200)
  expect(rowsOf(5)).toBe(0)
  // An hour later most is known: of each end and of the edge one hour is new.
  expect(rowsOf(6)).toBeLessThan(whole / 200)
  expect(subject.reader.breakdown(query(6))).toEqual(subject.freshly((reader) => reader.breakdown(query(6))))
  subject.close()
}, 90_000)

test('the sketches of a year are read once: after new events only those of their days', () => {
  const subject = engine()
  const days = 365
  const makeDayEvent = (n: number, day: number) => ({
    ...event(n, day * dayMs),
    siteId: 'shop',
    subject: `who_${n}`,
  })
  const events = Array.from({ length: days * 8 }, (_, n) => makeDayEvent(n, Math.floor(n / 8)))
  subject.group(() => subject.append('org_a', events))
  subject.idle()
  const rowsOf = () =>
    (['session', 'subject'] as const)
      .map((field) => ({ orgId: 'org_a', of: field, step: 'month', sinceMs: noon, untilMs: null }) as const)
      .reduce((rows, query) => rows + subject.reads(() => subject.reader.distinct(query)).rows, 0)
  const whole = rowsOf()
  expect(whole).toBeGreaterThan(days * 2)
  subject.group(() => subject.append('org_a', [makeDayEvent(events.length, days - 1)], events.length))
  subject.idle()
  // Only the last day is read.
  expect(rowsOf()).toBeLessThan(30)
  subject.close()
}, 60_000)

test('sketches of days are read again after late events, erasure or expiry', () => {
  const subject = engine()
  let next = 0
  const late = { ofDay: 0 }
  const add = (count: number) => {
    const batch = Array.from({ length: count }, (_, n) => {
      const occurredAtMs = n % 4 === 3 ? late.ofDay * dayMs : (next + n) * 60_000
      return {
        ...event(next + n, occurredAtMs),
        sessionId: `ses_${next + n}`,
        subject: `who_${(next + n) % 700}`,
      }
    })
    subject.group(() => subject.append('org_a', batch, next))
    next += count
    late.ofDay = (late.ofDay + 1) % 5
  }
  const changes: (() => unknown)[] = [
    () => add(300),
    subject.idle, // folds
    () => add(20),
    () => add(900),
    subject.idle,
    () => subject.erase('org_a', [], ['who_3', 'who_77']),
    () => subject.expire('org_a', 600),
    subject.idle,
  ]
  add(6_000)
  subject.idle()
  for (let round = 0; round < 3; round++) {
    for (const [change, make] of changes.entries()) {
      make()
      for (const field of ['session', 'subject'] as const) {
        for (const [step, siteIds] of [
          ['day', ['shop', 'demo']],
          ['month', ['shop']],
        ] as const) {
          const sinceMs = noon + (round % 3) * dayMs
          const query = { orgId: 'org_a', of: field, step, siteIds: [...siteIds], sinceMs, untilMs: null }
          const distinct = subject.reader.distinct(query)
          expect([round, change, distinct]).toEqual([
            round,
            change,
            subject.freshly((reader) => reader.distinct(query)),
          ])
          expect(distinct.rows.length).toBeGreaterThan(0)
        }
      }
    }
  }
  subject.close()
}, 90_000)
