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
      for (const [index, currentStep] of steps.entries()) {
        if (currentStep.kind === 'push') {
          const fits = model.length < 30 && sum() + currentStep.bytes <= 600
          expect(queue.push({ text: String(index), bytes: currentStep.bytes })).toBe(fits)
          if (fits) model.push({ text: String(index), bytes: currentStep.bytes })
        } else if (currentStep.kind === 'drop') {
          queue.drop(currentStep.count)
          model = model.slice(currentStep.count)
        } else {
          const peekedEvents = queue.peek(currentStep.count, currentStep.bytes)
          expect(peekedEvents).toEqual(model.slice(0, peekedEvents.length))
          expect(queue.peek(currentStep.count, 1e9, 3)).toEqual(model.slice(3, 3 + currentStep.count))
          if (model.length > 0) expect(peekedEvents.length).toBeGreaterThan(0)
          const total = peekedEvents.reduce((bytes, event) => bytes + event.bytes, 0)
          if (peekedEvents.length > 1) expect(total).toBeLessThanOrEqual(currentStep.bytes)
          const next = model[peekedEvents.length]
          const isFull =
            peekedEvents.length === currentStep.count ||
            next === undefined ||
            total + next.bytes > currentStep.bytes
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
