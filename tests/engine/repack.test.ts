/** Sealed blocks get their texts as columns: every event stays what it was, and what is erased is gone. */
import { expect, test } from 'bun:test'
import type { EventRecord, StoredEvent } from '../../db/contract/store.ts'
import type { ReaderAtOnce } from '../support/read-at-once.ts'
import { segmentEvents as sealed, seqOf } from '../../db/sql/events/blocks/block.ts'
import { columnsMark } from '../../db/sql/events/blocks/text-columns.ts'
import { makeEvent, noon } from '../store/make.ts'
import { engine, firstArrivalMs, type Engine } from './subject.ts'

const orgId = 'org_a'
const blocks = sealed / 256
const tail = 1_000
const tailBlocks = 5

function makeTraceEvent(n: number): EventRecord {
  const id = `trc_${Bun.hash.wyhash(String(n)).toString(16).padStart(16, '0')}`
  const sessionId = `s${n >> 4}`
  const subject = n % 11 === 0 ? `who "${n % 1_001}" é` : null
  const type = n % 2 === 0 ? 'tool.executed' : 'agent.detected'
  const page = `/products/${n % 50}`
  const occurredAt = new Date(noon + n * 400).toISOString()
  const metadata = { page, protocol: 'web', ...(subject === null ? {} : { subject }), n: n % 40_000 }
  const odd = n % 5_003 === 7 ? { odd: [`漢字 \u2028 ${n}`, null, { deep: n / 7 }] } : {}
  const json = { id, siteId: 'shop', sessionId, occurredAt, type, outcome: 'success', ...odd, metadata }
  return makeEvent(id, {
    sessionId,
    subject,
    type,
    page,
    siteId: 'shop',
    occurredAtMs: noon + n * 400,
    vendor: n % 3 === 0 ? 'GPTBot' : null,
    // Text that is not as JSON.stringify writes it.
    json: JSON.stringify(json, null, n % 997 === 0 ? 1 : 0),
  })
}

function fill(subject: Engine, from: number, until: number, make = makeTraceEvent): void {
  for (let first = from; first < until; first += 4_096) {
    const events = Array.from({ length: Math.min(4_096, until - first) }, (_, n) => make(first + n))
    subject.group(() => subject.append(orgId, events, first))
  }
  subject.idle()
}

const work = (subject: Engine): void => {
  while (subject.spare());
}

const isOfColumns = ({ bodies }: { bodies: Uint8Array }): boolean => bodies[0] === columnsMark
const asColumns = (subject: Engine): number => subject.bodies().filter(isOfColumns).length
const asFrames = (subject: Engine): number => subject.bodies().length - asColumns(subject)

function allEvents(reader: ReaderAtOnce): StoredEvent[] {
  const events: StoredEvent[] = []
  for (let afterSeq = 0; ;) {
    const page = reader.tail({ orgId, filter: {}, afterSeq, limit: 5_000 })
    events.push(...page.events)
    if (page.events.length === 0) return events
    afterSeq = page.events.at(-1)!.seq
  }
}

const filters = [
  {},
  { types: ['agent.detected'], vendors: ['GPTBot'] },
  { subjects: ['who "77" é'] },
  { sessionIds: ['s401'] },
]
const texts = [
  '漢字',
  'WHO "99',
  '2026-',
  'occurredAt',
  makeTraceEvent(sealed >> 1).id.slice(4, 12),
  'ucts/37',
  'S401',
]

function answers(subject: Engine): unknown[] {
  return subject.freshly((reader) => [
    ...filters.map((filter) => reader.page({ orgId, filter, limit: 200, before: null, ceilingSeq: null })),
    ...texts.map((text) =>
      reader.explore({
        orgId,
        filter: { text },
        measure: 'events',
        by: null,
        edges: [noon, noon + 40_000_000],
        rowsMax: 100,
        budgetMs: Infinity,
      }),
    ),
    ...[0, 255, 256, sealed * 0.75, sealed].map((n) => reader.byId({ orgId, id: makeTraceEvent(n).id })),
    allEvents(reader),
  ])
}

test('repacked events are what was sent, also in the middle, after a restart and a rollback', () => {
  const subject = engine()
  fill(subject, 0, sealed + tail)
  const answersBefore = answers(subject)
  const events = answersBefore.at(-1) as StoredEvent[]
  expect(events.map(({ json }) => json)).toEqual(
    Array.from({ length: sealed + tail }, (_, n) => makeTraceEvent(n).json),
  )
  const check = (): void => {
    expect(answers(subject)).toEqual(answersBefore)
    expect(subject.reader.verify().faults).toEqual([])
  }
  while (asColumns(subject) < blocks * 0.4) expect(subject.spare()).toBe(true)
  expect(asFrames(subject)).toBeGreaterThan(blocks * 0.4)
  check()
  subject.reopen()
  for (let step = 0; step < 10; step++) expect(subject.spare()).toBe(true)
  subject.undone(() => subject.append(orgId, [makeTraceEvent(500_000)]))
  work(subject)
  expect([asColumns(subject), asFrames(subject)]).toEqual([blocks, tailBlocks])
  expect(subject.bodyPlaces().length).toBeLessThan(blocks / 2 + 2)
  check()
  // A resend is known, by a frame of ids that was packed anew.
  subject.group(() => {
    const again = [0, 63, 64, sealed >> 1, sealed - 2].map(makeTraceEvent)
    expect(subject.append(orgId, [...again, makeTraceEvent(sealed + tail)])).toMatchObject({
      accepted: 1,
      deduped: 5,
    })
  })
  subject.close()
}, 180_000)

/** The events of one block have 5 KiB each. */
const isLarge = (n: number): boolean => n >> 8 === 10
const large = (n: number): EventRecord =>
  isLarge(n)
    ? makeEvent(`large ${n}`, { json: JSON.stringify({ error: `${n} `.repeat(1_024) }) })
    : makeTraceEvent(n)

test('a step replaces few blocks and none of large events, and the work ends', () => {
  const subject = engine()
  fill(subject, 0, sealed + tail, large)
  while (subject.tables('event_org WHERE shredded = 0') === 1) subject.spare()
  const counts = [0]
  while (subject.spare()) counts.push(asColumns(subject))
  const steps = counts.slice(1).map((count, step) => count - counts[step]!)
  expect(Math.max(...steps)).toBeWithin(2, 7)
  expect(counts.at(-1)).toBe(blocks - 1)
  expect([subject.spare(), subject.tables('event_org WHERE repacked = 1')]).toEqual([false, 1])
  subject.idle()
  expect(subject.spare()).toBe(false)
  subject.close()
}, 180_000)

test('an erased event of a repacked segment is gone from its block, which is then repacked', () => {
  const subject = engine()
  fill(subject, 0, sealed + tail)
  work(subject)
  const isErased = (n: number) => makeTraceEvent(n).subject === 'who "77" é'
  const erased = Array.from({ length: sealed + tail }, (_, n) => n).filter(isErased)
  expect(erased.length).toBeGreaterThan(sealed / 1_100)
  expect(subject.erase(orgId, [], ['who "77" é'])).toBe(erased.length)
  const isGone = (): void => {
    const stored = subject.texts().join('\n')
    for (const n of erased) expect(stored.includes(makeTraceEvent(n).id)).toBe(false)
    expect(stored.includes('who \\"77\\"')).toBe(false)
  }
  isGone()
  const remainingTexts = subject.freshly(allEvents).map(({ json }) => json)
  expect(remainingTexts.length).toBe(sealed + tail - erased.length)
  work(subject)
  expect(asFrames(subject)).toBe(tailBlocks)
  isGone()
  expect(subject.freshly(allEvents).map(({ json }) => json)).toEqual(remainingTexts)
  expect(subject.reader.verify().faults).toEqual([])
  // A resend of an erased event is still known.
  subject.group(() =>
    expect(subject.append(orgId, erased.slice(0, 3).map(makeTraceEvent))).toMatchObject({ deduped: 3 }),
  )
  subject.removeSite(orgId, 'shop')
  expect(subject.texts().join('').includes('"metadata":')).toBe(false)
  subject.close()
}, 180_000)

test('retention, and work that begins behind what it deleted', () => {
  const subject = engine()
  fill(subject, 0, 2 * sealed + tail)
  expect(subject.expire(orgId, sealed * 1.5)).toBeGreaterThan(sealed)
  work(subject)
  expect(asFrames(subject)).toBe(tailBlocks)
  expect(subject.tables('event_org WHERE repacked = 2')).toBe(1)
  expect(subject.reader.verify().faults).toEqual([])
  const [first] = subject.freshly(allEvents)
  expect(first!.json).toBe(makeTraceEvent(first!.seq - 1).json)
  expect(first!.receivedAtMs).toBeGreaterThan(firstArrivalMs + sealed)
  subject.close()
}, 180_000)

interface Damage {
  column: 'bodies' | 'ids'
  where: string
  byte: number // which is replaced, from 1
}

function damage(list: Damage[]): string {
  const changed = (name: string) =>
    list
      .filter(({ column }) => column === name)
      .map(({ where: condition, byte }) => {
        const parts = `substr(${name}, 1, ${byte - 1}) || x'ff' || substr(${name}, ${byte + 1})`
        return ` WHEN ${condition} THEN CAST(${parts} AS BLOB)`
      })
      .join('')
  const sets = [...new Set(list.map(({ column }) => column))].map(
    (name) => `${name} = CASE${changed(name)} ELSE ${name} END`,
  )
  return `UPDATE event_body SET ${sets.join()} WHERE ${list.map(({ where: condition }) => condition).join(' OR ')}`
}

test('a damaged block stays as it is, and verify names it before and after', () => {
  const subject = engine()
  fill(subject, 0, sealed + tail)
  const faults = (places: Damage[]): string[] => {
    let eventFaults: string[] = []
    subject.damaged(damage(places), (reader) => {
      eventFaults = reader.verify().faults.map(({ place }) => place)
    })
    return eventFaults
  }
  const damages: Damage[] = [
    { column: 'bodies', where: `place % ${sealed} = 513`, byte: 901 },
    { column: 'ids', where: `place % ${sealed} = 257`, byte: 901 },
  ]
  expect(faults(damages)).toEqual(expect.arrayContaining(['arrivals 257 to 512', 'arrivals 513 to 768']))
  subject.sql(damage(damages.slice(1)))
  work(subject)
  expect([asColumns(subject), asFrames(subject)]).toEqual([blocks - 1, tailBlocks + 1])
  expect(subject.reader.verify().faults.map(({ place }) => place)).toContain('arrivals 257 to 512')
  // Several blocks have one row now. Damage to one of them is that of one block, and damage to the row's head of all.
  const rows = subject
    .bodyPlaces()
    .map((place, index, places) => ({ place, blocks: ((places[index + 1] ?? 0) - place) >> 8 }))
    .filter(({ place, blocks: blockCount }) => seqOf(place) > sealed / 2 && blockCount > 1)
    .slice(0, 4)
  expect(rows).toHaveLength(4)
  const columns = ['bodies', 'ids', 'bodies', 'ids'] as const
  const faultNames = faults(
    rows.map(({ place }, index) => ({
      column: columns[index]!,
      where: `place = ${place}`,
      byte: index < 2 ? 901 : 7,
    })),
  )
  for (const [index, row] of rows.entries()) {
    const firsts = Array.from({ length: row.blocks }, (_, block) => seqOf(row.place) + block * 256)
    const names = firsts.map((first) => `arrivals ${first} to ${first + 255}`)
    const foundCount = faultNames.filter((name) => names.includes(name)).length
    expect([index, foundCount]).toEqual([index, index < 2 ? 1 : row.blocks])
  }
  subject.close()
}, 180_000)
