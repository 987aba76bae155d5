/** Clock jumps while the process runs, between processes, and across a reboot. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tempDir, type TempDir } from '../../tests/support/temp-dir.ts'
import { openDatabaseAdmin } from '../../db/open.ts'
import { startClockGuard, type ClockGuard, type GuardedTime } from './clock-guard.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.UTC(2026, 10, 22, 12)
const silent = { info() {}, warn() {}, error() {} }

let temp: TempDir
let wallMs: number
let uptimeMs: number
let bootId: string
let jumps: number[]

beforeEach(() => {
  temp = tempDir('clock-guard')
  wallMs = start
  uptimeMs = 5 * day
  bootId = 'boot-1'
  jumps = []
})
afterEach(() => temp.remove())

function guardOf(dataDir: string | null = temp.path, lastWriteMs: number | null = null): ClockGuard {
  const source = { now: () => wallMs, elapsed: () => uptimeMs }
  const time: GuardedTime = { source, uptime: () => uptimeMs, bootId }
  const guard = startClockGuard({ time, dataDir, lastWriteMs, log: silent })
  guard.onJump((byMs) => void jumps.push(byMs))
  return guard
}

function pass(ms: number): void {
  wallMs += ms
  uptimeMs += ms
}

/** Looks once a minute for so long. */
function lookFor(guard: ClockGuard, ms: number): void {
  for (let passed = 0; passed < ms; passed += 60_000) {
    pass(60_000)
    guard.hold()
  }
}

for (const jumpMs of [hour, -hour, day, -day, 400 * day, -400 * day]) {
  test(`a jump of ${jumpMs / hour} hours holds deletion until the clock is correct`, () => {
    const guard = guardOf()
    pass(hour)
    expect(guard.hold()).toBeNull()
    wallMs += jumpMs
    expect(guard.hold()).toMatchObject({ jumpMs, leftMs: day })
    pass(7_000)
    expect(guard.clock.now()).toBe(wallMs)
    wallMs -= jumpMs
    expect(guard.hold()).toBeNull()
    expect(jumps).toEqual([jumpMs, -jumpMs])
  })

  test(`a hold after a jump of ${jumpMs / hour} hours ends when confirmed, or after 24 steady hours`, () => {
    const guard = guardOf()
    wallMs += jumpMs
    expect(guard.confirm()).toMatchObject({ jumpMs })
    expect(guard.hold()).toBeNull()
    wallMs += jumpMs
    lookFor(guard, day - hour)
    expect(guard.hold()).toMatchObject({ leftMs: expect.any(Number) })
    lookFor(guard, 2 * hour)
    expect(guard.hold()).toBeNull()
  })

  test(`a jump of ${jumpMs / hour} hours between two processes of one boot is detected at start`, () => {
    const first = guardOf()
    first.run()
    pass(hour)
    first.stop()
    pass(10 * 60_000)
    wallMs += jumpMs
    const guard = guardOf()
    expect(guard.hold()).toMatchObject({ jumpMs })
    expect(jumps).toEqual([jumpMs])
    guard.run()
    guard.stop()
    pass(hour)
    // The next start continues it and reports no new jump.
    expect(guardOf().hold()).not.toBeNull()
    expect(jumps).toEqual([jumpMs])
    wallMs -= jumpMs
    expect(guardOf().hold()).toBeNull()
  })
}

test('the clock advances between two checks and jumps with the check that detects it', () => {
  const guard = guardOf(null)
  pass(500)
  expect(guard.clock.now()).toBe(start + 500)
  wallMs -= hour
  expect(guard.clock.now()).toBe(start + 500)
  guard.hold()
  expect(guard.clock.now()).toBe(start + 500 - hour)
})

test('arrival times never decrease when the clock is set back', () => {
  const guard = guardOf(null)
  pass(1_000)
  wallMs -= 400 * day
  guard.hold()
  pass(1_000)
  expect(guard.arrival()).toBe(start + 2_000)
  wallMs += 800 * day
  guard.hold()
  expect(guard.arrival()).toBe(wallMs)
  guard.confirm()
  wallMs -= 400 * day
  guard.hold()
  guard.confirm()
  expect(guard.arrival()).toBe(wallMs)
})

test('drift and corrections are not jumps; a clock that keeps drifting is', () => {
  const guard = guardOf(null)
  for (let hours = 0; hours < 24 * 30; hours++) {
    pass(hour)
    wallMs += 1_500
    expect(guard.hold()).toBeNull()
  }
  wallMs -= 5 * 60_000
  expect(guard.hold()).toBeNull()
  wallMs -= 6 * 60_000
  expect(guard.hold()).not.toBeNull()
  // A jump that is not steady counts its day anew.
  const unsteady = guardOf(null)
  wallMs += 400 * day
  lookFor(unsteady, day / 2)
  wallMs += hour
  lookFor(unsteady, day - hour)
  expect(unsteady.hold()).not.toBeNull()
})

test('after a reboot a day of downtime is plausible; a week or an earlier time is not', () => {
  const off = (ms: number) => {
    const guardBefore = guardOf()
    guardBefore.confirm()
    bootId = `${bootId}+`
    uptimeMs = 60_000
    wallMs += ms
    return guardOf().hold()
  }
  expect(off(day)).toBeNull()
  expect(off(7 * day)).toMatchObject({ jumpMs: 7 * day })
  jumps = []
  expect(off(-hour)).not.toBeNull()
  expect(jumps).toEqual([-hour])
})

test('a folder of an earlier release uses its newest write; one without data detects no jump', async () => {
  const { lastWriteMs } = openDatabaseAdmin(temp.path)
  const guard = async () => guardOf(temp.path, await lastWriteMs())
  expect((await guard()).hold()).toBeNull()
  writeFileSync(temp.join('sightglass.db'), 'x')
  utimesSync(temp.join('sightglass.db'), start / 1_000, start / 1_000)
  wallMs = start + hour
  expect((await guard()).hold()).toBeNull()
  wallMs = start + 400 * day
  expect((await guard()).hold()).not.toBeNull()
  writeFileSync(temp.join('clock'), '{"wallMs":')
  expect((await guard()).hold()).not.toBeNull()
})

test('a deleted folder is not created again', () => {
  const guard = guardOf(temp.join('gone'))
  guard.run()
  guard.stop()
  rmSync(temp.join('gone'), { recursive: true, force: true })
})
