/** The parse queue is first in, first out; small bodies do not wait; queued bytes are counted. */
import { expect, test } from 'bun:test'
import { makeParseQueue } from './admission.ts'

test('one large body per tick in order, small bodies at once', async () => {
  const due: (() => void)[] = []
  const parseQueue = makeParseQueue((go) => due.push(go))
  const order: string[] = []
  const parse = async (name: string, bytes: number) => {
    await parseQueue.wait(bytes)
    order.push(name)
  }
  const parses = [
    parse('first', 50_000),
    parse('second', 60_000),
    parse('small', 900),
    parse('third', 70_000),
  ]
  await Bun.sleep(0)
  expect(order).toEqual(['first', 'small'])
  expect(parseQueue.waitingBytes()).toBe(130_000)
  due.shift()?.()
  await Bun.sleep(0)
  expect(order).toEqual(['first', 'small', 'second'])
  expect(parseQueue.waitingBytes()).toBe(70_000)
  due.shift()?.()
  await Promise.all(parses)
  expect(order.at(-1)).toBe('third')
  expect(parseQueue.waitingBytes()).toBe(0)
  while (due.length > 0) due.shift()?.()
  await parse('later', 50_000) // nothing runs any more: at once
  expect(order.at(-1)).toBe('later')
})

test('every queued body is parsed on the real event loop', async () => {
  const parseQueue = makeParseQueue()
  const finishOrder: number[] = []
  await Promise.all(
    Array.from({ length: 500 }, async (_, n) => {
      await parseQueue.wait(20_000)
      finishOrder.push(n)
    }),
  )
  expect(finishOrder).toEqual(Array.from({ length: 500 }, (_, n) => n))
  expect(parseQueue.waitingBytes()).toBe(0)
})
