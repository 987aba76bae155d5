/** Ranges end with the running hour, are whole steps long, and are compared with the same hours before. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { AppError } from '../errors.ts'
import { readQuery } from '../http/query.ts'
import { periodParameters, readPeriod, stepCount } from './period.ts'

const hourMs = 3_600_000
const read = (search: string, nowMs: number) =>
  readPeriod(readQuery(new Request(`http://x/${search}`), periodParameters), nowMs)
const now = Date.parse('2026-11-21T00:31:00Z')
const iso = (ms: number) => new Date(ms).toISOString().slice(0, 16)

test('the last 24 hours are 24 with the running one, compared with the same hours a day earlier', () => {
  const period = read('?range=24h', now)
  expect([iso(period.sinceMs), iso(period.untilMs)]).toEqual(['2026-11-20T01:00', '2026-11-21T01:00'])
  expect([iso(period.before.sinceMs), iso(period.before.untilMs)]).toEqual([
    '2026-11-19T01:00',
    '2026-11-20T01:00',
  ])
  expect([period.stepMs / hourMs, stepCount(period)]).toEqual([1, 24])
})

test('every running range: whole UTC steps, the running hour counted, as much before', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('24h', '7d', '30d'),
      fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2100, 0) }),
      (range, nowMs) => {
        const { sinceMs, untilMs, before, stepMs } = read(`?range=${range}`, nowMs)
        const lengthMs = { '24h': 24, '7d': 168, '30d': 720 }[range]! * hourMs
        expect(sinceMs % stepMs).toBe(0)
        expect(untilMs % hourMs).toBe(0)
        expect(untilMs > nowMs && untilMs - nowMs <= hourMs).toBe(true)
        expect(stepCount({ sinceMs, untilMs, stepMs } as never)).toBe(lengthMs / stepMs)
        expect(before.untilMs - before.sinceMs).toBe(untilMs - sinceMs)
        expect(sinceMs - before.sinceMs).toBe(lengthMs)
      },
    ),
  )
})

test('a chosen range is widened to whole steps and keeps its sites', () => {
  const period = read('?since=2026-11-01T01:30:00Z&until=2026-11-12&siteId=a&siteId=b&siteId=', now)
  expect([iso(period.sinceMs), iso(period.untilMs)]).toEqual(['2026-11-01T00:00', '2026-11-12T00:00'])
  expect([period.stepMs / hourMs, stepCount(period)]).toEqual([6, 44])
  expect(period.siteIds).toEqual(['a', 'b'])
  expect(iso(period.before.sinceMs)).toBe('2026-10-21T00:00')
})

test('what makes no range is refused by name', () => {
  for (const [search, path] of [
    ['?range=7w', 'range'],
    ['?range=constructor', 'range'],
    ['?until=2026-11-01', 'since'],
    ['?since=2026-11-02&until=2026-11-01', 'until'],
    ['?since=2026-11-02&range=7d', 'range'],
    ['?since=2020-01-01', 'since'],
  ] as const) {
    let named = ''
    try {
      read(search, now)
    } catch (error) {
      named = error instanceof AppError ? (error.details.issues?.[0]?.path ?? '') : String(error)
    }
    expect([search, named]).toEqual([search, path])
  }
})
