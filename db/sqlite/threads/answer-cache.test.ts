/** Cached answers are computed once while nothing changes, and never older than the last change. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { answerCache } from './answer-cache.ts'

test('an answer is kept until its organization changes, and a failed one is not kept', async () => {
  const kept = answerCache()
  let asked = 0
  const ask = async () => ++asked
  expect(await kept.of('a', 'q', ask)).toBe(1)
  expect(await kept.of('a', 'q', ask)).toBe(1)
  kept.changed('b')
  expect(await kept.of('a', 'q', ask)).toBe(1)
  kept.changed('a')
  expect(await kept.of('a', 'q', ask)).toBe(2)
  expect(await kept.of('a', 'another', ask)).toBe(3)
  kept.changed(null)
  expect(await kept.of('a', 'q', ask)).toBe(4)
  const failing = () => Promise.reject(new Error('no'))
  await expect(kept.of('a', 'fails', failing)).rejects.toThrow('no')
  expect(await kept.of('a', 'fails', ask)).toBe(5)
})

test('answers of many rows are not kept, and only so many others', async () => {
  const kept = answerCache()
  let asked = 0
  const many = async () => ({ rows: Array<number>(++asked * 26_000).fill(0) })
  await kept.of('a', 'large', many)
  await kept.of('a', 'large', many)
  expect(asked).toBe(2)
  const text = async () => ({ rowsJson: ' '.repeat(++asked * 2_000_000) })
  await kept.of('a', 'long text', text)
  await kept.of('a', 'long text', text)
  expect(asked).toBe(4)
  const rows = async () => ({ rows: Array<number>(++asked > 0 ? 20_000 : 0).fill(0) })
  for (let n = 0; n < 9; n++) await kept.of('a', `rows ${n}`, rows)
  asked = 0
  for (const n of [8, 2]) await kept.of('a', `rows ${n}`, rows)
  expect(asked).toBe(0)
  await kept.of('a', 'rows 1', rows)
  expect(asked).toBe(1)
  for (let n = 0; n < 100; n++) await kept.of('a', `question ${n}`, async () => ++asked)
  asked = 0
  await kept.of('a', 'question 99', async () => ++asked)
  expect(asked).toBe(0)
  await kept.of('a', 'question 0', async () => ++asked)
  expect(asked).toBe(1)
})

test('whoever asks after a change sees it, however long questions take', async () => {
  const step = fc.oneof(
    fc.constant('change' as const),
    fc.record({ question: fc.constantFrom('x', 'y'), takes: fc.integer({ min: 0, max: 4 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const kept = answerCache()
      let stored = 0
      const answers: Promise<void>[] = []
      for (const one of steps) {
        if (one === 'change') {
          stored += 1
          kept.changed('a')
          continue
        }
        const least = stored
        const ask = async () => {
          const seen = stored // the moment of reading
          for (let turn = 0; turn < one.takes; turn++) await Promise.resolve()
          return seen
        }
        answers.push(
          kept.of('a', one.question, ask).then((seen) => expect(seen).toBeGreaterThanOrEqual(least)),
        )
        await Promise.resolve()
      }
      await Promise.all(answers)
    }),
  )
})
