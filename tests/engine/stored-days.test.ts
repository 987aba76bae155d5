/** Stored sums of days: the same answers as from the hours, whatever changes a day, and verified with the rest. */
import { expect, test } from 'bun:test'
import type { EventRecord } from '../../db/contract/store.ts'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import type { ReaderAtOnce } from '../support/read-at-once.ts'
import { makeEvent, noon } from '../store/make.ts'
import { engine, type Engine } from './subject.ts'

const orgId = 'org_a'
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const days = 14

/** Enough values in each day that its fields are stored, and outcomes and sites that queries choose among. */
function makeDayEvent(n: number): EventRecord {
  const occurredAtMs = noon + Math.floor((n / sealed) * days * dayMs)
  return makeEvent(`e${n}`, {
    sessionId: `s${n >> 1}`,
    subject: n % 3 === 0 ? `who ${n % 4_001}` : null,
    occurredAtMs,
    siteId: n % 7 === 0 ? 'blog' : 'shop',
    type: n % 2 === 0 ? 'tool.executed' : 'agent.detected',
    outcome: n % 5 === 0 ? 'error' : 'success',
    vendor: `vendor ${n % 61}`,
    class: `class ${n % 3}`,
    tool: n % 2 === 0 ? `tool ${n % 53}` : null,
    json: '{}',
  })
}

function fill(subject: Engine, from: number, until: number): void {
  for (let first = from; first < until; first += 4_096)
    subject.group(() => {
      const count = Math.min(4_096, until - first)
      subject.append(
        orgId,
        Array.from({ length: count }, (_, n) => makeDayEvent(first + n)),
        first,
      )
    })
  subject.idle()
}

const work = (subject: Engine): void => {
  while (subject.spare());
}

/** As if another segment was sealed. */
function sumAgain(subject: Engine): void {
  subject.sql('UPDATE event_org SET summed = 0')
  subject.reopen()
  work(subject)
}

const range = { orgId, sinceMs: noon - 2 * dayMs, untilMs: noon + (days + 2) * dayMs }

function answers(reader: ReaderAtOnce): unknown[] {
  const types = ['tool.executed']
  return [
    ...(['vendor', 'tool', 'class'] as const).flatMap((field) => [
      reader.breakdown({ ...range, by: field, stepMs: null }),
      reader.breakdown({ ...range, by: field, stepMs: dayMs, types, siteIds: ['shop'] }),
    ]),
    reader.breakdown({ ...range, by: 'vendor', stepMs: 6 * hourMs }),
    reader.agents(range),
    reader.classVendor(range),
    reader.classVendor({ ...range, sinceMs: noon + 5 * hourMs, types }),
    ...(['session', 'subject'] as const).flatMap((field) => [
      reader.distinct({ ...range, of: field, step: 'day' }),
      reader.distinct({ ...range, of: field, step: 'month', siteIds: ['blog'] }),
    ]),
  ]
}

const rows = (subject: Engine): number => subject.tables('rollup_day WHERE length(sums) > 0')!

/** A new reader answers from the stored days what it answers from the hours. */
function agrees(subject: Engine): void {
  let fromHours: unknown[] = []
  subject.damaged('DELETE FROM rollup_day', (reader) => void (fromHours = answers(reader)))
  expect(subject.freshly(answers)).toEqual(fromHours)
}

/** Answers come from the stored sums. */
function expectRead(subject: Engine): void {
  // Whole days come from the stored sums, so few rows of hours are read.
  expect(subject.reads(() => answers(subject.reader)).rows).toBeLessThan(subject.tables('rollup_value')! / 2)
  // The first day, the newest, which has no sums, and the end are sought among the rows of hours; the others are not.
  const ofDays = { ...range, of: 'session', step: 'day' } as const
  expect(subject.timesRead((reader) => reader.distinct(ofDays), 'days')).toBe(3)
}

/** Verify names a stored day that differs from its hours. */
function expectLocated(subject: Engine): void {
  const first = 'WHERE (member, day) = (SELECT member, min(day) FROM rollup_day WHERE length(sums) > 0)'
  for (const sql of [
    `UPDATE rollup_day SET sums = (SELECT sums FROM rollup_day WHERE member = 33 ORDER BY day DESC LIMIT 1) ${first}`,
    `UPDATE rollup_day SET sums = x'28b52ffd' ${first}`,
    `UPDATE rollup_day SET sums = x'' ${first}`,
    'UPDATE rollup_day SET day = day + 24 * 100 WHERE member = 36 AND day % 5 = 1',
    'INSERT INTO rollup_day (org, member, day, sums) VALUES (1, 60, 24, zeroblob(9))',
  ])
    subject.damaged(sql, (reader) => {
      const [fault] = reader.verify().faults
      expect([sql, fault?.place, fault?.problem]).toEqual([
        sql,
        expect.stringMatching(/^the sums by .+ of the day from \d{4}-/),
        'differ from its hours',
      ])
    })
}

/** After an upgrade all days are missing: some are made, and the others after a pause, here after a start. */
function expectMadeWithPauses(subject: Engine): void {
  const isDone = () => subject.tables('event_org WHERE summed = 0') === 0
  const old = Array.from({ length: 200 }, (_, n) => {
    return { ...makeDayEvent(n), id: `old ${n}`, occurredAtMs: noon - n * dayMs }
  })
  subject.group(() => subject.append(orgId, old, sealed + 60))
  subject.idle()
  sumAgain(subject)
  expect([subject.tables('rollup_day')! < 700, isDone()]).toEqual([true, false])
  for (let start = 0; start < 2; start++) {
    subject.reopen()
    work(subject)
  }
  expect([subject.tables('rollup_day')! > 1_000, isDone()]).toEqual([true, true])
  agrees(subject)
}

test('answers stay the same when a day changes, and a day that changed is summed again', () => {
  const subject = engine()
  fill(subject, 0, sealed + 10)
  const answersBefore = subject.freshly(answers)
  work(subject)
  const rowCount = rows(subject)
  expect(rowCount).toBeGreaterThan(days * 3)
  expect(subject.freshly(answers)).toEqual(answersBefore)
  expectRead(subject)
  const ofDay = (day: number) => subject.tables(`rollup_day WHERE day = ${noon / hourMs - 12 + day * 24}`)!
  expect(ofDay(4)).toBeGreaterThan(3)
  expectLocated(subject)

  const atMs = noon + 4.02 * dayMs
  const late = Array.from({ length: 50 }, (_, n) => ({
    ...makeDayEvent(n * 997),
    id: `late ${n}`,
    occurredAtMs: atMs,
  }))
  subject.group(() => subject.append(orgId, late, sealed + 10))
  agrees(subject) // not folded yet
  subject.idle()
  expect(ofDay(4)).toBe(0)
  agrees(subject)
  subject.undone(() => subject.append(orgId, [{ ...makeDayEvent(1), id: 'undone' }]))
  subject.erase(orgId, [], ['who 9'])
  agrees(subject)
  subject.expire(orgId, sealed * 0.3)
  agrees(subject)
  const [first, last] = [9, 12].map((day) => noon / hourMs + day * 24)
  subject.sql(
    `UPDATE rollup_value SET live = live + 3 WHERE member = 5 AND hour >= ${first} AND hour < ${last}`,
  )
  for (let hour = 0; hour < days * 24; hour++) {
    const repairs = subject.reader.recount({ orgId, hourStartMs: noon + hour * hourMs })
    if (repairs.length > 0) subject.repair(orgId, repairs)
  }
  agrees(subject)
  expect(subject.reader.verify().faults).toEqual([])

  expect(rows(subject)).toBeLessThan(rowCount)
  sumAgain(subject)
  expect(ofDay(4)).toBeGreaterThan(3)
  agrees(subject)
  subject.expire(orgId, sealed + 10)
  sumAgain(subject)
  subject.dropRollupSteps(orgId, noon + 3 * dayMs)
  expect([ofDay(2), rows(subject) > 9]).toEqual([0, true])
  agrees(subject)
  expect(subject.reader.verify().faults).toEqual([])
  subject.removeSite(orgId, 'blog')
  agrees(subject)
  expectMadeWithPauses(subject)
  subject.removeOrg(orgId)
  expect(subject.tables('rollup_day')).toBe(0)
  work(subject)
  subject.close()
}, 120_000)
