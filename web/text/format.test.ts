/** Times and numbers are formatted the same for every time zone of the test machine. */
import { describe, expect, test } from 'bun:test'
import {
  ago,
  bytesText,
  compactCount,
  count,
  counted,
  dayName,
  duration,
  eventTime,
  exactDuration,
  fullTime,
  hourTime,
  isoWithOffset,
  localSentence,
  minuteTime,
  monthName,
  shortTime,
  utcTime,
  zoneMark,
} from './format.ts'

const timeMs = Date.parse('2026-06-23T12:00:01.482Z')
const berlin = 'Europe/Berlin'

describe('numbers', () => {
  test('are grouped, abbreviated and combined with their noun', () => {
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
  test('in a list are shorter when they are recent', () => {
    expect(eventTime(timeMs, Date.parse('2026-06-23T20:00:00Z'), berlin)).toBe('14:00:01.482')
    expect(eventTime(timeMs, Date.parse('2026-06-24T20:00:00Z'), berlin)).toBe('23 Jun 14:00:01')
    expect(eventTime(timeMs, Date.parse('2027-06-24T20:00:00Z'), berlin)).toBe('23 Jun 2026 14:00')
  })

  test('depend on the zone for the meaning of today', () => {
    const late = Date.parse('2026-06-23T23:30:00Z')
    expect(eventTime(late, Date.parse('2026-06-24T10:00:00Z'), berlin)).toBe('01:30:00.000')
    expect(eventTime(late, Date.parse('2026-06-24T10:00:00Z'), 'UTC')).toBe('23 Jun 23:30:00')
  })

  test('in full name the zone; UTC times are sortable', () => {
    expect(fullTime(timeMs, 'UTC')).toBe('Tue 23 Jun 2026, 12:00:01.482 UTC')
    for (let month = 1; month <= 12; month++) {
      const text = `2026-${`${month}`.padStart(2, '0')}-05`
      expect(utcTime(Date.parse(`${text}T01:02:03.004Z`))).toBe(`${text} 01:02:03.004 UTC`)
    }
  })

  test('relative', () => {
    const since = (ms: number): string => ago(timeMs - ms, timeMs, 'UTC')
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

test('durations have a readable unit and never round up to 1,000 of the smaller one', () => {
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

test('measured durations keep two digits', () => {
  const texts = [84, 59_949, 78_000, 3_596_000, 3_598_000, 5_400_000, 150 * 86_400_000].map(exactDuration)
  expect(texts).toEqual(['84 ms', '59.9 s', '1.3 min', '59.9 min', '1.0 h', '1.5 h', '150 d'])
})

test('sizes have a readable unit', () => {
  const texts = [0, 1, 999, 1_000, 1_500, 999_499, 999_500, 1_000_000, 1_048_576, 5e12].map(bytesText)
  expect(texts).toEqual([
    '0 bytes',
    '1 byte',
    '999 bytes',
    '1.0 kB',
    '1.5 kB',
    '999 kB',
    '1.0 MB',
    '1.0 MB',
    '1.0 MB',
    '5.0 TB',
  ])
})

test('short times omit zero seconds', () => {
  expect(shortTime(timeMs, 'UTC')).toBe('23 Jun 12:00:01')
  expect(shortTime(timeMs - 1_482, 'UTC')).toBe('23 Jun 12:00')
})

test('times in files have the offset of the zone, which distinguishes the repeated hour in autumn', () => {
  const formatIso = (text: string, zone: string) => isoWithOffset(Date.parse(text), zone)
  expect(formatIso('2026-10-25T00:30:00Z', berlin)).toBe('2026-10-25T02:30:00.000+02:00')
  expect(formatIso('2026-10-25T01:30:00Z', berlin)).toBe('2026-10-25T02:30:00.000+01:00')
  expect(formatIso('2026-06-23T12:00:00.482Z', 'America/St_Johns')).toBe('2026-06-23T09:30:00.482-02:30')
  expect(formatIso('2026-06-23T12:00:00Z', 'Asia/Kathmandu')).toBe('2026-06-23T17:45:00.000+05:45')
  expect(formatIso('2026-06-23T12:00:00Z', 'UTC')).toBe('2026-06-23T12:00:00.000Z')
  for (const zone of ['UTC', berlin, 'America/St_Johns', 'Asia/Kathmandu'])
    expect(Date.parse(isoWithOffset(timeMs, zone))).toBe(timeMs)
})

test('hours, days and months name the zone, and the year unless it is the current one', () => {
  const nowMs = Date.parse('2026-11-22T00:00:00Z')
  expect(hourTime(timeMs, berlin, nowMs)).toBe('Tue 23 Jun, 14:00')
  expect(dayName(timeMs, berlin, Date.parse('2027-01-01T12:00:00Z'))).toBe('Tue 23 Jun 2026')
  expect(minuteTime(timeMs, 'Asia/Kathmandu')).toBe('23 Jun 2026, 17:45 GMT+5:45')
  expect([monthName(timeMs, 'UTC'), zoneMark(timeMs, berlin)]).toEqual(['June 2026', 'CEST'])
})

test('sentences of the server have local times, and no line ends between a number and its percent sign', () => {
  const sentence = 'Deliveries to http://receiver/ have failed since 2026-06-23T12:00:01.482Z, 8.2 % of all.'
  expect(localSentence(sentence, berlin)).toBe(
    'Deliveries to http://receiver/ have failed since 23 Jun 2026, 14:00 CEST, 8.2\u00a0% of all.',
  )
  const silence = 'Alert: No events for 45 minutes. The last event arrived at 2026-06-23T12:00:01.482Z.'
  expect(localSentence(silence, berlin)).toEndWith('arrived at 23 Jun 2026, 14:00 CEST.')
  for (const name of ['New vendor: x 2026-06-23T12:00:01.482Z.', 'No events for 2026-99-99T99:99:99.999Z.'])
    expect(localSentence(name, berlin)).toBe(name)
})

test('no other file of the dashboard formats times, so all are in one zone', async () => {
  const web = `${import.meta.dir}`
  const clockFiles = /^(clock|format|zone)\.ts$/
  const written =
    /toISOString|DateTimeFormat|toLocale\w*String|getUTC|\.get(Hours|Date|Month|FullYear)\(|replace\('T'/
  const matches: string[] = []
  for await (const name of new Bun.Glob('**/*.{ts,tsx}').scan(web)) {
    if (name.includes('.test.') || clockFiles.test(name)) continue
    if (written.test(await Bun.file(`${web}/${name}`).text())) matches.push(name)
  }
  expect(matches).toEqual([])
})
