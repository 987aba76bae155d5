/** Ranges end with the current hour, begin at one instant everywhere, and are compared with the previous period. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { AppError } from '../errors.ts'
import { readQuery } from '../http/request.ts'
import { steps, wallOf } from '../text/time-zone.ts'
import { periodParameters, readPeriod, stepAt, stepCount } from './period.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

const hourMs = 3_600_000
const read = (search: string, nowMs: number) =>
  readPeriod(readQuery(new Request(`http://x/${search}`), periodParameters), nowMs)
const now = Date.parse('2026-11-21T00:31:00Z')
const iso = (ms: number) => new Date(ms).toISOString().slice(0, 16)

test('the last 24 hours begin with the hour 24 hours ago, and are compared with the 24 hours before', () => {
  const period = read('?range=24h', now)
  expect([iso(period.sinceMs), iso(period.untilMs)]).toEqual(['2026-11-20T00:00', '2026-11-21T01:00'])
  expect([iso(period.before.sinceMs), iso(period.before.untilMs)]).toEqual([
    '2026-11-19T00:00',
    '2026-11-20T00:00',
  ])
  expect([period.step, stepCount(period)]).toEqual(['hour', 25])
})

test('the last N days begin N × 24 hours before the running hour, in every zone', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('24h', '7d', '30d', '90d'),
      fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu'),
      fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2100, 0) }),
      (range, zone, nowMs) => {
        const { sinceMs, untilMs, before, edges } = read(`?range=${range}&zone=${zone}`, nowMs)
        const lengthMs = { '24h': 24, '7d': 168, '30d': 720, '90d': 2_160 }[range]! * hourMs
        const hour = nowMs - (nowMs % hourMs)
        expect([sinceMs, untilMs]).toEqual([hour - lengthMs, hour + hourMs])
        expect(before).toEqual({ sinceMs: sinceMs - lengthMs, untilMs: sinceMs })
        // Only the first step is cut, and the last one runs.
        const short = edges.slice(1).map((end, step) => end - edges[step]!)
        expect(Math.min(...short.slice(1))).toBeGreaterThanOrEqual(short[0]! < short[1]! ? short[0]! : hourMs)
      },
    ),
  )
})

test('a custom range is widened to whole steps and keeps its sites', () => {
  const period = read('?since=2026-11-01T01:30:00Z&until=2026-11-12&siteId=a&siteId=b&siteId=', now)
  expect([iso(period.sinceMs), iso(period.untilMs)]).toEqual(['2026-11-01T00:00', '2026-11-12T00:00'])
  expect([period.step, stepCount(period)]).toEqual(['sixHours', 44])
  expect(period.siteIds).toEqual(['a', 'b'])
  expect(iso(period.before.sinceMs)).toBe('2026-10-21T00:00')
})

test('an empty zone is no zone', () => {
  expect(read('?range=7d&zone=', now)).toEqual(read('?range=7d', now))
})

test('rejects an invalid range and names the parameter', () => {
  for (const [search, path] of [
    ['?range=7w', 'range'],
    ['?range=constructor', 'range'],
    ['?until=2026-11-01', 'since'],
    ['?since=2026-11-02&until=2026-11-01', 'until'],
    ['?since=2026-11-02&range=7d', 'range'],
    ['?range=7d&zone=Europe/Atlantis', 'zone'],
    [`?range=7d&zone=${'x'.repeat(5_000)}`, 'zone'],
  ] as const) {
    let issuePath = ''
    try {
      read(search, now)
    } catch (error) {
      issuePath = error instanceof AppError ? (error.details.issues?.[0]?.path ?? '') : String(error)
    }
    expect([search, issuePath]).toEqual([search, path])
  }
})

const dayMs = 24 * hourMs
const zones = [
  'UTC',
  'Europe/Berlin',
  'America/St_Johns',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'America/New_York',
]

test('in every zone the steps of a range are contiguous, and an hour is in exactly one', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom('24h', '7d', '30d', '90d', '12m', 'all'),
      fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2100, 0) }),
      fc.nat(5_000),
      (zone, range, nowMs, firstDays) => {
        const firstMs = Math.floor((nowMs - firstDays * dayMs) / hourMs) * hourMs
        const query = new Request(`http://x/?range=${range}&zone=${zone}`)
        const period = readPeriod(readQuery(query, periodParameters), nowMs, firstMs)
        const { edges, sinceMs, untilMs, before: periodBefore } = period
        expect(edges[0]).toBe(sinceMs)
        expect(edges.at(-1)).toBeGreaterThanOrEqual(untilMs)
        expect(edges.at(-2)).toBeLessThan(untilMs)
        expect(edges.every((ms, index) => ms % hourMs === 0 && (index === 0 || ms > edges[index - 1]!))).toBe(
          true,
        )
        expect(untilMs > nowMs && untilMs - nowMs <= hourMs).toBe(true)
        expect(periodBefore.untilMs).toBeLessThanOrEqual(sinceMs)
        expect(stepCount(period)).toBeLessThanOrEqual(210)
        const [first, last] = [sinceMs, untilMs - hourMs].map((ms) => stepAt(period, ms))
        expect([first, last]).toEqual([0, stepCount(period) - 1])
        if (range === 'all') expect(sinceMs).toBeLessThanOrEqual(firstMs)
      },
    ),
    { numRuns: 300 },
  )
})

test('days in Berlin have 23 and 25 hours at clock changes, from midnight to midnight', () => {
  const days = (search: string) => {
    const { edges, onTheHour } = read(search, now)
    expect(onTheHour).toBe(true)
    return edges.slice(1).map((ms, index) => (ms - edges[index]!) / hourMs)
  }
  const spring = days('?since=2026-02-28T23:00:00Z&until=2026-05-31T22:00:00Z&zone=Europe/Berlin')
  expect(spring).toHaveLength(92)
  expect(spring.filter((hours) => hours !== 24)).toEqual([23])
  expect(spring.indexOf(23)).toBe(28) // 29 March
  const autumn = days('?since=2026-09-30T22:00:00Z&until=2026-12-31T23:00:00Z&zone=Europe/Berlin')
  expect(autumn.indexOf(25)).toBe(24) // 25 October
})

test('in a zone with a half-hour offset the steps are UTC hours and `onTheHour` is false', () => {
  const { edges, onTheHour } = read('?range=90d&zone=Asia/Kolkata', now)
  expect(onTheHour).toBe(false)
  expect(edges.slice(1).every((ms) => wallOf(ms, 'Asia/Kolkata') % dayMs === 23.5 * hourMs)).toBe(true)
})

test('all time starts at the first hour; a period with expired hours has no comparison', () => {
  const firstMs = Date.parse('2019-05-05T05:00:00Z')
  const query = readQuery(new Request('http://x/?range=all'), periodParameters)
  const allPeriod = readPeriod(query, now, firstMs)
  expect([iso(allPeriod.sinceMs), allPeriod.step]).toEqual(['2019-05-01T00:00', 'month'])
  expect(allPeriod.before.untilMs - allPeriod.before.sinceMs).toBe(0)
  expect(readPeriod(query, now, null).sinceMs).toBe(read('?range=24h', now).sinceMs + hourMs)
  const year = read('?range=12m', now)
  expect([iso(year.sinceMs), year.step]).toEqual(['2025-11-17T00:00', 'week'])
  const oldest = iso(now - (countsRetentionDays - 1) * dayMs).slice(0, 10)
  const longest = read(`?since=${oldest}`, now)
  expect(longest.before.sinceMs).toBe(longest.sinceMs)
  expect(read('?range=90d', now).before.sinceMs).toBeLessThan(read('?range=90d', now).sinceMs)
  expect(read('?since=2020-01-01', now).step).toBe('month')
})
