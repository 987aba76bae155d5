/** Periods of scheduled reports across zones and clock changes, and what the options accept. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { reportsConfig } from '../cli/report-options.ts'
import { UsageError } from '../errors.ts'
import { mailServer } from './mail.ts'
import { duePeriods, nextCompleteMs, reportId, reportRules } from './schedule.ts'

const parseMs = (text: string): number => Date.parse(text)
const shown = (
  every: 'day' | 'week' | 'month',
  zone: string,
  now: string,
  lastSentAt: string | null = null,
) =>
  duePeriods({ every, zone }, parseMs(now), lastSentAt === null ? null : parseMs(lastSentAt)).map(
    ({ name, sinceMs, untilMs }) =>
      `${name} ${new Date(sinceMs).toISOString().slice(0, 16)} ${(untilMs - sinceMs) / 3_600_000}`,
  )

describe('periods', () => {
  test('days have 23 and 25 hours when clocks change, and midnight that does not exist is its next moment', () => {
    expect(shown('day', 'Europe/Berlin', '2026-03-30T08:00Z')).toEqual(['2026-03-29 2026-03-28T23:00 23'])
    expect(shown('day', 'Europe/Berlin', '2026-10-26T08:00Z')).toEqual(['2026-10-25 2026-10-24T22:00 25'])
    expect(shown('day', 'Africa/Cairo', '2026-04-25T08:00Z')).toEqual(['2026-04-24 2026-04-23T22:00 23'])
    expect(shown('week', 'America/New_York', '2026-03-09T12:00Z')).toEqual([
      '2026-03-02 2026-03-02T05:00 167',
    ])
  })

  test('months of each length, weeks from Monday, zones far from UTC or with half hours', () => {
    expect(shown('month', 'UTC', '2026-03-31T12:00Z')).toEqual(['2026-02 2026-02-01T00:00 672'])
    expect(shown('month', 'UTC', '2028-03-01T00:10Z')).toEqual(['2028-02 2028-02-01T00:00 696'])
    expect(shown('month', 'UTC', '2026-01-01T00:10Z')).toEqual(['2025-12 2025-12-01T00:00 744'])
    expect(shown('week', 'UTC', '2026-11-22T23:59Z')).toEqual(['2026-11-09 2026-11-09T00:00 168'])
    expect(shown('week', 'UTC', '2026-11-23T00:10Z')).toEqual(['2026-11-16 2026-11-16T00:00 168'])
    expect(shown('day', 'Pacific/Kiritimati', '2026-11-22T12:00Z')).toEqual([
      '2026-11-22 2026-11-21T10:00 24',
    ])
    // Events are counted per UTC hour, so days begin with the hour that contains their midnight.
    expect(shown('day', 'Asia/Kolkata', '2026-11-22T20:00Z')).toEqual(['2026-11-22 2026-11-21T18:00 24'])
  })

  test('a period is complete ten minutes after its end', () => {
    expect(shown('day', 'UTC', '2026-11-23T00:09:59Z')[0]).toStartWith('2026-11-21')
    expect(shown('day', 'UTC', '2026-11-23T00:10:00Z')[0]).toStartWith('2026-11-22')
    expect(nextCompleteMs({ every: 'day', zone: 'UTC' }, parseMs('2026-11-23T00:10Z'))).toBe(
      parseMs('2026-11-24T00:10Z'),
    )
  })

  test('periods that were missed follow, at most seven; a clock that was set back repeats none', () => {
    const missed = shown('day', 'UTC', '2026-11-23T12:00Z', '2026-11-20T00:00Z').map((period) =>
      period.slice(0, 10),
    )
    expect(missed).toEqual(['2026-11-20', '2026-11-21', '2026-11-22'])
    expect(shown('day', 'UTC', '2026-11-23T12:00Z', '2026-01-01T00:00Z')).toHaveLength(7)
    expect(shown('day', 'UTC', '2026-11-23T12:00Z', '2026-11-23T00:00Z')).toEqual([])
    expect(shown('day', 'UTC', '2026-11-20T12:00Z', '2026-11-23T00:00Z')).toEqual([])
    // Samoa skipped 2011-12-30.
    const samoa = shown('day', 'Pacific/Apia', '2011-12-31T12:00Z', '2011-12-29T10:00Z')
    expect(samoa.map((period) => period.slice(0, 10))).toEqual(['2011-12-29', '2011-12-31'])
  })

  test('law: run at any times, the periods join without a gap and none is repeated', () => {
    const zones = fc.constantFrom(
      'UTC',
      'Europe/Berlin',
      'America/Sao_Paulo',
      'Asia/Kathmandu',
      'Pacific/Apia',
    )
    const every = fc.constantFrom('day' as const, 'week' as const, 'month' as const)
    const waits = fc.array(fc.integer({ min: 1, max: 6 * 24 * 60 }), { minLength: 1, maxLength: 40 })
    const start = fc.integer({ min: parseMs('2011-01-01T00:00Z'), max: parseMs('2027-01-01T00:00Z') })
    fc.assert(
      fc.property(zones, every, start, waits, (zone, interval, startMs, minutes) => {
        let now = startMs
        let sentMs: number | null = null
        for (const wait of minutes) {
          for (const { sinceMs, untilMs } of duePeriods({ every: interval, zone }, now, sentMs)) {
            if (sentMs !== null) expect(sinceMs).toBe(sentMs)
            expect(untilMs).toBeLessThanOrEqual(now)
            sentMs = untilMs
          }
          now += wait * 60_000
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('options', () => {
  const tables = (...rows: object[]) => reportRules(JSON.stringify(rows))

  test('pairs of the flag and tables of the file', () => {
    expect(reportRules('week=/srv/reports, month=Ops@Example.com, day=webhook:a@b')).toEqual([
      { org: null, every: 'week', zone: 'UTC', siteIds: [], to: [{ folder: '/srv/reports' }] },
      { org: null, every: 'month', zone: 'UTC', siteIds: [], to: [{ email: 'ops@example.com' }] },
      { org: null, every: 'day', zone: 'UTC', siteIds: [], to: [{ webhook: 'a@b' }] },
    ])
    const ruleFields = {
      every: 'day',
      zone: 'Asia/Tokyo',
      sites: ['shop'],
      org: 'acme',
      folder: '/r',
      email: ['a@b.c'],
      webhook: ['ep_1', 'Ops team'],
    }
    expect(tables(ruleFields)).toEqual([
      {
        org: 'acme',
        every: 'day',
        zone: 'Asia/Tokyo',
        siteIds: ['shop'],
        to: [{ folder: '/r' }, { email: 'a@b.c' }, { webhook: 'ep_1' }, { webhook: 'Ops team' }],
      },
    ])
  })

  test('anything else is refused with what is accepted', () => {
    const refusal = (work: () => unknown): string => {
      try {
        work()
      } catch (error) {
        if (error instanceof UsageError) return error.message
        throw error
      }
      return 'accepted'
    }
    const row = { every: 'day', folder: '/r' }
    const cases: [() => unknown, string][] = [
      [() => reportRules('week'), 'is not EVERY=FOLDER, EVERY=EMAIL or EVERY=webhook:ENDPOINT'],
      [() => reportRules('year=/r'), 'every is day, week, month'],
      [() => reportRules('day=@x'), '"@x" is not an email address'],
      [() => tables({ folder: '/r' }), '[[report]] needs every as a string'],
      [() => tables({ every: 'day' }), '[[report]] needs folder, email or webhook'],
      [() => tables({ ...row, folder: '' }), '[[report]] needs folder as a string'],
      [() => tables({ ...row, zone: 'Mars' }), '"Mars" is not an IANA time zone'],
      [() => tables({ ...row, email: 'a@b.c' }), 'email of [[report]] must be a list of strings'],
      [() => tables({ ...row, email: ['a@b.c\r\nBcc: x@y.z'] }), 'is not an email address'],
      [
        () => tables({ ...row, email: Array.from({ length: 21 }, (_, n) => `a${n}@b.c`) }),
        'at most 20 addresses',
      ],
      [() => tables({ ...row, sites: ['x'.repeat(10_000)] }), 'a site has 1 to'],
      [() => tables({ ...row, url: 'x' }), '[[report]] has no "url"'],
      [() => tables({ ...row, webhook: 'x' }), 'webhook of [[report]] must be a list of strings'],
      [() => tables({ ...row, webhook: [''] }), 'named by its id or its label'],
      [() => reportRules('day=webhook:'), 'named by its id or its label'],
      [() => tables({ ...row, webhook: ['x', 'x'] }), 'webhook:x would receive the same daily report twice'],
      [
        () => tables({ ...row, webhook: Array.from({ length: 21 }, (_, n) => `${n}`) }),
        'at most 20 webhook endpoints',
      ],
      [() => tables(row, row), '/r would receive the same daily report twice'],
      [
        () => tables(...Array.from({ length: 101 }, (_, n) => ({ ...row, folder: `/${n}` }))),
        'at most 100 reports',
      ],
      [() => mailServer('http://a.example'), 'a mail server is smtp://'],
      [() => mailServer('smtp://user@a.example'), 'needs both a user name and a password'],
      [() => mailServer('smtp://a.example/path'), 'ends after host and port'],
      [() => mailServer('smtp://a:%zz@a.example'), 'is written %25'],
    ]
    for (const [work, message] of cases) expect(refusal(work)).toContain(message)
  })

  test('reports by email need a mail server and a sender', () => {
    const server = mailServer('smtps://mail.example')
    const settings = { report: reportRules('day=x@y.z'), 'smtp-url': server, 'smtp-from': 'a@b.c' }
    expect(reportsConfig(settings).mailServer).toEqual({ ...server, from: 'a@b.c' })
    const together = '--smtp-url and --smtp-from must be set together'
    expect(() => reportsConfig({ ...settings, 'smtp-from': null })).toThrow(together)
    const noMailSettings = { ...settings, 'smtp-url': null, 'smtp-from': null }
    expect(() => reportsConfig(noMailSettings)).toThrow('a report by email needs --smtp-url and --smtp-from')
    expect(reportsConfig({ ...noMailSettings, report: reportRules('day=/r') }).mailServer).toBeNull()
  })

  test('mail servers: default ports, encoded passwords, IPv6', () => {
    expect(mailServer('smtp://u:p%40%2F@mail.example')).toEqual({
      host: 'mail.example',
      port: 587,
      secure: false,
      login: { user: 'u', pass: 'p@/' },
    })
    expect(mailServer('smtps://[::1]')).toEqual({ host: '::1', port: 465, secure: true, login: null })
  })

  test('a report is named by its contents', () => {
    const rule = { every: 'day' as const, zone: 'UTC', siteIds: ['b', 'a'] }
    expect(reportId(rule, 'org_1')).toBe(reportId({ ...rule, siteIds: ['a', 'b'] }, 'org_1'))
    expect(reportId(rule, 'org_1')).not.toBe(reportId(rule, 'org_2'))
    expect(reportId(rule, 'org_1')).toMatch(/^report_[0-9a-f]{16}$/)
  })
})
