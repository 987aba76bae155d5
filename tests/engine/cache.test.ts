/** A reader with warm caches gives the same answers as a new one, whatever happens in between. */
import { expect, test } from 'bun:test'
import type { EventFilter, EventRecord } from '../../db/contract/store.ts'
import { noon } from '../store/make.ts'
import { agrees, agreesInCounts, isSound, newestFirst, walk } from './model.ts'
import { countAll, engine, event } from './subject.ts'

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

test('cached matches of sealed segments stay right through arrivals, erasure, expiry and a new start', () => {
  const subject = engine()
  const count = 132_000
  const all = Array.from({ length: count }, (_, n) => ({
    ...event(n, n * 500),
    vendor: n % 10_000 === 17 ? 'rare' : `vendor ${n % 4}`,
    sessionId: `ses_${Math.floor(n / 40)}`,
  }))
  const filters: [EventFilter, (one: (typeof all)[number]) => boolean][] = [
    [{ vendors: ['rare'] }, ({ vendor }) => vendor === 'rare'],
    [
      { vendors: ['rare'], types: ['tool.executed'] },
      (one) => one.vendor === 'rare' && one.type === 'tool.executed',
    ],
    [{ vendors: ['nobody'] }, () => false],
    [{ sessionIds: ['ses_7', 'ses_3000'] }, (one) => ['ses_7', 'ses_3000'].includes(one.sessionId)],
    [
      { tools: ['tool 2'], types: ['tool.executed'], vendors: ['rare', 'vendor 1'] },
      (one) =>
        one.tool === 'tool 2' && one.type === 'tool.executed' && ['rare', 'vendor 1'].includes(one.vendor),
    ],
  ]
  let held: typeof all = []
  const look = () => {
    for (const [filter, isTaken] of filters)
      expect(walk(subject, 'org_a', filter, 500)).toEqual(newestFirst(held.filter(isTaken)))
  }
  for (const upTo of [66_000, 100_000, count]) {
    while (held.length < upTo) {
      const next = all.slice(held.length, held.length + 2_000)
      subject.group(() => subject.append('org_a', next, held.length))
      held = all.slice(0, held.length + 2_000)
      if (held.length % 20_000 === 0) look()
    }
    subject.idle()
    look()
    look()
  }
  expect(subject.tables('event_segment')).toBe(2)
  subject.erase('org_a', ['ses_3000'], [])
  held = held.filter(({ sessionId }) => sessionId !== 'ses_3000')
  look()
  subject.expire('org_a', 70_000)
  expect(subject.tables('event_segment')).toBe(1)
  held = held.slice(-countAll(subject.reader, 'org_a'))
  look()
  subject.removeOrg('org_a')
  held = []
  look()
  held = all.slice(500, 66_500)
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

test('sketches of days are read again after late events, erasure or expiry', () => {
  const subject = engine()
  const dayMs = 86_400_000
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
