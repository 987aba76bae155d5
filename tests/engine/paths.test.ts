/** Path columns: Explore answers from them what it answers from the texts, and no value outlasts its event. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Explored, ExploreQuery } from '../../db/contract/explore.ts'
import type { EventRecord, Series, SeriesQuery } from '../../db/contract/store.ts'
import { segmentEvents as sealed } from '../../db/sql/events/blocks/block.ts'
import { memberText } from '../../db/sql/events/read/explore/metadata.ts'
import { exploredEvent, memberText as valueOf, paths, recordOf } from '../store/explore-cases.ts'
import { makeEvent, noon } from '../store/make.ts'
import { isFull, runs } from '../support/runs.ts'
import { engine, type Engine } from './subject.ts'

const orgId = 'org_a'
const hourMs = 3_600_000
const eachMs = (400 * 65_536) / sealed
/** Steps that leave the columns of a segment unfinished. */
const partly = Math.min(5, sealed / 4_096)
const longText = 'x'.repeat(300)
/** An eighth of the events of a segment has it, more than a column has room for. */
const tooMany = '.'.repeat(5_000_000 / sealed)

/** Metadata of every shape, some of which no column can hold. */
const shapes: ((n: number) => unknown)[] = [
  (n) => ({ plan: ['pro', 'free', '', null, 7, 7.5, true][n % 7], cart: { items: n % 6, 'a.b': n % 2 } }),
  (n) => ({ plan: `plan "${n % 5}" ü\\`, cart: [n % 3], tokens: n % 9, bytes: n % 300 }),
  (n) => ({
    'cart.items': n % 4,
    tokens: { input: n % 3, output: 1 },
    plan: n % 97 === 0 ? longText : 'short',
  }),
  // A member named "twice.b" and a member "b" of "twice": the first one counts.
  (n) => (n % 1_003 === 0 ? { 'twice.b': 'whole', twice: { b: 'below' } } : { twice: { b: n % 3 } }),
  (n) => ({
    unique: `${n} ${tooMany}`,
    [`name ${n % 4_000}`]: 1,
  }),
  () => null,
  (n) => ({ deep: { a: { b: { c: { d: { e: n % 3 } } } } }, '': n, empty: {} }),
  () => undefined,
]

function makeRecord(n: number): EventRecord {
  const id = `e${n}`
  const sessionId = `s${n >> 4}`
  // The id is cut out of the text of the metadata when it comes first there.
  const metadata = n % 50 === 3 ? { plan: { id }, id } : shapes[n % shapes.length]!(n)
  const fields = {
    siteId: 'shop',
    type: n % 2 === 0 ? 'tool.executed' : 'agent.detected',
    outcome: 'success',
  }
  const decoy = { agent: { metadata: { plan: 'decoy' } }, error: '"metadata":{"plan":"fake"}' }
  const whole =
    n % 3 === 0
      ? { metadata, id, sessionId, ...fields, ...decoy }
      : { ...decoy, id, sessionId, ...fields, metadata }
  return makeEvent(id, {
    sessionId,
    ...fields,
    vendor: n % 5 === 0 ? 'GPTBot' : null,
    subject: n % 11 === 0 ? 'ada' : null,
    name: n % 7 === 0 ? 'Bot-1' : null,
    occurredAtMs: noon + n * eachMs,
    json: JSON.stringify(whole),
  })
}

function fill(subject: Engine, from: number, until: number): void {
  for (let first = from; first < until; first += 3_000) {
    const count = Math.min(3_000, until - first)
    const events = Array.from({ length: count }, (_, n) => makeRecord(first + n))
    subject.group(() => subject.append(orgId, events, first))
  }
  subject.idle()
}

function build(subject: Engine): number {
  for (let steps = 0; ; steps++) if (!subject.spare()) return steps
}

const hourly = [1, 2, 3].map((hour) => noon + hour * hourMs)
const wide = [noon - hourMs, noon + 100 * hourMs]
const exploreQuery = (query: Partial<ExploreQuery>): ExploreQuery => ({
  orgId,
  filter: {},
  measure: 'events',
  by: null,
  edges: hourly,
  rowsMax: 1_000,
  budgetMs: Infinity,
  ...query,
})
const byMetadata = (metadata: string) => ({ by: { metadata } })

const queries = [
  'plan',
  'cart',
  'cart.items',
  'cart.a.b',
  'twice.b',
  'twice',
  'unique',
  'name 7',
  'name 399',
  'id',
  'plan.id',
  'deep.a.b.c.d.e',
  'deep',
  'empty',
  'nothing',
  'a',
  '..',
].map((path) => exploreQuery(byMetadata(path)))
queries.push(
  ...(['tokens', 'bytes'] as const).flatMap((measure) => [
    exploreQuery({ measure }),
    exploreQuery({ measure, ...byMetadata('plan') }),
  ]),
  ...(['sessions', 'subjects', 'errors'] as const).map((measure) =>
    exploreQuery({ measure, ...byMetadata('plan') }),
  ),
  exploreQuery({ ...byMetadata('cart.items'), metadata: [{ path: 'plan', values: ['short', '7', ''] }] }),
  exploreQuery({ metadata: [{ path: 'plan', values: [longText] }] }),
  exploreQuery({ ...byMetadata('plan'), filter: { vendors: ['GPTBot'] } }),
  exploreQuery({ ...byMetadata('plan'), also: [{ by: 'name', values: ['Bot-1'] }] }),
  exploreQuery({ by: 'vendor', metadata: [{ path: 'cart.items', values: ['1', '2'] }] }),
  exploreQuery({ ...byMetadata('plan'), edges: [noon + 90_000, noon + 5 * hourMs + 1] }),
  exploreQuery({ ...byMetadata('plan'), edges: wide }),
  exploreQuery({ ...byMetadata('plan'), edges: [1.5, 2, 3.25].map((hours) => noon + hours * hourMs) }),
  exploreQuery({ ...byMetadata('plan'), filter: { text: 'PLAN "3"' } }),
  exploreQuery({ by: 'vendor', filter: { text: 'e4242' } }),
)

/** What alert rules of tokens read. */
const tokenSeries = [null, 'vendor', 'name'].map((field): SeriesQuery => ({
  orgId,
  filter: {},
  value: 'tokens',
  by: field as SeriesQuery['by'],
  groupsMax: 9,
  budgetMs: Infinity,
  edges: [1.5, 2, 3, 3.25].map((hours) => noon + hours * hourMs),
}))

interface Question {
  asked: ExploreQuery | SeriesQuery
  ask(reader: Engine['reader']): Explored | Series
}

const questions: Question[] = [
  ...queries.map((query): Question => ({ asked: query, ask: (reader) => reader.explore(query) })),
  ...tokenSeries.map((query): Question => ({ asked: query, ask: (reader) => reader.series(query) })),
]

/** Each reads the text of every event. Between two states an everyday run asks a third of them, which varies. */
const third = Math.floor(Math.random() * 3)
const chosenQuestions = questions.filter((_, index) => isFull || index % 3 === third)

const answers = (subject: Engine, to: Question[]): (Explored | Series)[] =>
  subject.freshly((reader) => to.map(({ ask }) => ask(reader)))

function expectSame(subject: Engine, to: Question[], expected: (Explored | Series)[]): void {
  for (const [index, answer] of answers(subject, to).entries())
    expect([to[index]!.asked, answer]).toEqual([to[index]!.asked, expected[index]!])
  expect(subject.reader.verify().faults).toEqual([])
}

test('columns give the same answers as the texts, also while they are built, after a restart and a rollback', () => {
  const subject = engine()
  fill(subject, 0, sealed + 4_000)
  const first = answers(subject, questions)
  expect((first[0] as Explored).rows.length).toBeGreaterThan(10)
  expect((first.at(-1) as Series).groups[0]!.values[0]).toBeGreaterThan(10)
  for (let step = 0; step < partly; step++) expect(subject.spare()).toBe(true)
  expectSame(
    subject,
    chosenQuestions,
    chosenQuestions.map((question) => first[questions.indexOf(question)]!),
  )
  subject.reopen()
  for (let step = 0; step < partly; step++) expect(subject.spare()).toBe(true)
  subject.undone(() => subject.append(orgId, [makeRecord(500_000)]))
  let steps = 0
  for (; subject.tables("event_path WHERE path = ''") === 0; steps++) subject.spare()
  expect(steps).toBe(sealed / 4_096 + 1)
  build(subject) // repacks the blocks
  expect(subject.tables("event_path WHERE path = ''")).toBe(1)
  expectSame(subject, questions, first)
  const opened = (path: string) =>
    subject.timesRead((reader) => reader.explore(exploreQuery(byMetadata(path))), 'texts')
  expect([opened('cart.items'), opened('tokens'), opened('cart')]).toEqual([0, 0, 0])
  const bySeries = (reader: Engine['reader']) => reader.series(tokenSeries[0]!)
  expect(subject.timesRead(bySeries, 'texts')).toBe(0)
  for (const path of ['plan', 'twice.b', 'unique', 'nothing'])
    expect([path, opened(path) > 0]).toEqual([path, true])
  subject.close()
}, 60_000)

test('steps may end within an hour that the rollups count', () => {
  const subject = engine()
  const count = 30_000
  fill(subject, 0, count)
  const edges = [0.5, 1.5, 2, 3.25, 3.26].map((hours) => noon + hours * hourMs)
  const { rows, missing } = subject.reader.explore(exploreQuery({ by: 'vendor', edges }))
  const steps = edges.slice(1).map(() => [0, 0])
  for (const event of Array.from({ length: count }, (_, n) => makeRecord(n))) {
    const step = edges.findLastIndex((edge) => edge <= event.occurredAtMs)
    if (step >= 0 && step < steps.length) steps[step]![event.vendor === null ? 1 : 0]!++
  }
  expect(rows.map((row) => [row.value, row.steps])).toEqual([
    ['GPTBot', steps.map(([matchCount]) => matchCount!)],
  ])
  expect(missing?.steps).toEqual(steps.map(([, missingCount]) => missingCount!))
  subject.close()
})

test('a column has the value of each event, or the path has none', () => {
  const property = fc.property(
    fc.array(exploredEvent, { minLength: 1, maxLength: 80 }),
    fc.integer({ min: 0, max: 300 }),
    (events, names) => {
      const subject = engine()
      // Names that are values, so that a segment has no place for further ones.
      const wild = Array.from({ length: names }, (_, n) => [`${n % 3 === 0 ? 'cart.' : ''}wild ${n}`, n])
      const first = makeEvent('first', { json: JSON.stringify({ metadata: Object.fromEntries(wild) }) })
      const allRecords = [...(events.length % 2 === 0 ? [first] : []), ...events.map(recordOf)]
      subject.group(() => subject.append(orgId, allRecords))
      const { paths: columns, hasMore } = subject.shredded()
      for (const path of paths) {
        const column = columns.find((pathColumn) => pathColumn.path === path)
        if (column === undefined && hasMore) continue
        if (column?.values === null) continue
        const texts = allRecords.map(() => null as string | null)
        for (let entry = 0; entry < (column?.entries ?? 0); entry++)
          texts[column!.positions[entry]! - 1] = column!.values!.values[column!.codes[entry]!]!.toString()
        expect([path, texts.map(memberText)]).toEqual([
          path,
          allRecords.map((record) => valueOf(record, path)),
        ])
      }
      subject.close()
    },
  )
  fc.assert(property, { numRuns: runs(100) })
}, 30_000)

test('no value outlasts its event', () => {
  const subject = engine()
  fill(subject, 0, 2 * sealed + 4_000)
  build(subject)
  const rows = (segment: number) => subject.tables(`event_path WHERE segment = ${segment}`)!
  const heads = () => subject.tables("event_path WHERE path = ''")
  const whole = rows(0)
  expect([whole > 10, rows(1)]).toEqual([true, whole])
  subject.erase(orgId, ['s9'], [])
  expect([rows(0), rows(1)]).toEqual([0, whole])
  const erased = answers(subject, chosenQuestions)
  build(subject)
  expect([rows(0), heads()]).toEqual([whole, 2])
  expectSame(subject, chosenQuestions, erased)
  // Retention reaches the middle of the first segment, then that of the second.
  subject.expire(orgId, sealed / 2)
  expect([rows(0), rows(1)]).toEqual([1, whole])
  subject.expire(orgId, sealed * 1.5)
  expect([rows(0), rows(1)]).toEqual([0, 1])
  const expired = answers(subject, chosenQuestions)
  build(subject)
  expectSame(subject, chosenQuestions, expired)
  fill(subject, 2 * sealed + 4_000, 3 * sealed)
  build(subject)
  expect(rows(2)).toBe(whole)
  subject.removeSite(orgId, 'shop')
  expect(rows(2)).toBe(0)
  subject.removeOrg(orgId)
  expect([heads(), build(subject)]).toEqual([0, 0])
  subject.close()
}, 60_000)
