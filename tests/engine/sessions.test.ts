/** Sessions among many and long ones, in a sealed segment and after it, with and without its filters. */
import { expect, test } from 'bun:test'
import type { EventRecord } from '../../db/contract/store.ts'
import { segmentEvents } from '../../db/sql/events/blocks/block.ts'
import { isSound } from './model.ts'
import { sessionsOf, walkSessions } from './session-model.ts'
import { engine, event } from './subject.ts'

const orgId = 'org_a'
const total = segmentEvents + 4_464 // a sealed segment and a part of the next
const week = 7 * 86_400_000

/** Forty short sessions at a time, one that is always active, one that returns after a long time. */
function make(n: number): EventRecord {
  const short = `short ${Math.floor(n / 800)} ${n % 40}`
  const sessionId =
    n % (segmentEvents >> 7) === 3
      ? 'always'
      : n < 5 || (n > total - 300 && n % 100 === 0)
        ? 'returning'
        : short
  return { ...event(n, n * 100 - (n % 977 === 0 ? week : 0)), sessionId }
}

function filled() {
  const subject = engine({ idsPerRun: segmentEvents * 0.6 })
  const events = Array.from({ length: total }, (_, n) => make(n))
  for (let from = 0; from < total; from += 5_000)
    subject.group(() => subject.append(orgId, events.slice(from, from + 5_000)))
  return { subject, events }
}

test('pages of many sessions equal the model, whichever segments have a filter', () => {
  const { subject, events } = filled()
  const firstPages = (eventsMax: number) =>
    walkSessions(subject, { orgId, filter: {}, limit: 50, eventsMax }, { pagesMax: 3 })
  const expected = sessionsOf(events, () => true, 100)
  const postingCount = () => subject.tables('event_posting_filter')
  expect(firstPages(100)).toEqual(expected.slice(0, 150))
  expect(expected.some(({ id, isCut }) => id === 'always' && isCut)).toBe(true)
  subject.idle()
  const sealed = postingCount()
  expect(sealed).toBe(2) // sessions and subjects
  expect(firstPages(100)).toEqual(expected.slice(0, 150))

  // As an earlier schema left it: without filters the index is read, and the idle writer makes them.
  subject.sql('DELETE FROM event_posting_filter WHERE member = 3')
  expect(firstPages(100)).toEqual(expected.slice(0, 150))
  subject.reopen()
  subject.idle()
  expect(postingCount()).toBe(sealed)
  subject.sql('DELETE FROM event_posting_filter')
  subject.reopen()
  for (let n = 0; n < 40; n++) subject.group(() => subject.append(orgId, [make(n)])) // resends, one commit each
  expect(postingCount()).toBe(sealed)
  expect(firstPages(100)).toEqual(expected.slice(0, 150))
  isSound(subject)

  const subjectId = `who ${9 * (segmentEvents >> 4)}`
  const rare = (record: EventRecord) => record.subject === subjectId
  const sessions = walkSessions(subject, {
    orgId,
    filter: { subjects: [subjectId] },
    limit: 9,
    eventsMax: 50,
  })
  expect(sessions).toEqual(sessionsOf(events, rare, 50))
  subject.close()
}, 90_000)

test('with a budget of zero, short pages still return every session once', () => {
  const subject = engine()
  const events = Array.from({ length: 600 }, (_, n) => ({
    ...event(n, n * 10),
    sessionId: `s${(n * 7) % 61}`,
  }))
  subject.group(() => subject.append(orgId, events))
  const query = { orgId, filter: {}, limit: 10, eventsMax: 100 }
  expect(walkSessions(subject, query, { budgetMs: 0 })).toEqual(sessionsOf(events, () => true, 100))
  subject.close()
}, 90_000)

test('class, vendor and trust beyond the dictionary are told apart by their texts', () => {
  const subject = engine()
  const events = Array.from({ length: 6_000 }, (_, n) => ({
    ...event(n, n * 10),
    sessionId: `s${n % 50}`,
    class: `class ${n}`,
    vendor: `vendor ${n}`,
    trust: n > 4_500 && n % 13 === 0 ? ['declared', 'verified', 'linked'][n % 3]! : `trust ${n}`,
  }))
  for (let from = 0; from < events.length; from += 1_000)
    subject.group(() => subject.append(orgId, events.slice(from, from + 1_000)))
  for (const eventsMax of [1_000, 30]) {
    const sessions = walkSessions(subject, { orgId, filter: {}, limit: 20, eventsMax })
    expect(sessions).toEqual(sessionsOf(events, () => true, eventsMax))
    expect(sessions.every(({ trust }) => ['declared', 'verified', 'linked'].includes(trust ?? ''))).toBe(true)
  }
  subject.close()
}, 90_000)
