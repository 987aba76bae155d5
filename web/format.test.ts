/** Times and numbers read the same for everybody, whatever the zone of the test machine. */
import { describe, expect, test } from 'bun:test'
import {
  ago,
  bytesText,
  compactCount,
  count,
  counted,
  duration,
  eventTime,
  fullTime,
  shortTime,
  utcTime,
} from './format.ts'

const at = Date.parse('2026-06-23T12:00:01.482Z')
const berlin = 'Europe/Berlin'

describe('numbers', () => {
  test('are grouped, compacted and put with their noun', () => {
    expect(count(1_234_567)).toBe('1,234,567')
    expect([compactCount(318), compactCount(12_418), compactCount(3_200_000)]).toEqual([
      '318',
      '12.4k',
      '3.2m',
    ])
    expect([counted(1, 'event'), counted(2_000, 'event'), counted(0, 'reply', 'replies')]).toEqual([
      '1 event',
      '2,000 events',
      '0 replies',
    ])
  })
})

describe('times', () => {
  test('of a list shorten with nearness', () => {
    expect(eventTime(at, Date.parse('2026-06-23T20:00:00Z'), berlin)).toBe('14:00:01.482')
    expect(eventTime(at, Date.parse('2026-06-24T20:00:00Z'), berlin)).toBe('23 Jun 14:00:01')
    expect(eventTime(at, Date.parse('2027-06-24T20:00:00Z'), berlin)).toBe('23 Jun 2026 14:00')
  })

  test('know that today depends on the zone', () => {
    const late = Date.parse('2026-06-23T23:30:00Z')
    expect(eventTime(late, Date.parse('2026-06-24T10:00:00Z'), berlin)).toBe('01:30:00.000')
    expect(eventTime(late, Date.parse('2026-06-24T10:00:00Z'), 'UTC')).toBe('23 Jun 23:30:00')
  })

  test('in full name the zone; UTC is sortable in every month', () => {
    expect(fullTime(at, 'UTC')).toBe('Tue 23 Jun 2026, 12:00:01.482 UTC')
    for (let month = 1; month <= 12; month++) {
      const text = `2026-${`${month}`.padStart(2, '0')}-05`
      expect(utcTime(Date.parse(`${text}T01:02:03.004Z`))).toBe(`${text} 01:02:03.004 UTC`)
    }
  })

  test('ago', () => {
    const since = (ms: number): string => ago(at - ms, at, 'UTC')
    expect([since(-5_000), since(59_000), since(120_000), since(3 * 3_600_000), since(86_400_000)]).toEqual([
      'just now',
      'just now',
      '2 min ago',
      '3 h ago',
      '1 day ago',
    ])
    expect(since(60 * 86_400_000)).toBe('24 Apr 2026')
  })
})

test('durations take the unit that suits them and never round up to a thousand of the smaller one', () => {
  const cases: [number, string][] = [
    [0, '0 ms'],
    [0.42, '0.4 ms'],
    [84, '84 ms'],
    [999.4, '999 ms'],
    [999.6, '1.0 s'],
    [1_234, '1.2 s'],
    [180_000, '3 min'],
    [2 * 3_600_000, '2 h'],
    [150 * 86_400_000, '150 d'],
  ]
  for (const [ms, text] of cases) expect(duration(ms)).toBe(text)
})

test('sizes in the unit that suits them', () => {
  const texts = [0, 1, 1_000, 1_024, 1_536, 1_048_575, 1_048_576, 5 * 1_024 ** 4].map(bytesText)
  expect(texts).toEqual([
    '0 bytes',
    '1 byte',
    '1,000 bytes',
    '1.0 KB',
    '1.5 KB',
    '1.0 MB',
    '1.0 MB',
    '5.0 TB',
  ])
})

test('short times leave out seconds that say nothing', () => {
  expect(shortTime(at, 'UTC')).toBe('23 Jun 12:00:01')
  expect(shortTime(at - 1_482, 'UTC')).toBe('23 Jun 12:00')
})
