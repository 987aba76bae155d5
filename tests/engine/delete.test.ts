/** Retention, erasure and removal of an organization: what is deleted, what stays, what dedupe still knows. */
import { expect, test } from 'bun:test'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import { agrees, isSound } from './model.ts'
import { engine, event } from './subject.ts'

test('retention deletes segments and id runs, and an older id is new again', () => {
  const subject = engine({ idsPerRun: 4_000 })
  const old = Math.ceil((sealed + 1) / 4_000) * 4_000
  const count = old + 8_000
  const events = Array.from({ length: count }, (_, n) => event(n, n * 10))
  for (let from = 0; from < events.length; from += 4_000) {
    subject.group(() => subject.append('org_a', events.slice(from, from + 4_000), from))
  }
  subject.idle()
  const went = subject.expire('org_a', old)
  expect(went).toBeGreaterThan(old - 256)
  expect(went).toBeLessThanOrEqual(old)
  expect(subject.tables('event_segment')).toBe(0)
  expect(subject.tables('event_posting')).toBe(0)
  expect(subject.tables('event_posting_rest')).toBe(0)
  expect(subject.tables('event_id_filter')).toBeWithin(1, 5)
  subject.group(() => {
    expect(subject.append('org_a', events.slice(10, 20), count).accepted).toBe(10)
    expect(subject.append('org_a', events.slice(count - 6_000, count - 5_990), count).deduped).toBe(10)
  })
  agrees(subject, 'org_a', [...events.slice(went), ...events.slice(10, 20)], events.slice(0, went))
  subject.reopen()
  subject.group(() =>
    expect(subject.append('org_a', events.slice(15, 25), count)).toMatchObject({ accepted: 5, deduped: 5 }),
  )
  isSound(subject)
  expect(subject.expire('org_a', 10 ** 9)).toBe(count - went + 15)
  expect(subject.reader.lastSeq('org_a')).toBe(count + 15)
  subject.reopen()
  subject.group(() => expect(subject.append('org_a', events.slice(0, 5)).accepted).toBe(5))
  expect(subject.reader.lastSeq('org_a')).toBe(count + 20)
  isSound(subject)
  subject.close()
}, 90_000)

test('retention deletes a merged group of id runs with the last of its events', () => {
  const subject = engine({ idsPerRun: 100, deleteStep: { blocksMax: 1, rollupRowsMax: 1_000 } })
  const events = Array.from({ length: 16_800 }, (_, n) => event(n, n * 10))
  for (let from = 0; from < events.length; from += 120)
    subject.group(() => subject.append('org_a', events.slice(from, from + 120), from))
  const ofGroup = ['event_id_group WHERE first_run = 0', 'event_id_chunk WHERE chunk < 32768']
  const rows = () => [...ofGroup, 'event_id_filter WHERE run < 32'].map((table) => subject.tables(table))
  expect(rows()).toEqual([1, 32_768, 32])
  let went = subject.expire('org_a', 2_000)
  expect(rows()).toEqual([1, 32_768, 32])
  agrees(subject, 'org_a', events.slice(went), events.slice(0, went))
  subject.reopen()
  went += subject.expire('org_a', 14_000)
  expect(rows()).toEqual([0, 0, 0])
  subject.group(() => {
    expect(subject.append('org_a', events.slice(10, 20), 17_000).accepted).toBe(10)
    expect(subject.append('org_a', events.slice(went, went + 10), 17_000).deduped).toBe(10)
  })
  agrees(subject, 'org_a', [...events.slice(went), ...events.slice(10, 20)], events.slice(0, went))
  subject.reopen()
  isSound(subject)
  subject.close()
}, 90_000)

test('a step takes few events when each of them has rollup rows of its own', () => {
  const subject = engine()
  const hourMs = 3_600_000
  const events = Array.from({ length: 4_000 }, (_, n) => ({ ...event(n, n * hourMs), subject: 'somebody' }))
  for (const orgId of ['org_a', 'org_b']) {
    for (let from = 0; from < events.length; from += 1_000) {
      subject.group(() => subject.append(orgId, events.slice(from, from + 1_000)))
    }
  }
  subject.idle()
  const rowsPerEvent = subject.tables('rollup_value')! / 8_000
  expect(rowsPerEvent).toBeGreaterThan(5)
  const erased = { orgId: 'org_b', sessionIds: [], subjects: ['somebody'] }
  for (const steps of [subject.expireSteps('org_a'), subject.eraseSteps(erased)]) {
    expect(steps.reduce((sum, count) => sum + count, 0)).toBe(4_000)
    // 4,096 rows, and those of the last block.
    expect((Math.max(...steps) - 256) * rowsPerEvent).toBeLessThan(4_096)
  }
  isSound(subject)
  subject.close()
}, 90_000)

test('an erasure ends at the events stored when it began, however many more arrive', () => {
  const subject = engine({ deleteStep: { blocksMax: 2, rollupRowsMax: 1_000 } })
  const events = Array.from({ length: 20_000 }, (_, n) => ({ ...event(n, n), subject: 'somebody' }))
  subject.group(() => subject.append('org_a', events.slice(0, 2_000)))
  let next = 2_000
  const steps = subject.eraseSteps({ orgId: 'org_a', sessionIds: [], subjects: ['somebody'] }, () => {
    subject.group(() => subject.append('org_a', events.slice(next, next + 1_000)))
    next += 1_000
    if (next > events.length) throw new Error('it follows what comes')
  })
  expect(steps.length).toBeGreaterThan(3)
  const erased = steps.reduce((sum, count) => sum + count, 0)
  expect(erased).toBeGreaterThanOrEqual(2_000)
  expect(erased).toBeLessThan(2_000 + 256) // the block that was being filled is deleted whole
  agrees(subject, 'org_a', events.slice(erased, next))
  isSound(subject)
  subject.close()
}, 90_000)

test('rollups are dropped in steps, whether an hour has many rows or each has few', () => {
  const subject = engine()
  const hourMs = 3_600_000
  const manyEvents = Array.from({ length: 15_000 }, (_, n) => ({
    ...event(n, n % 3 === 0 ? 0 : n * hourMs),
    page: `/page/${n % 3_000}`,
  }))
  for (let from = 0; from < manyEvents.length; from += 1_000)
    subject.group(() => subject.append('org_a', manyEvents.slice(from, from + 1_000)))
  expect(subject.expire('org_a', Infinity)).toBe(manyEvents.length)
  const rows = () => subject.tables('rollup_metric')! + subject.tables('rollup_value')!
  const rowsBefore = rows()
  const steps = subject.dropRollupSteps('org_a', Number.MAX_SAFE_INTEGER)
  expect(steps.reduce((sum, count) => sum + count, 0)).toBe(rowsBefore)
  expect(rows()).toBe(0)
  expect(subject.tables('event_type_total')).toBe(0)
  expect(Math.max(...steps)).toBeLessThanOrEqual(3 * 4_096)
  isSound(subject)
  subject.close()
}, 90_000)

test('no row of a removed organization is left, and another organization is unchanged', () => {
  const subject = engine({ idsPerRun: 2_500 })
  const events = Array.from({ length: 6_000 }, (_, n) => ({ ...event(n, n), vendor: `vendor ${n % 9}` }))
  subject.group(() =>
    subject.append(
      'org_b',
      events.slice(0, 3_500).map((_, n) => event(n, n)),
    ),
  )
  subject.group(() => subject.append('org_a', events))
  subject.idle()
  subject.removeOrg('org_a')
  subject.reopen()
  agrees(subject, 'org_a', [])
  agrees(
    subject,
    'org_b',
    events.slice(0, 3_500).map((_, n) => event(n, n)),
  )
  isSound(subject)
  for (const table of ['event_term', 'rollup_value', 'event_posting', 'event_id_run']) {
    expect([table, subject.tables(`${table} WHERE org = 2`)]).toEqual([table, 0])
  }
  subject.group(() => expect(subject.append('org_a', events).accepted).toBe(6_000))
  isSound(subject)
  subject.close()
}, 90_000)

test('an erased subject is in no table, and a resend of its events counts as deduped', () => {
  const subject = engine({ idsPerRun: 1_500 })
  const subjectId = 'somebody-to-forget'
  const events = Array.from({ length: 4_000 }, (_, n) => {
    const isTheirs = n % 100 === 7
    const fields = {
      ...event(n, n),
      id: isTheirs ? `${subjectId}-${n}` : `evt_${n}`,
      subject: isTheirs ? subjectId : null,
    }
    return { ...fields, json: JSON.stringify({ id: fields.id, by: fields.subject }) }
  })
  const subjectEvents = events.filter((record) => record.subject === subjectId)
  const remainingEvents = events.filter((record) => record.subject !== subjectId)
  subject.group(() => subject.append('org_a', events.slice(0, 3_000)))
  subject.idle()
  subject.group(() => subject.append('org_a', events.slice(3_000)))
  expect(subject.texts().filter((text) => text.includes(subjectId)).length).toBeGreaterThan(0)
  expect(subject.erase('org_a', [], [subjectId])).toBe(subjectEvents.length)
  expect(subject.erase('org_a', [], [subjectId])).toBe(0)
  expect(subject.texts().filter((text) => text.includes(subjectId))).toEqual([])
  agrees(subject, 'org_a', remainingEvents)
  isSound(subject)
  for (let start = 0; start < 2; start++) {
    subject.group(() => expect(subject.append('org_a', subjectEvents).deduped).toBe(subjectEvents.length))
    subject.reopen()
  }
  agrees(subject, 'org_a', remainingEvents)
  subject.close()
}, 90_000)
