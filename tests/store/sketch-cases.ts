/** Conformance of durations and distinct counts: counts exact, estimates within their promise. */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { EventRecord } from '../../db/contract/store.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import type { Cases } from './subject.ts'
import { runs } from '../support/runs.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

const call = (n: number, fields: Partial<EventRecord>): EventRecord =>
  makeEvent(`call_${n}`, { type: 'tool.executed', tool: 'cart.pay', durationMs: 10, ...fields })

/** The value at a share of the sorted list, as the promise defines it. */
function exactly(durations: number[], share: number): number {
  const sorted = durations.toSorted((a, b) => a - b)
  return sorted[Math.ceil(share * sorted.length) - 1]!
}

export const durationCases: Cases = {
  async 'quantiles of any durations are within 2 % of the truth, and counts are exact'({ store }) {
    const duration = fc.oneof(
      fc.double({ min: 0, max: 5, noNaN: true }),
      fc.integer({ min: 0, max: 10_000_000 }),
      fc.constantFrom(0, 0.004, 86_400_000),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(duration, { minLength: 1, maxLength: 80 }), async (durations) => {
        const orgId = makeOrg().id
        const events = durations.map((durationMs, n) => call(n, { durationMs, occurredAtMs: noon + n }))
        await store.events.append(makeBatch(orgId, events))
        const { rows } = await store.events.durations({ orgId, sinceMs: noon, untilMs: null, stepMs: null })
        expect(rows).toMatchObject([{ tool: 'cart.pay', startMs: noon, count: durations.length }])
        const [{ p50Ms, p95Ms, p99Ms }] = rows as [(typeof rows)[number]]
        for (const [share, quantile] of [
          [0.5, p50Ms],
          [0.95, p95Ms],
          [0.99, p99Ms],
        ] as const) {
          const truth = exactly(durations, share)
          expect(Math.abs(quantile - truth)).toBeLessThanOrEqual(Math.max(0.01, truth * 0.020001))
        }
      }),
      { numRuns: runs(25) },
    )
  },
  async 'by hour, by day and as a whole, of the sites and types that were asked for'({ store, orgId }) {
    const events = [
      call(0, { occurredAtMs: noon + 5 }),
      call(1, { occurredAtMs: noon + hourMs - 1, siteId: 'blog' }),
      call(2, { occurredAtMs: noon + hourMs, tool: 'cart.add', type: 'tool.surfaced' }),
      call(3, { occurredAtMs: noon + hourMs }),
      call(4, { occurredAtMs: noon + hourMs }),
      call(5, { occurredAtMs: noon + dayMs }),
      call(6, { tool: null }), // calls without a tool or a duration are in no row
      call(7, { durationMs: null }),
    ]
    await store.events.append(makeBatch(orgId, events))
    const rowsOf = async (filter: object) => {
      const query = { orgId, sinceMs: noon, untilMs: null, stepMs: hourMs, ...filter }
      const { rows } = await store.events.durations(query)
      return rows.map(({ startMs, tool, count }) => [(startMs - noon) / hourMs, tool, count])
    }
    expect(await rowsOf({})).toEqual([
      [0, 'cart.pay', 2],
      [1, 'cart.pay', 2], // the most called first
      [1, 'cart.add', 1],
      [24, 'cart.pay', 1],
    ])
    expect(await rowsOf({ stepMs: dayMs })).toEqual([
      [-12, 'cart.pay', 4],
      [-12, 'cart.add', 1],
      [12, 'cart.pay', 1],
    ])
    expect(await rowsOf({ stepMs: null })).toEqual([
      [0, 'cart.pay', 5],
      [0, 'cart.add', 1],
    ])
    expect(await rowsOf({ stepMs: null, siteIds: ['blog'] })).toEqual([[0, 'cart.pay', 1]])
    expect(await rowsOf({ stepMs: null, types: ['tool.surfaced'] })).toEqual([[0, 'cart.add', 1]])
    expect(await rowsOf({ stepMs: null, types: ['tool.*'], siteIds: ['nowhere'] })).toEqual([])
    expect(await rowsOf({ sinceMs: noon + hourMs + 7, untilMs: noon + 2 * hourMs + 7 })).toEqual([
      [1, 'cart.pay', 2],
      [1, 'cart.add', 1],
    ])
    expect(await rowsOf({ orgId: makeOrg().id })).toEqual([])
  },
  async 'what is removed counts no longer, what retention takes does'({ store, orgId }) {
    const events = Array.from({ length: 40 }, (_, n) => call(n, { siteId: n < 30 ? 'shop' : 'demo' }))
    await store.events.append(makeBatch(orgId, events))
    const count = async () => {
      const { rows } = await store.events.durations({ orgId, sinceMs: noon, untilMs: null, stepMs: null })
      return rows.reduce((sum, row) => sum + row.count, 0)
    }
    expect(await count()).toBe(40)
    await store.events.removeSite({ orgId, siteId: 'demo', audit: makeAudit(orgId) })
    expect(await count()).toBe(30)
    await store.events.expire({ orgId, receivedBeforeMs: noon + dayMs })
    expect(await count()).toBe(30)
  },
}

export const distinctCases: Cases = {
  async 'a few sessions and subjects are counted almost exactly, by day and by month'({ store }) {
    const event = fc.record({
      session: fc.integer({ min: 0, max: 12 }),
      subject: fc.option(fc.integer({ min: 0, max: 8 })),
      day: fc.integer({ min: 0, max: 40 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 150 }), async (eventFields) => {
        const orgId = makeOrg().id
        const events = eventFields.map(({ session, subject, day }, n) =>
          makeEvent(`e${n}`, {
            sessionId: `s${session}`,
            subject: subject === null ? null : `who ${subject}`,
            occurredAtMs: noon + day * dayMs,
          }),
        )
        await store.events.append(makeBatch(orgId, events))
        for (const field of ['session', 'subject'] as const) {
          for (const step of ['day', 'month'] as const) {
            const truth = new Map<number, Set<string>>()
            for (const { sessionId, subject, occurredAtMs } of events) {
              const value = field === 'session' ? sessionId : subject
              if (value === null) continue
              const date = new Date(occurredAtMs)
              const start = Date.UTC(
                date.getUTCFullYear(),
                date.getUTCMonth(),
                step === 'day' ? date.getUTCDate() : 1,
              )
              truth.set(start, (truth.get(start) ?? new Set()).add(value))
            }
            const { rows } = await store.events.distinct({
              orgId,
              of: field,
              sinceMs: 0,
              untilMs: null,
              step,
            })
            expect(rows.map(({ startMs }) => startMs)).toEqual([...truth.keys()].sort((a, b) => a - b))
            for (const { startMs, count } of rows) {
              expect(Math.abs(count - truth.get(startMs)!.size)).toBeLessThanOrEqual(2)
            }
          }
        }
      }),
      { numRuns: runs(20) },
    )
  },
  async 'of many, the promise of the sketch holds'({ store, orgId }) {
    const total = 8_000
    for (let from = 0; from < total; from += 1_000) {
      const events = Array.from({ length: 1_000 }, (_, n) =>
        makeEvent(`e${from + n}`, { sessionId: `session ${from + n}`, subject: `who ${(from + n) % 2_000}` }),
      )
      await store.events.append(makeBatch(orgId, events))
    }
    const count = async (field: 'session' | 'subject') => {
      const { rows } = await store.events.distinct({
        orgId,
        of: field,
        sinceMs: 0,
        untilMs: null,
        step: 'day',
      })
      expect(rows.length).toBe(1)
      return rows[0]!.count
    }
    // Five times the standard error of 1.6 %, because each store hashes in its own way.
    expect(Math.abs((await count('session')) - total)).toBeLessThan(total * 0.08)
    expect(Math.abs((await count('subject')) - 2_000)).toBeLessThan(2_000 * 0.08)
  },
  async 'of the days and sites that were asked for; what is removed is forgotten'({ store, orgId }) {
    const events = Array.from({ length: 48 }, (_, n) =>
      makeEvent(`e${n}`, {
        sessionId: `s${n % 24}`,
        siteId: n % 2 === 0 ? 'shop' : 'demo',
        occurredAtMs: noon + (n < 24 ? 0 : dayMs),
      }),
    )
    await store.events.append(makeBatch(orgId, events))
    const today = noon - dayMs / 2
    const counts = async (filter: object, expected: [offsetMs: number, count: number][]) => {
      const query = {
        orgId,
        of: 'session' as const,
        sinceMs: 0,
        untilMs: null,
        step: 'day' as const,
        ...filter,
      }
      const { rows } = await store.events.distinct(query)
      expect(rows.map(({ startMs }) => startMs - today)).toEqual(expected.map(([offsetMs]) => offsetMs))
      for (const [index, { count }] of rows.entries())
        expect(Math.abs(count - expected[index]![1])).toBeLessThanOrEqual(3)
    }
    const twoDays: [number, number][] = [
      [0, 24],
      [dayMs, 24],
    ]
    await counts({}, twoDays)
    await counts({ sinceMs: noon + dayMs }, twoDays.slice(1)) // rounded down to the day
    await counts({ untilMs: noon + dayMs }, twoDays.slice(0, 1))
    await counts({ siteIds: ['shop'], untilMs: noon + dayMs }, [[0, 12]])
    await counts({ step: 'month' }, [[0, 24]]) // not the sum of its days
    await counts({ orgId: makeOrg().id }, [])
    await store.events.removeSite({ orgId, siteId: 'demo', audit: makeAudit(orgId) })
    await counts({ step: 'month' }, [[0, 12]])
    const sessionIds = ['s0', 's2', 's4', 's6', 's8', 's10']
    const erased = { orgId, sessionIds, subjects: [], cursor: null }
    await store.events.erase({ ...erased, audit: makeAudit(orgId) })
    await counts({ step: 'month' }, [[0, 6]])
    await store.events.expire({ orgId, receivedBeforeMs: noon + dayMs })
    await counts({ step: 'month' }, [[0, 6]]) // retention does not lower it
  },
}
