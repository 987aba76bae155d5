/** The engine against a naive model: whatever happens in whatever order, the same events, counts and pages. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { EventFilter, EventRecord } from '../../db/store.ts'
import { noon } from '../store/make.ts'
import { agrees, agreesInCounts, isSound, newestFirst, walk } from './model.ts'
import { cramped, engine, event } from './subject.ts'

const orgIds = ['org_a', 'org_b'] as const
const times = fc.constantFrom(0, 1, 2, -86_400_000 * 400, 3_600_000, 86_400_000 * 3_000)
const batch = fc.record({
  org: fc.constantFrom(...orgIds),
  first: fc.integer({ min: 0, max: 400 }), // ranges overlap: resends and duplicates are common
  count: fc.integer({ min: 1, max: 90 }),
  step: fc.integer({ min: 0, max: 2 }), // 0: the same id again and again inside the batch
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
)

type Batch = typeof batch extends fc.Arbitrary<infer T> ? T : never

function eventsOf({ first, count, step, time }: Batch): EventRecord[] {
  return Array.from({ length: count }, (_, n) => event(first + n * step, time))
}

/** The naive store: a list and a set of ids. */
function takes(
  stored: Map<string, EventRecord>,
  events: EventRecord[],
): { accepted: number; deduped: number } {
  let accepted = 0
  for (const one of events) {
    if (stored.has(one.id)) continue
    stored.set(one.id, one)
    accepted++
  }
  return { accepted, deduped: events.length - accepted }
}

describe('any history', () => {
  for (const [name, options] of [
    ['cramped', cramped],
    ['as shipped', {}],
  ] as const) {
    test(`${name}: batches, resends, undone groups, restarts and removals leave what the model has`, () => {
      fc.assert(
        fc.property(fc.array(step, { minLength: 1, maxLength: 14 }), (steps) => {
          const subject = engine(options)
          const model = { org_a: new Map<string, EventRecord>(), org_b: new Map<string, EventRecord>() }
          for (const one of steps) {
            if (one.do === 'reopen') subject.reopen()
            else if (one.do === 'idle') subject.idle()
            else if (one.do === 'undone')
              subject.undone(() => one.batches.forEach((some) => subject.append(some.org, eventsOf(some))))
            else if (one.do === 'group') {
              subject.group(() => {
                for (const some of one.batches) {
                  const events = eventsOf(some)
                  expect(subject.append(some.org, events)).toMatchObject(takes(model[some.org], events))
                }
              })
            } else {
              const demo = [...model[one.org].values()].filter(({ siteId }) => siteId === 'demo')
              expect(subject.removeSite(one.org, 'demo')).toBe(demo.length)
              for (const { id } of demo) model[one.org].delete(id)
            }
          }
          for (const orgId of orgIds) agrees(subject, orgId, [...model[orgId].values()])
          isSound(subject)
          subject.close()
        }),
        { numRuns: 40 },
      )
    }, 60_000)
  }
})

test('single posts become few blocks, and every one of them is still there', () => {
  const subject = engine()
  const events = Array.from({ length: 600 }, (_, n) => event(n, n % 50))
  for (const one of events) subject.group(() => subject.append('org_a', [one]))
  agrees(subject, 'org_a', events)
  subject.reopen()
  subject.group(() => expect(subject.append('org_a', events.slice(0, 500)).deduped).toBe(500))
  subject.close()
}, 30_000)

test('values beyond their terms are found by hash, and only the ones asked for', () => {
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
  expect(vendors.rows.filter(({ value }) => value !== null).length).toBe(4_096)
  expect(vendors.rows.filter(({ value }) => value === null).reduce((sum, { count }) => sum + count, 0)).toBe(
    9_000 - 4_096,
  )
  isSound(subject)
  for (const vendor of ['vendor 17', 'vendor 4095', 'vendor 4096', 'vendor 8999', 'vendor 9000']) {
    expect(walk(subject, 'org_a', { vendors: [vendor] }, 5)).toEqual(
      events.filter((one) => one.vendor === vendor).map(({ json }) => json),
    )
  }
  expect(walk(subject, 'org_a', { subjects: ['2999', ''] }, 2)).toEqual(
    newestFirst(events.filter((one) => one.subject === '2999')),
  )
  subject.close()
})

describe('two sealed segments and a part of a third', () => {
  const total = 140_000
  const late = (n: number) => (n % 1_000 === 0 ? -86_400_000 * (n % 7_000) : 0)
  const make = (n: number) => ({
    ...event(n, n * 10 + late(n)),
    tool: n % 60 === 0 ? `tool ${n % 600}` : null,
  })
  const events = Array.from({ length: total }, (_, n) => make(n))
  const filters: [string, EventFilter, (event: EventRecord) => boolean][] = [
    ['a common value', { types: ['tool.*'] }, ({ type }) => type === 'tool.executed'],
    ['a rare one', { subjects: ['who 900'] }, ({ subject }) => subject === 'who 900'],
    ['none', { subjects: ['who 901'] }, () => false],
    ['an empty pair', { types: ['tool.executed'], siteIds: ['nowhere'] }, () => false],
    [
      'two common that never meet',
      { tools: ['tool 60'], types: ['agent.detected'] },
      (one) => one.tool === 'tool 60' && one.type === 'agent.detected',
    ],
    [
      'missing or one',
      { tools: ['', 'tool 0'], sessionIds: ['ses_2'], outcomes: ['blocked'] },
      (one) =>
        (one.tool === null || one.tool === 'tool 0') &&
        one.sessionId === 'ses_2' &&
        one.outcome === 'blocked',
    ],
    [
      'a range of time',
      { sinceMs: noon + 200_000, untilMs: noon + 300_000, types: ['agent.detected'] },
      (one) =>
        one.occurredAtMs >= noon + 200_000 &&
        one.occurredAtMs < noon + 300_000 &&
        one.type === 'agent.detected',
    ],
  ]

  test('every filter and count agrees with the model, before and after a removal and a restart', () => {
    const subject = engine()
    for (let from = 0; from < total; from += 5_000) {
      subject.group(() => subject.append('org_a', events.slice(from, from + 5_000)))
    }
    const check = (kept: EventRecord[]) => {
      for (const [name, filter, matches] of filters) {
        const expected = kept.filter(matches)
        const page = subject.reader.page({
          orgId: 'org_a',
          filter,
          limit: 200,
          before: null,
          ceilingSeq: null,
        })
        expect([name, page.events.map(({ json }) => json)]).toEqual([
          name,
          newestFirst(expected).slice(0, 200),
        ])
        const middle = page.events.at(-1)
        if (middle === undefined || page.next === null) continue
        const next = subject.reader.page({
          orgId: 'org_a',
          filter,
          limit: 200,
          before: page.next,
          ceilingSeq: page.ceilingSeq,
        })
        expect(next.events.map(({ json }) => json)).toEqual(newestFirst(expected).slice(200, 400))
        const tail = subject.reader.tail({ orgId: 'org_a', filter, afterSeq: 60_000, limit: 100_000 })
        expect(tail.events.length).toBe(
          kept.filter((one) => matches(one) && events.indexOf(one) >= 60_000).length,
        )
      }
    }
    check(events)
    agreesInCounts(subject, 'org_a', events)
    subject.idle()
    agreesInCounts(subject, 'org_a', events)
    expect(subject.removeSite('org_a', 'demo')).toBe(events.filter(({ siteId }) => siteId === 'demo').length)
    subject.reopen()
    const kept = events.filter(({ siteId }) => siteId !== 'demo')
    check(kept)
    agreesInCounts(subject, 'org_a', kept)
    isSound(subject)
    subject.close()
  }, 60_000)
})
