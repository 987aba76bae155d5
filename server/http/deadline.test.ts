/** Deadlines that share a timer: each is called once, in time, unless it ended before. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { startDeadline } from './deadline.ts'

test('whatever ends before, each other deadline is called once, in order and not early', async () => {
  const ends = fc.array(fc.constantFrom('never', 'at once', 'later', 'twice', 'when the one before is late'))
  await fc.assert(
    fc.asyncProperty(ends, async (whens) => {
      const late: number[] = []
      const startedMs = performance.now()
      const deadlines = whens.map((_, index) =>
        startDeadline(15, () => {
          expect(performance.now() - startedMs).toBeGreaterThanOrEqual(15)
          late.push(index)
          if (whens[index + 1] === 'when the one before is late') deadlines[index + 1]?.end()
        }),
      )
      whens.forEach((when, index) => when === 'at once' && deadlines[index]?.end())
      await Bun.sleep(1)
      whens.forEach((when, index) => (when === 'later' || when === 'twice') && deadlines[index]?.end())
      whens.forEach((when, index) => when === 'twice' && deadlines[index]?.end())
      const expected: number[] = []
      whens.forEach((when, index) => {
        const isEnded = when === 'when the one before is late' && expected.at(-1) === index - 1 && index > 0
        if (when === 'never' || (when === 'when the one before is late' && !isEnded)) expected.push(index)
      })
      while (performance.now() - startedMs < 2_000 && late.length < expected.length) await Bun.sleep(1)
      await Bun.sleep(2)
      expect(late).toEqual(expected)
    }),
    { numRuns: 30 },
  )
})

test('an ended deadline keeps nothing of its request in memory', async () => {
  let collected = 0
  const registry = new FinalizationRegistry(() => collected++)
  const anchor = startDeadline(60_000, () => {})
  for (let n = 0; n < 100; n++) {
    const request = { n }
    registry.register(request, n)
    startDeadline(60_000, () => void request).end()
  }
  for (let tries = 0; tries < 50 && collected < 50; tries++) {
    Bun.gc(true)
    await Bun.sleep(5)
  }
  anchor.end()
  expect(collected).toBeGreaterThanOrEqual(50)
})
