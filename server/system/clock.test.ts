/**
 * RFC 3339 times: compared with the platform's parser where both accept the form, and a table of rejected ones.
 * Deadlines that share a timer.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseTime, startDeadline } from '../clock.ts'
import { runs } from '../../tests/support/runs.ts'

const pad = (value: number, width = 2): string => String(value).padStart(width, '0')

const ms = fc.integer({ min: 0, max: Date.UTC(2201, 0, 1) - 1 })
const offsetMinutes = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 })

test('every instant in every zone parses to its UTC millisecond', () => {
  fc.assert(
    fc.property(ms, offsetMinutes, fc.integer({ min: 0, max: 999_999 }), (instant, offset, nanos) => {
      const local = new Date(instant + offset * 60_000).toISOString().slice(0, -1)
      const sign = offset < 0 ? '-' : '+'
      const zone = `${sign}${pad(Math.trunc(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`
      expect(parseTime(local + zone)).toBe(instant)
      expect(parseTime(local + pad(nanos, 6) + zone)).toBe(instant)
      expect(parseTime(new Date(instant).toISOString())).toBe(instant)
    }),
    { numRuns: runs(2_000) },
  )
})

test('fractions of 1 to 9 digits are truncated to milliseconds', () => {
  const base = Date.UTC(2026, 5, 23, 12)
  expect(parseTime('2026-06-23T12:00:00Z')).toBe(base)
  expect(parseTime('2026-06-23T12:00:00.5Z')).toBe(base + 500)
  expect(parseTime('2026-06-23T12:00:00.05Z')).toBe(base + 50)
  expect(parseTime('2026-06-23T12:00:00.0009Z')).toBe(base)
  expect(parseTime('2026-06-23T12:00:00.123999999Z')).toBe(base + 123)
  expect(parseTime('2026-06-23t12:00:00.1z')).toBe(base + 100)
  expect(parseTime('2026-06-23T12:00:00-00:00')).toBe(base)
})

test('rejects dates that do not exist and years outside 1970 to 2200 in UTC', () => {
  expect(parseTime('2024-02-29T00:00:00Z')).toBe(Date.UTC(2024, 1, 29))
  expect(parseTime('2000-02-29T00:00:00Z')).toBe(Date.UTC(2000, 1, 29))
  expect(parseTime('1970-01-01T00:00:00Z')).toBe(0)
  expect(parseTime('1969-12-31T23:00:00-01:00')).toBe(0)
  expect(parseTime('2200-12-31T23:59:59.999Z')).toBe(Date.UTC(2201, 0, 1) - 1)
  expect(parseTime('2201-01-01T00:30:00+01:00')).toBe(Date.UTC(2200, 11, 31, 23, 30))
  const wrong = [
    '2023-02-29',
    '2100-02-29',
    '2026-02-30',
    '2026-04-31',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
  ]
  for (const day of wrong) expect(parseTime(`${day}T00:00:00Z`)).toBe(null)
  for (const year of ['0000', '0070', '0099', '1969', '2201', '9999']) {
    expect(parseTime(`${year}-06-15T00:00:00Z`)).toBe(null)
  }
  expect(parseTime('1970-01-01T00:30:00+01:00')).toBe(null)
  expect(parseTime('2200-12-31T23:30:00-01:00')).toBe(null)
})

test('a leap second parses as the next second, and only where one is possible', () => {
  expect(parseTime('1990-12-31T23:59:60Z')).toBe(Date.UTC(1991, 0, 1))
  expect(parseTime('1990-12-31T15:59:60.25-08:00')).toBe(Date.UTC(1991, 0, 1) + 250)
  expect(parseTime('2012-06-30T23:59:60Z')).toBe(Date.UTC(2012, 6, 1))
  expect(parseTime('2012-07-01T01:59:60+02:00')).toBe(Date.UTC(2012, 6, 1))
  const wrong = [
    '2026-06-23T23:59:60Z',
    '2026-12-31T22:59:60Z',
    '2026-12-31T23:58:60Z',
    '2026-12-31T23:59:61Z',
  ]
  for (const text of [...wrong, '2200-12-31T23:59:60Z']) expect(parseTime(text)).toBe(null)
})

test('every other spelling is rejected', () => {
  const wrong = [
    '',
    'now',
    '0',
    '2026',
    '2026-06-23',
    '2026-06-23T12:00Z',
    '2026-06-23T12:00:00',
    '20260623T120000Z',
    '2026-06-23 12:00:00Z',
    ' 2026-06-23T12:00:00Z',
    '2026-06-23T12:00:00Z ',
    '2026-06-23T12:00:00ZZ',
    '2026-06-23T24:00:00Z',
    '2026-06-23T12:60:00Z',
    '2026-06-23T12:00:00.Z',
    '2026-06-23T12:00:00,5Z',
    '2026-06-23T12:00:00.1234567890Z',
    '2026-06-23T12:00:00.12a4Z',
    '2026-06-23T12:00:00+24:00',
    '2026-06-23T12:00:00+01:60',
    '2026-06-23T12:00:00+0100',
    '2026-06-23T12:00:00+1:00',
    '2026-06-23T12:00:00+01:00Z',
    '2026-06-23T12:00:00 01:00',
    '2026-6-23T12:00:00Z',
    '+2026-06-23T12:00:00Z',
    '２０２６-06-23T12:00:00Z',
    '2026-06-23T12:00:00\u2212 1:00',
    '2026-06-23T12:00:00.5',
    '2026/06/23T12:00:00Z',
    '2026-06-23T12-00-00Z',
    '2026-06-23T12:00:00Z\n',
    '2026-06-23T-1:00:00Z',
    '2026-06-23T1e:00:00Z',
  ]
  for (const text of wrong) expect(parseTime(text)).toBe(null)
})

test('a changed character is accepted only if the platform accepts the time', () => {
  const base = '2026-06-23T12:34:56.789+01:30'
  const change = fc.tuple(
    fc.nat(base.length - 1),
    fc.string({ minLength: 0, maxLength: 2, unit: 'binary-ascii' }),
  )
  fc.assert(
    fc.property(change, ([index, piece]) => {
      const text = base.slice(0, index) + piece + base.slice(index + 1)
      const parsedMs = parseTime(text)
      if (parsedMs !== null) expect(Date.parse(text.toUpperCase())).toBe(parsedMs)
    }),
    { numRuns: runs(3_000) },
  )
})

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
      whens.forEach((timing, index) => timing === 'at once' && deadlines[index]?.end())
      await Bun.sleep(1)
      whens.forEach((timing, index) => (timing === 'later' || timing === 'twice') && deadlines[index]?.end())
      whens.forEach((timing, index) => timing === 'twice' && deadlines[index]?.end())
      const expected: number[] = []
      whens.forEach((timing, index) => {
        const isEnded = timing === 'when the one before is late' && expected.at(-1) === index - 1 && index > 0
        if (timing === 'never' || (timing === 'when the one before is late' && !isEnded)) expected.push(index)
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
