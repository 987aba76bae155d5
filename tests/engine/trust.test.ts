/** The trust that sessions reached, against a model: blocks, merges, sealed segments and deletions. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { EventRecord } from '../../db/contract/store.ts'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import { noon } from '../store/make.ts'
import { trustModel } from '../support/trust-model.ts'
import { cramped, engine, event, type Engine } from './subject.ts'
import { runs } from '../support/runs.ts'

const orgId = 'org_a'
const hourMs = 3_600_000
const ladder = ['detected', 'declared', 'verified', 'linked']

interface Asked {
  sinceMs: number
  untilMs: number
  siteIds?: string[]
}

const expected = (events: EventRecord[], { sinceMs, untilMs, siteIds = [] }: Asked) => {
  const [since, until] = [sinceMs, untilMs].map((ms) => new Date(ms).toISOString()) as [string, string]
  const trustEvents = events.map(({ occurredAtMs: atMs, ...fields }) => ({ ...fields, atMs }))
  return trustModel(trustEvents, { since, until, siteIds })
}

const madeEvents = fc.record({
  sessionId: fc.constantFrom('a', 'b', 'c', 'ü "quoted"', 'e'),
  siteId: fc.constantFrom('shop', 'blog'),
  type: fc.constantFrom('agent.detected', 'auth.identity_presented', 'tool.executed'),
  trust: fc.constantFrom(null, 'own word', ...ladder),
  hours: fc.integer({ min: -60, max: 60 }),
})

test('any events, in any batches, with an erasure in between: the counts equal the model', async () => {
  const groups = fc.array(fc.array(madeEvents, { minLength: 1, maxLength: 9 }), {
    minLength: 1,
    maxLength: 12,
  })
  const range = fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 48 }))
  await fc.assert(
    fc.asyncProperty(
      groups,
      range,
      fc.constantFrom<string[] | undefined>(undefined, ['shop']),
      async (eventGroups, [from, hours], siteIds) => {
        const subject = engine(cramped)
        let n = 0
        const sentEvents = eventGroups.map((group) =>
          group.map(({ hours: hour, ...fields }) => ({ ...event(n++, hour * hourMs), ...fields })),
        )
        for (const group of sentEvents) subject.group(() => subject.append(orgId, group))
        const sinceMs = noon + from * hourMs
        const query = { sinceMs, untilMs: sinceMs + hours * hourMs, ...(siteIds && { siteIds }) }
        const ask = () =>
          subject.reader.trustReached({ orgId, ...query, types: ['agent.detected'], deadlineMs: 60_000 })
        expect(await ask()).toEqual({ rows: expected(sentEvents.flat(), query), complete: true })
        subject.erase(orgId, ['b'], [])
        const remainingEvents = sentEvents.flat().filter(({ sessionId }) => sessionId !== 'b')
        expect(await ask()).toEqual({ rows: expected(remainingEvents, query), complete: true })
        subject.close()
      },
    ),
    { numRuns: runs(25) },
  )
}, 60_000)

test('over a sealed segment and after it, in slices; without time it gives up', async () => {
  const subject = engine({ idsPerRun: sealed * 0.6 })
  const events = Array.from({ length: sealed + 4_464 }, (_, n): EventRecord => ({
    ...event(n, n * 100),
    sessionId: `s${n % 9_000}`,
    type: n % 3 === 0 ? 'agent.detected' : 'tool.executed',
    trust: n % 50 === 1 ? 'verified' : n % 7 === 0 ? null : 'detected',
  }))
  for (let from = 0; from < events.length; from += 5_000)
    subject.group(() => subject.append(orgId, events.slice(from, from + 5_000)))
  const range = { sinceMs: noon, untilMs: noon + 5_000_000 }
  const query = { orgId, ...range, types: ['agent.detected'] }
  const trust = await subject.reader.trustReached({ ...query, deadlineMs: 60_000 })
  expect(trust).toEqual({ rows: expected(events, range), complete: true })
  expect(await subject.reader.trustReached({ ...query, deadlineMs: -1 })).toBeNull()
  expect(await subject.reader.trustReached({ ...query, orgId: 'org_none', deadlineMs: 1_000 })).toEqual({
    rows: [],
    complete: true,
  })
  subject.close()
}, 60_000)

/** What segments keep of the sample answers as their blocks do, without opening them, until an event is erased. */
function expectKept(subject: Engine, ask: (reader: Engine['reader']) => unknown): void {
  const fromBlocks = subject.freshly(ask)
  const opened = () => subject.timesRead((reader) => void ask(reader))
  const openedCount = opened()
  while (subject.spare());
  expect(subject.freshly(ask)).toEqual(fromBlocks)
  const remainingOpens = opened()
  expect(remainingOpens).toBeLessThan(openedCount / 3)
  expect(subject.reader.verify().faults).toEqual([])
  expect(subject.erase(orgId, ['s7', 's8'], [])).toBe(4)
  const erased = subject.freshly(ask)
  expect(opened()).toBeGreaterThan(remainingOpens + sealed / 328)
  while (subject.spare());
  expect(subject.freshly(ask)).toEqual(erased)
  expect(opened()).toBe(remainingOpens)
}

test('of many sessions a sample is read, each with all of its events, and its shares are right', () => {
  const subject = engine({ idsPerRun: 200_000 })
  const sessions = 45_000
  const minuteMs = 60_000
  // Each session has two events, a second apart: a detection, and in every fourth a verified identity before it.
  for (let from = 0; from < sessions; from += 5_000)
    subject.group(() =>
      subject.append(
        orgId,
        Array.from({ length: 10_000 }, (_, index): EventRecord => {
          const n = from + (index >> 1)
          const isSecond = index % 2 === 1
          return {
            ...event(
              2 * n + (index % 2),
              Math.floor((n / sessions) * 60 * minuteMs) + (isSecond ? 1_000 : 0),
            ),
            sessionId: `s${n}`,
            type: isSecond ? 'agent.detected' : 'auth.identity_presented',
            trust: isSecond ? 'detected' : n % 4 === 0 ? 'verified' : null,
          }
        }),
      ),
    )
  subject.idle()
  const query = { orgId, sinceMs: noon, untilMs: noon + 120 * minuteMs, types: ['agent.detected'] }
  const { rows, complete } = subject.reader.trustReached({ ...query, deadlineMs: 60_000 })!
  expect(complete).toBe(false)
  expect(rows.map(({ trust }) => trust)).toEqual(['verified', 'detected'])
  // Two sessions of the sample may have the same hash.
  for (const { events, sessions: sessionCount } of rows) expect(events - sessionCount).toBeWithin(0, 9)
  const sampled = rows.reduce((sum, row) => sum + row.sessions, 0)
  expect(sampled).toBeWithin(sessions / 18, sessions / 14.5)
  const error = Math.sqrt((0.25 * 0.75) / sampled)
  expect(Math.abs(rows[0]!.sessions / sampled - 0.25)).toBeLessThan(6 * error)
  // A filter counts all: it may match few.
  const sessionTrust = subject.reader.trustReached({
    ...query,
    filter: { sessionIds: ['s8'] },
    deadlineMs: 60_000,
  })
  expect(sessionTrust).toEqual({ rows: [{ trust: 'verified', events: 1, sessions: 1 }], complete: true })
  expectKept(subject, (reader) => reader.trustReached({ ...query, deadlineMs: 60_000 }))
  expect(subject.reader.trustReached({ ...query, deadlineMs: -1 })).toBeNull()
  subject.close()
}, 60_000)
