/** Cached answers are computed once while nothing changes, and never older than the last change. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { answerCache } from './answer-cache.ts'

test('an answer is cached until its organization changes, and a failed one is not cached', async () => {
  const cache = answerCache()
  let fetches = 0
  const ask = async () => ++fetches
  expect(await cache.of('a', 'q', ask)).toBe(1)
  expect(await cache.of('a', 'q', ask)).toBe(1)
  cache.changed('b')
  expect(await cache.of('a', 'q', ask)).toBe(1)
  cache.changed('a')
  expect(await cache.of('a', 'q', ask)).toBe(2)
  expect(await cache.of('a', 'another', ask)).toBe(3)
  cache.changed(null)
  expect(await cache.of('a', 'q', ask)).toBe(4)
  const failing = () => Promise.reject(new Error('no'))
  expect(await cache.of('a', 'fails', failing).catch((error: Error) => error.message)).toBe('no')
  expect(await cache.of('a', 'fails', ask)).toBe(5)
})

test('answers of many rows are not cached, and the number of others is bounded', async () => {
  const cache = answerCache()
  let fetches = 0
  const manyRows = async () => ({ rows: Array<number>(++fetches * 26_000).fill(0) })
  await cache.of('a', 'large', manyRows)
  await cache.of('a', 'large', manyRows)
  expect(fetches).toBe(2)
  const text = async () => ({ rowsJson: ' '.repeat(++fetches * 2_000_000) })
  await cache.of('a', 'long text', text)
  await cache.of('a', 'long text', text)
  expect(fetches).toBe(4)
  const rows = async () => ({ rows: Array<number>(++fetches > 0 ? 20_000 : 0).fill(0) })
  for (let n = 0; n < 9; n++) await cache.of('a', `rows ${n}`, rows)
  fetches = 0
  for (const n of [8, 2]) await cache.of('a', `rows ${n}`, rows)
  expect(fetches).toBe(0)
  await cache.of('a', 'rows 1', rows)
  expect(fetches).toBe(1)
  for (let n = 0; n < 100; n++) await cache.of('a', `query ${n}`, async () => ++fetches)
  fetches = 0
  await cache.of('a', 'query 99', async () => ++fetches)
  expect(fetches).toBe(0)
  await cache.of('a', 'query 0', async () => ++fetches)
  expect(fetches).toBe(1)
})

test('a query after a change sees it, however long queries take', async () => {
  const step = fc.oneof(
    fc.constant('change' as const),
    fc.record({ query: fc.constantFrom('x', 'y'), takes: fc.integer({ min: 0, max: 4 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const cache = answerCache()
      let stored = 0
      const answers: Promise<void>[] = []
      for (const cacheStep of steps) {
        if (cacheStep === 'change') {
          stored += 1
          cache.changed('a')
          continue
        }
        const minimum = stored
        const ask = async () => {
          const version = stored // the moment of reading
          for (let turn = 0; turn < cacheStep.takes; turn++) await Promise.resolve()
          return version
        }
        answers.push(
          cache
            .of('a', cacheStep.query, ask)
            .then((version) => expect(version).toBeGreaterThanOrEqual(minimum)),
        )
        await Promise.resolve()
      }
      await Promise.all(answers)
    }),
  )
})
