/** Events with equal times: a page reads as few blocks as of any other log. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { EventPosition } from '../../db/contract/store.ts'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import { noon } from '../store/make.ts'
import { newestFirst, walk } from './model.ts'
import { sessionsOf, walkSessions } from './session-model.ts'
import { engine, event } from './subject.ts'

const orgId = 'org_a'
const total = sealed + 4_464 // a sealed segment and a part of the next
const blocks = Math.ceil(total / 256)

const subject = engine({ idsPerRun: sealed * 0.6 })
const events = Array.from({ length: total }, (_, n) => ({ ...event(n, 0), sessionId: `s${n % 300}` }))
beforeAll(() => {
  for (let from = 0; from < total; from += 5_000)
    subject.group(() => subject.append(orgId, events.slice(from, from + 5_000)))
  subject.idle()
}, 60_000)
afterAll(() => subject.close())

test('a page of equal times opens only the blocks it returns, at the head and deep in the log', () => {
  const opened = (position: EventPosition | null) =>
    subject.timesRead((reader) => {
      const page = reader.page({ orgId, filter: {}, limit: 50, before: position, ceilingSeq: null })
      expect(page.events.length).toBe(50)
      expect(page.events[0]?.seq).toBe(position === null ? total : position.seq - 1)
    })
  expect(blocks).toBeGreaterThan(sealed / 256)
  for (const seq of [null, sealed + 2_464, sealed >> 1, 300])
    expect(opened(seq === null ? null : { occurredAtMs: noon, seq })).toBeLessThanOrEqual(3)
  expect(walk(subject, orgId, { outcomes: ['blocked'] }, 2_000)).toEqual(
    newestFirst(events.filter(({ outcome }) => outcome === 'blocked')),
  )
}, 60_000)

test('sessions of equal times are in order, and the first page ends its search early', () => {
  const sessions = walkSessions(subject, { orgId, filter: {}, limit: 40, eventsMax: 20 }, { pagesMax: 2 })
  expect(sessions).toEqual(sessionsOf(events, () => true, 20).slice(0, 80))
  const opened = subject.timesRead((reader) =>
    reader.sessionPage({
      orgId,
      filter: {},
      limit: 5,
      before: null,
      ceilingSeq: null,
      eventsMax: 10_000,
      budgetMs: 60_000,
    }),
  )
  // Once through the log for the sums; before, as often again to find the first sessions.
  expect(opened).toBeLessThan(blocks * 1.2)
}, 60_000)
