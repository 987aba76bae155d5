/** Bodies take turns in the order they came; small ones do not wait; what waits is counted. */
import { expect, test } from 'bun:test'
import { makeTurns } from './admission.ts'

test('one large body a turn, in order, and small ones at once', async () => {
  const due: (() => void)[] = []
  const turns = makeTurns((go) => due.push(go))
  const order: string[] = []
  const take = async (name: string, bytes: number) => {
    await turns.take(bytes)
    order.push(name)
  }
  const all = [take('first', 50_000), take('second', 60_000), take('small', 900), take('third', 70_000)]
  await Bun.sleep(0)
  expect(order).toEqual(['first', 'small'])
  expect(turns.waitingBytes()).toBe(130_000)
  due.shift()?.()
  await Bun.sleep(0)
  expect(order).toEqual(['first', 'small', 'second'])
  expect(turns.waitingBytes()).toBe(70_000)
  due.shift()?.()
  await Promise.all(all)
  expect(order.at(-1)).toBe('third')
  expect(turns.waitingBytes()).toBe(0)
  while (due.length > 0) due.shift()?.()
  await take('later', 50_000) // nothing runs any more: at once
  expect(order.at(-1)).toBe('later')
})

test('with the real event loop all of them come to their turn', async () => {
  const turns = makeTurns()
  const done: number[] = []
  await Promise.all(
    Array.from({ length: 500 }, async (_, n) => {
      await turns.take(20_000)
      done.push(n)
    }),
  )
  expect(done).toEqual(Array.from({ length: 500 }, (_, n) => n))
  expect(turns.waitingBytes()).toBe(0)
})
