/** The numbers of groups stay right, or say that they are estimates, when more is sent than fits in memory. */
import { expect, test } from 'bun:test'
import { distinctTally, groupsOf, missingGroup, otherGroup, quantileTally, sumTally } from './groups.ts'

const hash = (n: number): number => Bun.hash.xxHash32(`${n}`) >>> 1

test('few distinct values are exact, in steps, in groups and in their union', () => {
  const tally = distinctTally(2)
  for (let n = 0; n < 3_000; n++)
    for (const step of [0, 1]) tally.add(2 + (n % 3), step, hash(n % (step === 0 ? 1_500 : 3_000)))
  const [total, groupNumbers] = tally.numbers([[otherGroup, missingGroup, 2, 3, 4], [3]])
  expect(total).toEqual({ events: 6_000, total: 3_000, steps: [1_500, 3_000], error: 0 })
  expect(groupNumbers).toMatchObject({ events: 2_000, total: 1_000, steps: [500, 1_000] })
})

test('distinct values that do not fit are estimated, within what the error says', () => {
  const tally = distinctTally(3, 2 ** 14)
  const values = 30_000
  for (let n = 0; n < values; n++) tally.add(2 + (n % 2), n % 3, hash(n))
  const [total, half] = tally.numbers([[2, 3], [2]])
  for (const [numbersFound, expected] of [
    [total!, values],
    [half!, values / 2],
  ] as const) {
    expect(numbersFound.error).toBeGreaterThan(0)
    expect(numbersFound.error).toBeLessThan(0.1)
    expect(Math.abs(numbersFound.total! / expected - 1)).toBeLessThan(5 * numbersFound.error)
  }
  expect(total!.events).toBe(values)
})

test('quantiles merge the smallest groups when their buckets do not fit, and lose no event', () => {
  const steps = 5
  const sentCount = 30_000
  const tally = quantileTally(steps, 0.5, 2 ** 15)
  const groups = 40
  const events = Array<number>(groups).fill(0)
  for (let n = 0; n < sentCount; n++) {
    const group = 2 + (Math.floor(hash(n) / 1_000) % groups)
    events[group - 2]!++
    tally.add(group, n % steps, hash(n) % 1_000)
  }
  expect(tally.isCut!()).toBe(true)
  const sets = Array.from({ length: groups }, (_, group) => [group + 2])
  const [total, otherNumbers, ...groupNumbers] = tally.numbers([
    [otherGroup, ...sets.flat()],
    [otherGroup],
    ...sets,
  ])
  expect(total!.events).toBe(sentCount)
  expect(otherNumbers!.events).toBeGreaterThan(0)
  for (const [group, numbersFound] of groupNumbers.entries())
    expect([0, events[group]!]).toContain(numbersFound.events)
})

test('values beyond the limits belong to the others, and a known value never does', () => {
  const groups = groupsOf(400)
  for (let n = 0; n < 60_000; n++) groups.of(`value ${n}`)
  expect([groups.isCut(), groups.values.length * 401 <= 2_000_000]).toEqual([true, true])
  expect([groups.of('value 0'), groups.of('value 59999')]).toEqual([2, otherGroup])
  const long = groupsOf(1)
  expect([long.of('x'.repeat(2_001)), long.isCut()]).toEqual([otherGroup, true])
  const tally = sumTally(2)
  tally.addMany!(otherGroup, 1, 7)
  tally.add(2, 0, 3)
  expect(tally.numbers([[otherGroup, 2]])).toEqual([{ events: 8, total: 10, steps: [3, 7], error: 0 }])
})
