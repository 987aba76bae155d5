/** A question that was stopped takes nothing from the one asked after it. */
import { expect, test } from 'bun:test'
import { until } from '../../tests/support/until.ts'
import { follow, type Turns } from './use-query.ts'

test('a stopped question does not swallow the turn of the next one', async () => {
  const turns: Turns = { wanted: 0, next: () => {} }
  const [old, next] = [new AbortController(), new AbortController()]
  const told: string[] = []
  const answers = { old: 0, next: 0 }
  const ask = (name: 'old' | 'next') => async () => `${name} ${++answers[name]}`
  const restMs = 40
  const tell = ({ found }: { found?: string | null }): void => void told.push(found ?? '')
  void follow(ask('old'), old.signal, turns, restMs, tell)
  await until(() => told.length === 1)
  // Stopped while it rests; its rest ends after the next question waits already.
  old.abort()
  void follow(ask('next'), next.signal, turns, 0, tell)
  await Bun.sleep(2 * restMs)
  turns.wanted += 1
  turns.next()
  await until(() => told.length === 3)
  expect(told).toEqual(['old 1', 'next 1', 'next 2'])
  next.abort()
  turns.next()
})
