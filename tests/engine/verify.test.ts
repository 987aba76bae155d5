/** Verify and recounts beside writers, in slices, and what a recount repairs (damage: damage.test.ts). */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { noon } from '../store/make.ts'
import { seeded } from '../crash/seeded.ts'
import { runs } from '../support/runs.ts'
import { agrees, isSound } from './model.ts'
import { engine, event } from './subject.ts'

test('verify finds no fault beside a writer that adds, folds, merges, seals, erases and expires', () => {
  const subject = engine({ idsPerRun: 3_000, freezePart: 500 })
  const sizes = { verifiedBlocks: 2, countedBlocks: 4 }
  let next = 0
  const add = (count: number) => {
    const page = `/page/of-${next}` // a new value
    const batch = Array.from({ length: count }, (_, n) => ({ ...event(next + n, (next + n) * 1_000), page }))
    subject.group(() => subject.append('org_a', batch, next))
    next += count
  }
  for (let batch = 0; batch < 54; batch++) add(1_000)
  subject.idle()
  for (const seed of [1, 2, 3]) {
    const { below: random } = seeded(seed)
    const often = [() => add(1 + random(40)), () => add(1 + random(40)), () => add(2_000), subject.idle]
    const rarely = [
      () => subject.erase('org_a', [`ses_${random(5)}`], []),
      () => subject.expire('org_a', random(next / 2)),
      () => subject.removeSite('org_a', 'demo'),
    ]
    const endsAt = next + 10_000
    let slices = 0
    const changeStore = () => {
      slices++
      if (next < endsAt && slices % 2 === 0) often[random(often.length)]!()
      if (slices % 50 === 7) rarely[random(rarely.length)]!()
    }
    expect([seed, subject.verifyInSlices(sizes, changeStore).faults]).toEqual([seed, []])
    expect(slices).toBeGreaterThan(100)
    isSound(subject)
  }
  expect(next).toBeGreaterThan(70_000) // a segment was sealed meanwhile
  const damaged = 'rollup_metric WHERE hour % 9 = 4'
  const rows = subject.tables(damaged)!
  expect(rows).toBeGreaterThan(3)
  subject.sql(`UPDATE rollup_metric SET live = live + 7 WHERE hour % 9 = 4`)
  const { faults } = subject.verifyInSlices(sizes, () => add(7))
  expect(faults.filter(({ problem }) => problem === 'says 7 too many').length).toBe(rows)
  expect(faults.length).toBe(rows + 1) // and the totals by type
  subject.close()
}, 90_000)

test('verify reads each arrival once, also when small blocks are merged meanwhile', () => {
  const subject = engine()
  const add = (first: number, page: string) =>
    subject.group(() => {
      const batch = Array.from({ length: 20 }, (_, n) => ({ ...event(first + n, first + n), page }))
      subject.append('org_a', batch)
    })
  for (let block = 0; block < 12; block++) add(block * 20, block % 2 === 0 ? '/known' : '/unknown')
  subject.idle()
  subject.sql("DELETE FROM event_term WHERE text = '/unknown'")
  let slices = 0
  const { faults } = subject.verifyInSlices({ verifiedBlocks: 1 }, () => {
    if (++slices === 5) add(240, '/known') // these 20 complete a block
  })
  expect(subject.tables('event_block')).toBe(2)
  const problems = new Set(faults.map(({ problem }) => problem))
  expect([faults.length, problems.size]).toEqual([100, 100]) // no more are listed
  expect(faults.at(-1)!.place).toBe('arrivals 1 to 240')
  expect(faults.every(({ problem }) => /^arrival \d+: the value of page is not known$/.test(problem))).toBe(
    true,
  )
  subject.close()
}, 90_000)

test('verify ends whatever length a damaged block claims', () => {
  for (const length of [0, -70, -20_000, 300, 2 ** 40]) {
    const subject = engine()
    const events = Array.from({ length: 2_000 }, (_, n) => event(n, n))
    subject.group(() => subject.append('org_a', events))
    subject.idle()
    subject.sql(`UPDATE event_block SET events = ${length} WHERE place % 65536 = 1025`)
    for (const blocks of [1, 2, 64]) {
      let slices = 0
      const sizes = { verifiedBlocks: blocks, countedBlocks: blocks }
      const { faults } = subject.verifyInSlices(sizes, () => {
        if (++slices > 100) throw new Error('it goes round')
      })
      expect([length, blocks, faults.some(({ place }) => place.startsWith('arrivals 1025 to'))]).toEqual([
        length,
        blocks,
        true,
      ])
    }
    subject.close()
  }
}, 90_000)

test('a recount in slices is exact when events arrive, fold, are erased or expire in between', () => {
  const hourMs = 3_600_000
  const subject = engine()
  const makeHourEvent = (n: number) => event(n, (n % 12) * hourMs + n) // the twelfth hour ends the day
  const batch = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => makeHourEvent(from + n))
  subject.group(() => subject.append('org_a', batch(0, 3_000), 0))
  subject.group(() => subject.append('org_a', batch(3_000, 5_000), 3_000))
  subject.idle()
  let next = 8_000
  const add = () => {
    subject.group(() => subject.append('org_a', batch(next, 300), next))
    next += 300
  }
  const otherChanges: { [slice: number]: () => void } = {
    2: add, // stays behind the watermark
    4: () => subject.idle(), // is folded
    5: () => subject.erase('org_a', ['ses_1'], []),
    7: () => subject.expire('org_a', 1), // the first batch: the count begins again
    8: add,
    9: () => subject.idle(),
  }
  for (const hour of [3, 11]) {
    let slices = 0
    const onSlice = (slice: number) => {
      slices = slice
      otherChanges[slice]?.()
    }
    expect([hour, subject.recountInSlices(noon + hour * hourMs, 1, onSlice)]).toEqual([hour, []])
    expect(slices).toBeGreaterThan(8)
    subject.group(() => subject.append('org_a', batch(next, 4_000), next))
    next += 4_000
    subject.idle()
  }
  subject.sql('UPDATE rollup_metric SET live = live + 7')
  const wrong = subject.recountInSlices(noon + 11 * hourMs, 2, (slice) => slice < 4 && add())
  expect(wrong.every(({ difference }) => difference === -7)).toBe(true)
  expect(wrong.length).toBe(subject.tables(`rollup_metric WHERE hour = ${noon / hourMs + 11}`)!)
  subject.close()
}, 90_000)

test('a recount in slices is exact when small blocks are merged, also across the watermark', () => {
  const subject = engine()
  let next = 0
  const add = () => {
    const batch = Array.from({ length: 20 }, (_, n) => event(next + n, next + n))
    subject.group(() => subject.append('org_a', batch))
    next += batch.length
  }
  for (let block = 0; block < 12; block++) add()
  subject.idle() // all of them are folded, none is merged
  let slices = 0
  const merging = (slice: number) => {
    slices = slice
    if (slice === 5) add() // these 20 complete a block
  }
  expect(subject.recountInSlices(noon, 1, merging)).toEqual([])
  expect([slices, subject.tables('event_block')]).toEqual([5, 2])
  for (let block = 0; block < 12; block++) add() // merged with the 20 above; none of it is folded
  expect(subject.tables('event_block')).toBeLessThan(4)
  subject.idle()
  add()
  for (let block = 0; block < 12; block++) {
    add()
    expect([block, subject.recountInSlices(noon, 1, () => {})]).toEqual([block, []])
  }
  subject.close()
}, 90_000)

test('a recount finds and repairs the wrong rows of its hour', async () => {
  const subject = engine()
  const hourMs = 3_600_000
  const events = Array.from({ length: 4_000 }, (_, n) => event(n, (n % 4) * hourMs + n))
  subject.group(() => subject.append('org_a', events.slice(0, 2_500)))
  subject.idle()
  subject.group(() => subject.append('org_a', events.slice(2_500))) // unfolded, so the re-count ignores it
  const recount = (hour: number) =>
    subject.reader.recount({ orgId: 'org_a', hourStartMs: noon + hour * hourMs })
  for (const hour of [-1, 0, 1, 2, 3, 4]) expect(await recount(hour)).toEqual([])
  const damage = [
    'UPDATE rollup_metric SET live = live + 7 WHERE hour % 2 = 1',
    'DELETE FROM rollup_value WHERE hour % 2 = 1 AND code = 2',
    `INSERT INTO rollup_value (org, member, hour, site, type, outcome, code, live)
     SELECT org, member, hour, site + 90, type, outcome, code, live FROM rollup_value WHERE hour % 2 = 1`,
  ]
  for (const sql of damage) subject.sql(sql)
  expect(subject.reader.verify().faults.length).toBeGreaterThan(0)
  const wrong = await Promise.all([0, 1, 2, 3].map(async (hour) => (await recount(hour)).length))
  expect(wrong.filter((rows) => rows > 0).length).toBe(2)
  for (const hour of [0, 1, 2, 3]) subject.repair('org_a', await recount(hour))
  expect(subject.tables('rollup_value WHERE site > 90')).toBe(0)
  agrees(subject, 'org_a', events)
  isSound(subject)
  subject.sql('DELETE FROM rollup_value WHERE member = 33') // sessions of the day, which its last hour completes
  for (const hour of [10, 12]) expect(await recount(hour)).toEqual([])
  expect((await recount(11)).length).toBe(10)
  subject.repair('org_a', await recount(11))
  isSound(subject)
  subject.close()
}, 90_000)

test('verify names exactly the rollup rows that differ, also where sums of an hour and field stay the same', () => {
  const subject = engine()
  const events = Array.from({ length: 2_000 }, (_, n) => event(n, (n % 40) * 3_600_000 + n))
  subject.group(() => subject.append('org_a', events))
  subject.idle()
  const rows = subject.tables('rollup_value')!
  const changes = [
    { sql: (row: number) => `live = live + 1 WHERE ${nth(row)}`, wrong: ['says 1 too many'] },
    // A value too few here is a value too many there.
    {
      sql: (row: number) =>
        `live = live + CASE WHEN ${nth(row)} THEN 1 ELSE -1 END WHERE ${nth(row)} OR ${nth(row + 1)}`,
      wrong: ['says 1 too few', 'says 1 too many'],
    },
    // Another value has the count.
    { sql: (row: number) => `code = code + 9000 WHERE ${nth(row)}`, wrong: [/too few/, /too many/] },
    // A multiple of what a checksum counts up to.
    {
      sql: (row: number) => `live = live + 4294967296 WHERE ${nth(row)}`,
      wrong: ['says 4294967296 too many'],
    },
  ]
  fc.assert(
    fc.property(fc.nat(rows - 2), fc.nat(changes.length - 1), (row, changeIndex) => {
      const { sql, wrong } = changes[changeIndex]!
      subject.damaged(`UPDATE rollup_value SET ${sql(row)}`, (reader) => {
        const problems = reader.verify().faults.map(({ problem }) => problem)
        expect([changeIndex, problems.toSorted()]).toEqual([
          changeIndex,
          wrong.map((pattern) => expect.stringMatching(pattern)),
        ])
      })
    }),
    { numRuns: runs(40) },
  )
  subject.close()
}, 90_000)

/** The row of rollup_value with this number, in the order of its key. */
function nth(row: number): string {
  const key = 'org, member, hour, site, type, outcome, code'
  return `(${key}) = (SELECT ${key} FROM rollup_value ORDER BY ${key} LIMIT 1 OFFSET ${row})`
}
