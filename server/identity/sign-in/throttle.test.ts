/** Password guessing is throttled, also in parallel and never for ever, in bounded memory. */
import { expect, test } from 'bun:test'
import { senderName } from '../../http/address.ts'
import { makeThrottle, type Throttle } from './throttle.ts'

const wrong = () => Promise.resolve(false)
const right = () => Promise.resolve(true)

async function statusOf(attempt: ReturnType<Throttle['attempt']>): Promise<string> {
  const settled = await attempt.then(
    (done) => (done.right ? 'right' : 'wrong'),
    (error: { code?: string }) => error.code ?? 'broken',
  )
  return settled
}

test('three tries are free, then the wait doubles from a second to a quarter of an hour', async () => {
  let nowMs = 1_000_000
  const throttle = makeThrottle({ now: () => 0, elapsed: () => nowMs })
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
  const throttle = makeThrottle({ now: () => wallMs, elapsed: () => nowMs })
  for (let i = 0; i < 3; i++) await throttle.attempt(['a'], wrong)
  wallMs -= 86_400_000
  expect(throttle.waitMs('a')).toBe(1_000)
  wallMs += 2 * 86_400_000
  expect(throttle.waitMs('a')).toBe(1_000)
  nowMs += 1_000
  expect(throttle.waitMs('a')).toBe(0)
})

test('of 100 concurrent wrong attempts three are checked; 100 correct ones all succeed', async () => {
  const throttle = makeThrottle({ now: () => 0 })
  let checked = 0
  const slowly = (answer: boolean) => async () => {
    checked++
    await Bun.sleep(1)
    return answer
  }
  const guesses = Array.from({ length: 60 }, () => statusOf(throttle.attempt(['a', 'b'], slowly(false))))
  expect(
    Object.entries(Object.groupBy(await Promise.all(guesses), (each) => each)).map(([name, all]) => [
      name,
      all?.length,
    ]),
  ).toEqual([
    ['wrong', 3],
    ['rate_limited', 57],
  ])
  expect(checked).toBe(3)
  const people = Array.from({ length: 60 }, () => statusOf(throttle.attempt(['c', 'd'], slowly(true))))
  expect(new Set(await Promise.all(people))).toEqual(new Set(['right']))
})

test('an attempt that throws is not counted and frees its slot', async () => {
  const throttle = makeThrottle({ now: () => 0 })
  for (let i = 0; i < 5; i++) {
    expect(await statusOf(throttle.attempt(['a'], () => Promise.reject(new Error('disk'))))).toBe('broken')
  }
  expect(await statusOf(throttle.attempt(['a'], wrong))).toBe('wrong')
  expect(throttle.waitMs('a')).toBe(0)
})

test('throttled attempts are counted since the last failure', async () => {
  let nowMs = 0
  const throttle = makeThrottle({ now: () => nowMs })
  for (let i = 0; i < 3; i++) expect((await throttle.attempt(['a'], wrong)).refusedBefore).toBe(0)
  for (let i = 0; i < 5; i++) expect(await statusOf(throttle.attempt(['a'], wrong))).toBe('rate_limited')
  nowMs += 1_000
  expect((await throttle.attempt(['a'], wrong)).refusedBefore).toBe(5)
})

test('a flood of names evicts the oldest first', async () => {
  const throttle = makeThrottle({ now: () => 0 })
  for (let i = 0; i < 3; i++) await throttle.attempt(['old'], wrong)
  for (let i = 0; i < 10_001; i++) await throttle.attempt([`name ${i}`], wrong)
  expect(throttle.waitMs('old')).toBe(0)
})

test('IPv6 senders are throttled by /64', () => {
  expect(senderName('203.0.113.9')).toBe('203.0.113.9')
  expect(senderName('::ffff:203.0.113.9')).toBe('203.0.113.9')
  expect(senderName('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(senderName('2001:db8::6')).toBe(senderName('2001:0db8:0:0:ffff::1'))
  expect(senderName('::1')).toBe('0:0:0:0::/64')
})
