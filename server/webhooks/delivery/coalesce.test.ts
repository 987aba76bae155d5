/** Coalesced work never overlaps, and nobody who asks is left without a run that began afterwards. */
import { expect, test } from 'bun:test'
import { coalesce } from './coalesce.ts'

test('never two at a time, one more run for all who asked meanwhile', async () => {
  let now = 0
  let most = 0
  let runs = 0
  const ask = coalesce(async () => {
    runs++
    most = Math.max(most, ++now)
    await Bun.sleep(2)
    now--
  })
  await Promise.all([ask(), ask(), ask()])
  expect([runs, most]).toEqual([2, 1])
  const first = ask()
  await Bun.sleep(1)
  await Promise.all([first, ask(), ask()])
  expect([runs, most]).toEqual([4, 1])
})

test('who asks during a run waits for one that began later', async () => {
  let value = 0
  const seen: number[] = []
  const ask = coalesce(async () => {
    seen.push(value)
    await Bun.sleep(2)
  })
  const first = ask()
  value = 1
  await ask()
  await first
  expect(seen.at(-1)).toBe(1)
})
