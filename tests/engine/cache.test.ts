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
  for (const one of events.slice(0, 300)) subject.group(() => subject.append('org_a', [one]))
  agrees(subject, 'org_a', events.slice(0, 300))
  subject.idle() // merges
  agrees(subject, 'org_a', events.slice(0, 300))
  subject.group(() => subject.append('org_a', events.slice(300)))
  agrees(subject, 'org_a', events)
  expect(subject.erase('org_a', ['ses_3'], [])).toBe(180)
  const notErased = events.filter(({ sessionId }) => sessionId !== 'ses_3')
  agrees(subject, 'org_a', notErased)
  subject.removeSite('org_a', 'demo')
  const left = notErased.filter(({ siteId }) => siteId !== 'demo')
  agrees(subject, 'org_a', left)
  subject.undone(() =>
    subject.append(
      'org_a',
      events.slice(0, 5).map((one) => ({ ...one, id: `x${one.id}` })),
    ),
  )
  agrees(subject, 'org_a', left)
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
  edges: [0, 2, 7, 20].map((more) => noon + (hour + more) * hourMs),
})

/** Counts of the events that match a filter, in steps of some hours. */
function agreesInFiltered(subject: Engine, filter: EventFilter, events: EventRecord[]): void {
  for (const hour of [-1, 3]) {
    const query = filteredQuery(filter, hour)
    const { rows, breakdowns } = subject.reader.filteredCounts(query)
    const [sinceMs = 0, untilMs = 0] = [query.edges[0], query.edges.at(-1)]
    const own = events.filter(({ occurredAtMs: at }) => at >= sinceMs && at < untilMs)
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(own.length)
    const pages = (breakdowns[1] ?? []).map(({ value, outcome, startMs, count }) =>
      JSON.stringify([value, outcome, startMs, count]),
    )
    const start = ({ occurredAtMs: at }: EventRecord) => query.edges.findLast((edge) => edge <= at)!
    const groups = Map.groupBy(own, (one) => JSON.stringify([one.page, one.outcome, start(one)]))
    const recount = Array.from(groups, ([key, some]) => `${key.slice(0, -1)},${some.length}]`)
    expect(pages.toSorted()).toEqual(recount.toSorted())
    expect(breakdowns[0]).toEqual(subject.freshly((one) => one.filteredCounts(query)).breakdowns[0]!)
  }
}

test('cached matches of sealed segments stay right through arrivals, erasure, expiry and a restart', () => {
  const subject = engine()
  const count = 2 * sealed + 1_000
  const all = Array.from({ length: count }, (_, n) => ({
    ...event(n, n * 500),
    vendor: n % Math.floor(sealed / 6.5) === 17 ? 'rare' : `vendor ${n % 4}`,
    sessionId: `ses_${Math.floor(n / 40)}`,
  }))
  const filters: [EventFilter, (one: (typeof all)[number]) => boolean][] = [
    [{ vendors: ['rare'] }, ({ vendor }) => vendor === 'rare'],
    [
      { vendors: ['rare'], types: ['tool.executed'] },
      (one) => one.vendor === 'rare' && one.type === 'tool.executed',
    ],
    [{ vendors: ['nobody'] }, () => false],
    [{ sessionIds: ['ses_7', 'ses_300'] }, (one) => ['ses_7', 'ses_300'].includes(one.sessionId)],
    [
      { tools: ['tool 2'], types: ['tool.executed'], vendors: ['rare', 'vendor 1'] },
      (one) =>
        one.tool === 'tool 2' && one.type === 'tool.executed' && ['rare', 'vendor 1'].includes(one.vendor),
    ],
  ]
  let held: typeof all = []
  const look = () => {
    for (const [filter, isTaken] of filters) {
      expect(walk(subject, 'org_a', filter, 500)).toEqual(newestFirst(held.filter(isTaken)))
      agreesInFiltered(subject, filter, held.filter(isTaken))
    }
  }
  for (const upTo of [sealed + 500, sealed * 1.5, count]) {
    while (held.length < upTo) {
      const next = all.slice(held.length, held.length + 2_000)
      subject.group(() => subject.append('org_a', next, held.length))
      held = all.slice(0, held.length + 2_000)
      if (held.length % 10_000 === 0) look()
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
  held = held.filter(({ sessionId }) => sessionId !== 'ses_300')
  look()
  subject.expire('org_a', sealed * 1.1)
  expect(subject.tables('event_segment')).toBe(1)
  held = held.slice(-countAll(subject.reader, 'org_a'))
  look()
  subject.removeOrg('org_a')
  held = []
  look()
  held = all.slice(500, sealed + 1_000)
  for (let from = 0; from < held.length; from += 2_000)
    subject.group(() => subject.append('org_a', held.slice(from, from + 2_000)))
  subject.idle()
  look()
  const metrics = subject.reader.metrics({ orgId: 'org_a', sinceMs: 0, untilMs: null, rowsMax: 10 })
  expect(metrics.total).toBe(held.length)
  subject.close()
}, 90_000)

test('hours are read again after late events, erasure, expiry or a repair', async () => {
  const subject = engine()
  const count = 4_500
  const events = Array.from({ length: count }, (_, n) => {
    const isLate = n % 97 === 0
    return event(n, isLate ? ((n * 7_919) % count) * 600_000 : n * 600_000)
  })
  let held: EventRecord[] = []
  for (let from = 0; from < count; from += 500) {
    subject.group(() => subject.append('org_a', events.slice(from, from + 500), from))
    held = events.slice(0, from + 500)
    agreesInCounts(subject, 'org_a', held)
    if (from % 1_500 === 0) subject.idle() // folds
    agreesInCounts(subject, 'org_a', held)
  }
  const firstHour = Math.floor(noon / 3_600_000)
  const damaged = Array.from({ length: 800 }, (_, hour) => firstHour + hour).filter((hour) => hour % 25 === 1)
  subject.sql('UPDATE rollup_metric SET live = live + 7 WHERE hour % 25 = 1')
  subject.sql('UPDATE event_org SET rewrites = rewrites + 1') // so that the wrong counts are cached
  const everything = { orgId: 'org_a', sinceMs: 0, untilMs: null, rowsMax: 10 }
  expect(subject.reader.metrics(everything).total).toBeGreaterThan(held.length)
  for (const hour of damaged) {
    const found = await subject.reader.recount({ orgId: 'org_a', hourStartMs: hour * 3_600_000 })
    if (found.length > 0) subject.repair('org_a', found)
  }
  agreesInCounts(subject, 'org_a', held)
  subject.erase('org_a', ['ses_2'], [])
  held = held.filter(({ sessionId }) => sessionId !== 'ses_2')
  agreesInCounts(subject, 'org_a', held)
  subject.removeSite('org_a', 'demo')
  held = held.filter(({ siteId }) => siteId !== 'demo')
  agreesInCounts(subject, 'org_a', held)
  subject.expire('org_a', 2_500)
  agreesInCounts(subject, 'org_a', held)
  const more = events.slice(0, 300).map((one) => ({ ...one, id: `more_${one.id}`, siteId: 'other' }))
  subject.group(() => subject.append('org_a', more, count))
  subject.idle()
  subject.expire('org_a', 10 ** 9) // before a query reads which hours the fold changed
  agreesInCounts(subject, 'org_a', [...held, ...more])
  subject.removeOrg('org_a')
  agreesInCounts(subject, 'org_a', [])
  subject.close()
}, 90_000)

/** What dashboards ask about the values of a field: whole periods, steps of hours and days, some types and values. */
function breakdownsOf(firstDay: number, hour: number): BreakdownQuery[] {
  const sinceMs = noon + firstDay * dayMs + hour * hourMs
  const all = { orgId: 'org_a', sinceMs, untilMs: null, stepMs: null }
  const edges = Array.from({ length: 30 }, (_, n) => sinceMs + n * 5 * hourMs)
  return [
    { ...all, by: 'vendor' },
    { ...all, by: 'vendor', edges: [sinceMs, sinceMs + 2 * dayMs] },
    { ...all, by: 'tool', types: ['tool.*'], untilMs: sinceMs + 3 * dayMs },
    { ...all, by: 'tool', siteIds: ['shop'], edges, values: ['tool 2', 'tool 4'] },
    { ...all, by: 'page', stepMs: dayMs },
    { ...all, by: 'name' },
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
          const found = subject.reader.breakdown(query)
          expect([query, found]).toEqual([query, subject.freshly((one) => one.breakdown(query))])
        }
      }
      add(2_500)
      subject.idle() // folds
      look(0, 5)
      for (const made of changes) {
        if (made.kind === 'append') add(made.events)
        if (made.kind === 'late') add(20, (n) => made.day * dayMs + n * 60_000)
        if (made.kind === 'fold') subject.idle()
        if (made.kind === 'undo') subject.undone(() => batch(300, (n) => n * 90_000))
        if (made.kind === 'erase') subject.erase('org_a', [], [`who_${made.subject}`])
        if (made.kind === 'expire') subject.expire('org_a', (next * made.share) / 100)
        if (made.kind === 'repair') subject.sql('UPDATE event_org SET rewrites = rewrites + 1')
        look(made.kind === 'look' ? made.day : 0, made.kind === 'look' ? made.hour : 5)
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
  expect(subject.reader.breakdown(query(6))).toEqual(subject.freshly((one) => one.breakdown(query(6))))
  subject.close()
}, 90_000)

test('the sketches of a year are read once: after new events only those of their days', () => {
  const subject = engine()
  const days = 365
  const made = (n: number, day: number) => ({ ...event(n, day * dayMs), siteId: 'shop', subject: `who_${n}` })
  const events = Array.from({ length: days * 8 }, (_, n) => made(n, Math.floor(n / 8)))
  subject.group(() => subject.append('org_a', events))
  subject.idle()
  const rowsOf = () =>
    (['session', 'subject'] as const)
      .map((of) => ({ orgId: 'org_a', of, step: 'month', sinceMs: noon, untilMs: null }) as const)
      .reduce((rows, query) => rows + subject.reads(() => subject.reader.distinct(query)).rows, 0)
  const whole = rowsOf()
  expect(whole).toBeGreaterThan(days * 2)
  subject.group(() => subject.append('org_a', [made(events.length, days - 1)], events.length))
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
      const at = n % 4 === 3 ? late.ofDay * dayMs : (next + n) * 60_000
      return { ...event(next + n, at), sessionId: `ses_${next + n}`, subject: `who_${(next + n) % 700}` }
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
      for (const of of ['session', 'subject'] as const) {
        for (const [step, siteIds] of [
          ['day', ['shop', 'demo']],
          ['month', ['shop']],
        ] as const) {
          const sinceMs = noon + (round % 3) * dayMs
          const query = { orgId: 'org_a', of, step, siteIds: [...siteIds], sinceMs, untilMs: null }
          const kept = subject.reader.distinct(query)
          expect([round, change, kept]).toEqual([
            round,
            change,
            subject.freshly((one) => one.distinct(query)),
          ])
          expect(kept.rows.length).toBeGreaterThan(0)
        }
      }
    }
  }
  subject.close()
}, 90_000)
