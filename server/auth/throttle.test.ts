/** Password guessing slows down, never for ever, and memory stays bounded. */
import { expect, test } from 'bun:test'
import { makeThrottle, senderName } from './throttle.ts'

test('three tries are free, then the wait doubles from a second to a quarter of an hour', () => {
  let now = 1_000_000
  const throttle = makeThrottle({ now: () => now })
  const waits: number[] = []
  for (let i = 0; i < 16; i++) {
    now += throttle.waitMs('a')
    throttle.failed('a')
    waits.push(throttle.waitMs('a') / 1_000)
  }
  expect(waits).toEqual([0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900])
  expect(throttle.waitMs('b')).toBe(0)
  now += 900_000
  expect(throttle.waitMs('a')).toBe(0)
  throttle.succeeded('a')
  throttle.failed('a')
  expect(throttle.waitMs('a')).toBe(0)
})

test('refused tries are counted since the last failure', () => {
  const throttle = makeThrottle({ now: () => 0 })
  expect(throttle.refused('a')).toBe(0)
  for (let i = 0; i < 3; i++) throttle.failed('a')
  expect([throttle.refused('a'), throttle.refused('a')]).toEqual([1, 2])
  throttle.failed('a')
  expect(throttle.refused('a')).toBe(1)
})

test('a flood of names forgets the oldest first', () => {
  const throttle = makeThrottle({ now: () => 0 })
  for (let i = 0; i < 3; i++) throttle.failed('old')
  for (let i = 0; i < 10_001; i++) throttle.failed(`name ${i}`)
  expect(throttle.waitMs('old')).toBe(0)
})

test('an IPv6 sender is its /64', () => {
  expect(senderName('203.0.113.9')).toBe('203.0.113.9')
  expect(senderName('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(senderName('2001:db8::6')).toBe(senderName('2001:0db8:0:0:ffff::1'))
  expect(senderName('::1')).toBe('0:0:0:0::/64')
})
