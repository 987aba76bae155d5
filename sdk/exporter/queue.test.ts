/** Order, bounds and sums of the queue hold under any sequence of calls. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createQueue } from './queue.ts'

test('law: it behaves like a list with two bounds', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('push' as const), bytes: fc.integer({ min: 1, max: 50 }) }),
    fc.record({ kind: fc.constant('drop' as const), count: fc.integer({ min: 0, max: 40 }) }),
    fc.record({
      kind: fc.constant('peek' as const),
      count: fc.integer({ min: 1, max: 20 }),
      bytes: fc.integer({ min: 1, max: 200 }),
    }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = createQueue({ eventsMax: 30, bytesMax: 600 })
      let model: { text: string; bytes: number }[] = []
      const sum = (): number => model.reduce((total, { bytes }) => total + bytes, 0)
      for (const [index, each] of steps.entries()) {
        if (each.kind === 'push') {
          const fits = model.length < 30 && sum() + each.bytes <= 600
          expect(queue.push({ text: String(index), bytes: each.bytes })).toBe(fits)
          if (fits) model.push({ text: String(index), bytes: each.bytes })
        } else if (each.kind === 'drop') {
          queue.drop(each.count)
          model = model.slice(each.count)
        } else {
          const seen = queue.peek(each.count, each.bytes)
          expect(seen).toEqual(model.slice(0, seen.length))
          expect(queue.peek(each.count, 1e9, 3)).toEqual(model.slice(3, 3 + each.count))
          if (model.length > 0) expect(seen.length).toBeGreaterThan(0)
          const total = seen.reduce((bytes, event) => bytes + event.bytes, 0)
          if (seen.length > 1) expect(total).toBeLessThanOrEqual(each.bytes)
          const next = model[seen.length]
          const isFull = seen.length === each.count || next === undefined || total + next.bytes > each.bytes
          expect(isFull).toBe(true)
        }
        expect([queue.count, queue.bytes]).toEqual([model.length, sum()])
      }
    }),
  )
})

test('restored events may exceed the bounds', () => {
  const queue = createQueue({ eventsMax: 1, bytesMax: 1 })
  queue.restore({ text: 'a', bytes: 10 })
  queue.restore({ text: 'b', bytes: 10 })
  expect(queue.push({ text: 'c', bytes: 1 })).toBe(false)
  expect(queue.peek(10, 100).map(({ text }) => text)).toEqual(['a', 'b'])
})

test('removed events do not stay in memory', () => {
  const queue = createQueue({ eventsMax: 10_000, bytesMax: 1e9 })
  for (let round = 0; round < 50_000; round++) {
    queue.push({ text: String(round), bytes: 1 })
    if (round >= 100) queue.drop(1)
  }
  expect(queue.count).toBe(100)
  expect(queue.peek(1, 1)[0]?.text).toBe('49900')
})
