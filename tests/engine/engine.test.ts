/** The engine against a naive model: the same events, counts and pages after any history. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { EventFilter, EventRecord } from '../../db/contract/store.ts'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import { noon } from '../store/make.ts'
import { agrees, agreesInCounts, isSound, newestFirst, walk } from './model.ts'
import { cramped, engine, event, firstArrivalMs, type Engine } from './subject.ts'
import { runs } from '../support/runs.ts'

const orgIds = ['org_a', 'org_b'] as const
const aheadMs = firstArrivalMs - noon + 300_000 // of an arrival in the first step; later steps are not ahead
const times = fc.constantFrom(
  0,
  1,
  2,
  -86_400_000 * 400,
  3_600_000,
  aheadMs,
  aheadMs + 1,
  aheadMs + 3_000,
  86_400_000 * 3_000,
)
const batch = fc.record({
  org: fc.constantFrom(...orgIds),
  first: fc.integer({ min: 0, max: 400 }), // ranges overlap: resends and duplicates are common
  count: fc.integer({ min: 1, max: 90 }),
  step: fc.integer({ min: 0, max: 2 }), // 0: the same id repeatedly in one batch
  time: times,
})
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('group' as const),
      batches: fc.array(batch, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('undone' as const),
      batches: fc.array(batch, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('idle' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), org: fc.constantFrom(...orgIds) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('erase' as const),
      org: fc.constantFrom(...orgIds),
      session: fc.constantFrom('ses_1', 'ses_3', 'nobody'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('removeOrg' as const), org: fc.constantFrom(...orgIds) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('expire' as const),
      org: fc.constantFrom(...orgIds),
      stepsKept: fc.integer({ min: 0, max: 4 }),
    }),
  },
)

type Batch = typeof batch extends fc.Arbitrary<infer T> ? T : never

function eventsOf({ first, count, step, time }: Batch): EventRecord[] {
  return Array.from({ length: count }, (_, n) => event(first + n * step, time))
}

/** The naive store of an organization, in arrival order. */
interface Model {
  stored: Map<string, { event: EventRecord; receivedMs: number }>
  expired: EventRecord[]
  erased: Map<string, number> // id -> received; a resend is deduplicated
  doubtful: Set<string> // erased and expired: the block with their marks may be deleted or not
}

function emptyModel(): Model {
  return { stored: new Map(), expired: [], erased: new Map(), doubtful: new Set() }
}

/** A clock more than five minutes ahead is wrong: the event counts at its arrival (contract §6). */
function asCounted(event: EventRecord, receivedAtMs: number): EventRecord {
  return event.occurredAtMs - receivedAtMs > 300_000 ? { ...event, occurredAtMs: receivedAtMs } : event
}

function takes(
  { stored, erased }: Model,
  events: EventRecord[],
  receivedMs: number,
): { accepted: number; deduped: number } {
  let accepted = 0
  for (const event of events) {
    if (stored.has(event.id) || erased.has(event.id)) continue
    stored.set(event.id, { event: asCounted(event, firstArrivalMs + receivedMs), receivedMs })
    accepted++
  }
  return { accepted, deduped: events.length - accepted }
}

/** Deletes whole blocks, oldest first: only old events are deleted, and hardly more than a block of them is left. */
function expires(
  { stored, expired, erased, doubtful }: Model,
  count: number,
  receivedBeforeMs: number,
): void {
  const oldest = [...stored.values()].slice(0, count)
  for (const { event, receivedMs } of oldest) {
    expect(receivedMs).toBeLessThan(receivedBeforeMs)
    stored.delete(event.id)
    expired.push(event)
  }
  const isOld = ({ receivedMs }: { receivedMs: number }) => receivedMs < receivedBeforeMs
  expect([...stored.values()].filter(isOld).length).toBeLessThan(256)
  for (const [id, receivedMs] of erased) {
    if (receivedMs >= receivedBeforeMs) continue
    erased.delete(id)
    doubtful.add(id)
  }
}

function erases({ stored, erased }: Model, session: string): number {
  const sessionEvents = [...stored.values()].filter(({ event }) => event.sessionId === session)
  for (const { event, receivedMs } of sessionEvents) {
    stored.delete(event.id)
    erased.set(event.id, receivedMs)
  }
  return sessionEvents.length
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

function take(
  subject: Engine,
  models: { [org in (typeof orgIds)[number]]: Model },
  action: Step,
  nowMs: number,
): void {
  if (action.do === 'reopen') return subject.reopen()
  if (action.do === 'idle') return subject.idle()
  if (action.do === 'undone') {
    return subject.undone(() =>
      action.batches.forEach((batchSpec) => subject.append(batchSpec.org, eventsOf(batchSpec))),
    )
  }
  if (action.do === 'group') {
    return subject.group(() => {
      for (const batchSpec of action.batches) {
        const events = eventsOf(batchSpec).filter(({ id }) => !models[batchSpec.org].doubtful.has(id))
        if (events.length === 0) continue
        expect(subject.append(batchSpec.org, events, nowMs)).toMatchObject(
          takes(models[batchSpec.org], events, nowMs),
        )
      }
    })
  }
  const model = models[action.org]
  if (action.do === 'expire') {
    const receivedBeforeMs = nowMs - action.stepsKept * stepMs
    return expires(model, subject.expire(action.org, receivedBeforeMs), receivedBeforeMs)
  }
  if (action.do === 'removeOrg') {
    models[action.org] = emptyModel()
    return subject.removeOrg(action.org)
  }
  if (action.do === 'erase') {
    const erased = erases(model, action.session)
    return expect(subject.erase(action.org, [action.session], [])).toBe(erased)
  }
  const demo = [...model.stored.values()].filter(({ event }) => event.siteId === 'demo')
  expect(subject.removeSite(action.org, 'demo')).toBe(demo.length)
  for (const { event } of demo) model.stored.delete(event.id)
}

const stepMs = 1_000

describe('any history', () => {
  for (const [name, options] of [
    ['cramped', cramped],
    ['as shipped', {}],
  ] as const) {
    test(`${name}: batches, resends, undone groups, restarts, removals and retention leave what the model has`, () => {
      fc.assert(
        fc.property(fc.array(step, { minLength: 1, maxLength: 14 }), (steps) => {
          const subject = engine(options)
          const models = { org_a: emptyModel(), org_b: emptyModel() }
          steps.forEach((currentStep, index) => take(subject, models, currentStep, index * stepMs))
          for (const orgId of orgIds) {
            const { stored, expired } = models[orgId]
            const events = [...stored.values()].map(({ event }) => event)
            agrees(subject, orgId, events, expired)
          }
          isSound(subject)
          subject.close()
        }),
        { numRuns: runs(60) },
      )
    }, 90_000)
  }
})

test('single posts become few blocks, and every event is still stored', () => {
  const subject = engine()
  const events = Array.from({ length: 600 }, (_, n) => event(n, n % 50))
  for (const record of events) subject.group(() => subject.append('org_a', [record]))
  agrees(subject, 'org_a', events)
  subject.reopen()
  subject.group(() => expect(subject.append('org_a', events.slice(0, 500)).deduped).toBe(500))
  subject.close()
}, 90_000)

test('values beyond the dictionary are found by hash, without other values', () => {
  const subject = engine()
  const events = Array.from({ length: 9_000 }, (_, n) => ({
    ...event(n, n),
    vendor: `vendor ${n}`,
    subject: `${n % 3_000}`,
  }))
  for (let from = 0; from < events.length; from += 1_000) {
    subject.group(() => subject.append('org_a', events.slice(from, from + 1_000)))
  }
  const vendors = subject.reader.breakdown({
    orgId: 'org_a',
    sinceMs: 0,
    untilMs: null,
    by: 'vendor',
    stepMs: null,
  })
  expect(vendors.rows.filter(({ value }) => value !== null).length).toBe(1_000)
  expect(vendors.rows.filter(({ value }) => value === null).reduce((sum, { count }) => sum + count, 0)).toBe(
    9_000 - 1_000,
  )
  isSound(subject)
  for (const vendor of ['vendor 17', 'vendor 4095', 'vendor 4096', 'vendor 8999', 'vendor 9000']) {
    expect(walk(subject, 'org_a', { vendors: [vendor] }, 5)).toEqual(
      events.filter((record) => record.vendor === vendor).map(({ json }) => json),
    )
  }
  expect(walk(subject, 'org_a', { subjects: ['2999', ''] }, 2)).toEqual(
    newestFirst(events.filter((record) => record.subject === '2999')),
  )
  subject.close()
})

describe('two sealed segments and a part of a third', () => {
  const total = 2 * sealed + 1_000
  const aside = sealed - 5_500
  const late = (n: number) => (n % 1_000 === 0 ? -86_400_000 * (n % 7_000) : 0)
  const make = (n: number) => ({
    ...event(n, n * 10 + late(n)),
    tool: n % 60 === 0 ? `tool ${n % 600}` : null,
  })
  const events = Array.from({ length: total }, (_, n) => make(n))
  const lateEvents = new Set(events.slice(aside))
  const filters: [string, EventFilter, (event: EventRecord) => boolean][] = [
    ['a common value', { types: ['tool.*'] }, ({ type }) => type === 'tool.executed'],
    ['a rare one', { subjects: ['who 900'] }, ({ subject }) => subject === 'who 900'],
    ['none', { subjects: ['who 901'] }, () => false],
    ['an empty pair', { types: ['tool.executed'], siteIds: ['nowhere'] }, () => false],
    [
      'two common that never meet',
      { tools: ['tool 60'], types: ['agent.detected'] },
      (record) => record.tool === 'tool 60' && record.type === 'agent.detected',
    ],
    [
      'missing or one',
      { tools: ['', 'tool 0'], sessionIds: ['ses_2'], outcomes: ['blocked'] },
      (record) =>
        (record.tool === null || record.tool === 'tool 0') &&
        record.sessionId === 'ses_2' &&
        record.outcome === 'blocked',
    ],
    [
      'a range of time',
      { sinceMs: noon + 200_000, untilMs: noon + 300_000, types: ['agent.detected'] },
      (record) =>
        record.occurredAtMs >= noon + 200_000 &&
        record.occurredAtMs < noon + 300_000 &&
        record.type === 'agent.detected',
    ],
  ]

  test('every filter and count agrees with the model, before and after a removal and a restart', () => {
    const subject = engine()
    for (let from = 0; from < total; from += 4_000) {
      subject.group(() => subject.append('org_a', events.slice(from, from + 4_000)))
    }
    const newest = events
      .map((record, arrival) => ({ one: record, arrival }))
      .toSorted((a, b) => b.one.occurredAtMs - a.one.occurredAtMs || b.arrival - a.arrival)
      .map(({ one: record }) => record)
    const check = (isKept: (record: EventRecord) => boolean) => {
      for (const [name, filter, matches] of filters) {
        const matching = newest.filter((record) => isKept(record) && matches(record))
        const expected = matching.slice(0, 400).map(({ json }) => json)
        const page = subject.reader.page({
          orgId: 'org_a',
          filter,
          limit: 200,
          before: null,
          ceilingSeq: null,
        })
        expect([name, page.events.map(({ json }) => json)]).toEqual([name, expected.slice(0, 200)])
        const middle = page.events.at(-1)
        if (middle === undefined || page.next === null) continue
        const next = subject.reader.page({
          orgId: 'org_a',
          filter,
          limit: 200,
          before: page.next,
          ceilingSeq: page.ceilingSeq,
        })
        expect(next.events.map(({ json }) => json)).toEqual(expected.slice(200))
        const tail = subject.reader.tail({ orgId: 'org_a', filter, afterSeq: aside, limit: 100_000 })
        expect(tail.events.length).toBe(matching.filter((record) => lateEvents.has(record)).length)
      }
    }
    check(() => true)
    agreesInCounts(subject, 'org_a', events)
    subject.idle()
    agreesInCounts(subject, 'org_a', events)
    expect(subject.removeSite('org_a', 'demo')).toBe(events.filter(({ siteId }) => siteId === 'demo').length)
    subject.reopen()
    const isKept = ({ siteId }: EventRecord) => siteId !== 'demo'
    const keptEvents = events.filter(isKept)
    check(isKept)
    agreesInCounts(subject, 'org_a', keptEvents)
    isSound(subject)
    subject.close()
  }, 90_000)
})
