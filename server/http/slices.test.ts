/** One slice per turn, whoever waits, and the organizations in turns. */
import { expect, test } from 'bun:test'
import { inSlices, makeSlices } from './slices.ts'

/** An event loop and a clock that the test moves. */
function loop() {
  let turns: (() => void)[] = []
  let nowMs = 0
  const slices = makeSlices(
    (go) => turns.push(go),
    () => nowMs,
  )
  return {
    slices,
    pass: (ms: number) => void (nowMs += ms),
    async turn(): Promise<number> {
      const dueTurns = turns
      turns = []
      for (const go of dueTurns) go()
      for (let tick = 0; tick < 10; tick++) await Promise.resolve()
      return dueTurns.length
    },
  }
}

test('work pauses after 5 ms and continues in the next turn', async () => {
  const { slices, pass, turn } = loop()
  const work = slices.begin('a')
  expect(work.pause()).toBeUndefined()
  pass(5)
  let resumed = false
  void work.pause()!.then(() => (resumed = true))
  expect(await turn()).toBe(1)
  expect(resumed).toBe(true)
  expect(work.pause()).toBeUndefined()
  expect(await turn()).toBe(0)
})

test('each turn has one slice, and one organization does not wait for all of another', async () => {
  const { slices, turn } = loop()
  const order: string[] = []
  const wait = (orgId: string, name: string) =>
    void slices
      .begin(orgId)
      .nextSlice()
      .then(() => order.push(name))
  for (const name of ['a1', 'a2', 'a3']) wait('a', name)
  wait('b', 'b1')
  const orderCounts: number[] = []
  for (let turns = 0; turns < 4; turns++) {
    await turn()
    orderCounts.push(order.length)
  }
  expect(orderCounts).toEqual([1, 2, 3, 4])
  expect(order).toEqual(['a1', 'b1', 'a2', 'a3'])
})

test('steps run to their end, with an error where one throws', async () => {
  const { slices, pass, turn } = loop()
  function* steps(fails: boolean): Generator<void, number> {
    for (let step = 0; step < 4; step++) {
      pass(3)
      yield
    }
    if (fails) throw new Error('broken')
    return 7
  }
  const whole = inSlices(steps(false), slices.begin('a'))
  const broken = inSlices(steps(true), slices.begin('b')).catch(String)
  let turns = 0
  while ((await turn()) > 0) turns++
  expect(await whole).toBe(7)
  expect(await broken).toBe('Error: broken')
  expect(turns).toBeGreaterThanOrEqual(4)
})
