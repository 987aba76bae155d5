/** What a reader keeps of blocks and of the index: it says the same as one that has kept nothing, whatever happens. */
import { expect, test } from 'bun:test'
import type { EventFilter } from '../../db/store.ts'
import { agrees, isSound, newestFirst, walk } from './model.ts'
import { engine, event } from './subject.ts'

test('merged, emptied and removed blocks are read anew', () => {
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

test('answers of sealed segments hold while events come, are erased, expire and the organization begins anew', () => {
  const subject = engine()
  const count = 140_000
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
  held = held.slice(
    held.length -
      subject.reader.count({ orgId: 'org_a', filter: {}, afterSeq: 0, ceilingSeq: 10 ** 9 }).count,
  )
  look()
  subject.removeOrg('org_a')
  held = []
  look()
  held = all.slice(500, 70_500)
  for (let from = 0; from < held.length; from += 2_000)
    subject.group(() => subject.append('org_a', held.slice(from, from + 2_000)))
  subject.idle()
  look()
  const metrics = subject.reader.metrics({ orgId: 'org_a', sinceMs: 0, untilMs: null, rowsMax: 10 })
  expect(metrics.total).toBe(held.length)
  subject.close()
}, 90_000)
