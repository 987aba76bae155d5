/** Password guessing is throttled, also in parallel and never for ever, in bounded memory. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openStore } from '../../../db/open.ts'
import type { Store } from '../../../db/contract/store.ts'
import { tempDir, type TempDir } from '../../../tests/support/temp-dir.ts'
import { senderName } from '../../http/address.ts'
import type { Clock } from '../../clock.ts'
import { makeLinkThrottle, makeThrottle, steadyClock, type Throttle } from './throttle.ts'

let temp: TempDir
let store: Store
let tests = 0
beforeAll(async () => {
  temp = tempDir('throttle')
  store = await openStore({ folder: temp.path, now: 0, readers: 1 })
})
afterAll(async () => {
  await store.close()
  temp.remove()
})

/** Names are hashed with the secret, so tests that share the store share no name. */
const throttleOf = (clock: Clock, secret = `test ${tests++}`) =>
  makeThrottle({ store: store.throttle, clock: steadyClock(clock), secret })

const wrong = () => Promise.resolve(false)
const right = () => Promise.resolve(true)

async function statusOf(attempt: ReturnType<Throttle['attempt']>): Promise<string> {
  const settled = await attempt.then(
    (result) => (result.right ? 'right' : 'wrong'),
    (error: { code?: string }) => error.code ?? 'broken',
  )
  return settled
}

test('three tries are free, then the wait doubles from a second to a quarter of an hour', async () => {
  let nowMs = 1_000_000
  const throttle = throttleOf({ now: () => 0, elapsed: () => nowMs })
  const waits: number[] = []
  for (let i = 0; i < 16; i++) {
    nowMs += throttle.waitMs('a')
    await throttle.attempt(['a'], wrong)
    waits.push(throttle.waitMs('a') / 1_000)
  }
  expect(waits).toEqual([0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900])
  expect(throttle.waitMs('b')).toBe(0)
  nowMs += 900_000
  expect(throttle.waitMs('a')).toBe(0)
  await throttle.attempt(['a'], right)
  await throttle.attempt(['a'], wrong)
  expect(throttle.waitMs('a')).toBe(0)
})

test('waits use the monotonic clock', async () => {
  let wallMs = Date.UTC(2026, 5, 23)
  let nowMs = 0
  const throttle = throttleOf({ now: () => wallMs, elapsed: () => nowMs })
  for (let i = 0; i < 3; i++) await throttle.attempt(['a'], wrong)
  wallMs -= 86_400_000
  expect(throttle.waitMs('a')).toBe(1_000)
  wallMs += 2 * 86_400_000
  expect(throttle.waitMs('a')).toBe(1_000)
  nowMs += 1_000
  expect(throttle.waitMs('a')).toBe(0)
})

test('of 100 concurrent wrong attempts three are checked; 100 correct ones all succeed', async () => {
  const throttle = throttleOf({ now: () => 0 })
  let checked = 0
  const slowly = (answer: boolean) => async () => {
    checked++
    await Bun.sleep(1)
    return answer
  }
  const guesses = Array.from({ length: 60 }, () => statusOf(throttle.attempt(['a', 'b'], slowly(false))))
  expect(
    Object.entries(Object.groupBy(await Promise.all(guesses), (outcome) => outcome)).map(
      ([name, guessesOfOutcome]) => [name, guessesOfOutcome?.length],
    ),
  ).toEqual([
    ['wrong', 3],
    ['rate_limited', 57],
  ])
  expect(checked).toBe(3)
  const people = Array.from({ length: 60 }, () => statusOf(throttle.attempt(['c', 'd'], slowly(true))))
  expect(new Set(await Promise.all(people))).toEqual(new Set(['right']))
})

test('an attempt that throws is not counted and frees its slot', async () => {
  const throttle = throttleOf({ now: () => 0 })
  for (let i = 0; i < 5; i++) {
    expect(await statusOf(throttle.attempt(['a'], () => Promise.reject(new Error('disk'))))).toBe('broken')
  }
  expect(await statusOf(throttle.attempt(['a'], wrong))).toBe('wrong')
  expect(throttle.waitMs('a')).toBe(0)
})

test('throttled attempts are counted since the last failure', async () => {
  let nowMs = 0
  const throttle = throttleOf({ now: () => nowMs })
  for (let i = 0; i < 3; i++) expect((await throttle.attempt(['a'], wrong)).refusedBefore).toBe(0)
  for (let i = 0; i < 5; i++) expect(await statusOf(throttle.attempt(['a'], wrong))).toBe('rate_limited')
  nowMs += 1_000
  expect((await throttle.attempt(['a'], wrong)).refusedBefore).toBe(5)
})

test('a restart resets nothing, and neither does another node', async () => {
  let nowMs = 5_000_000
  const clock = { now: () => nowMs }
  const before = throttleOf(clock, 'shared')
  const after = throttleOf(clock, 'shared')
  for (let i = 0; i < 5; i++) {
    nowMs += before.waitMs('a')
    await before.attempt(['a'], wrong)
  }
  expect(after.waitMs('a')).toBe(0) // it has not asked
  expect(await statusOf(after.attempt(['a'], right))).toBe('rate_limited')
  expect(after.waitMs('a')).toBe(4_000)
  nowMs += 4_000
  expect((await after.attempt(['a'], wrong)).refusedBefore).toBe(1)
  expect(after.waitMs('a')).toBe(8_000)
})

test('while a name waits, its attempts are refused without the store', async () => {
  let calls = 0
  const begin: Store['throttle']['begin'] = (command) => {
    calls++
    return store.throttle.begin(command)
  }
  const clock = { now: () => 1_000 }
  const throttle = makeThrottle({ store: { ...store.throttle, begin }, clock, secret: 'counted' })
  for (let i = 0; i < 3; i++) await throttle.attempt(['a'], wrong)
  for (let i = 0; i < 20; i++) expect(await statusOf(throttle.attempt(['a'], right))).toBe('rate_limited')
  expect(calls).toBe(3)
})

test('a correct attempt waits while another node checks others that could use up the free tries', async () => {
  const clock = { now: () => 9_000_000 }
  const here = throttleOf(clock, 'pair')
  const there = throttleOf(clock, 'pair')
  const checks = Promise.withResolvers<boolean>()
  let checked = 0
  const heldAttempts = Array.from({ length: 3 }, () =>
    there.attempt(['a'], () => {
      checked++
      return checks.promise
    }),
  )
  while (checked < 3) await Bun.sleep(1)
  const waiting = statusOf(here.attempt(['a'], right))
  expect(await Promise.race([waiting, Bun.sleep(50).then(() => 'waits')])).toBe('waits')
  checks.resolve(true)
  await Promise.all(heldAttempts)
  expect(await waiting).toBe('right')
})

test('thirty unknown links are free, then their sender waits; a flood of senders forgets the oldest', () => {
  let nowMs = 0
  const throttle = makeLinkThrottle({ now: () => nowMs }, 30)
  for (let i = 0; i < 30; i++) throttle.unknown('old')
  expect(() => throttle.unknown('old')).toThrow('Try again in 1 s')
  nowMs += 1_000
  throttle.unknown('old')
  expect(() => throttle.unknown('old')).toThrow('Try again in 2 s')
  for (let i = 0; i < 10_001; i++) throttle.unknown(`sender ${i}`)
  throttle.unknown('old')
})

test('IPv6 senders are throttled by /64', () => {
  expect(senderName('203.0.113.9')).toBe('203.0.113.9')
  expect(senderName('::ffff:203.0.113.9')).toBe('203.0.113.9')
  expect(senderName('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(senderName('2001:db8::6')).toBe(senderName('2001:0db8:0:0:ffff::1'))
  expect(senderName('::1')).toBe('0:0:0:0::/64')
})
