/** `Retry-After` in every form that HTTP has, beside those that receivers send anyway. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { limits } from '../../limits.ts'
import { readRetryAfter } from './http.ts'

const nowMs = Date.UTC(2026, 10, 29, 8, 49, 37)
const long = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/** The three forms of a date, from the text of its UTC string. */
function formsOf(ms: number): string[] {
  const [weekday = '', day = '', month = '', year = '', clock = ''] = new Date(ms).toUTCString().split(' ')
  const name = long[new Date(ms).getUTCDay()]!
  return [
    `${weekday} ${day} ${month} ${year} ${clock} GMT`,
    `${name}, ${day}-${month}-${year.slice(2)} ${clock} GMT`,
    `${weekday.slice(0, 3)} ${month} ${String(Number(day)).padStart(2, ' ')} ${clock} ${year}`,
  ]
}

test('a date has the same meaning in each of its forms, and never exceeds the limit', () => {
  fc.assert(
    fc.property(fc.integer({ min: -100_000, max: 2 * 365 * 86_400 }), (seconds) => {
      const expected = Math.min(Math.max(0, seconds * 1_000), limits.webhookRetryAfterMsMax)
      for (const form of formsOf(nowMs + seconds * 1_000))
        expect([form, readRetryAfter(form, nowMs)]).toEqual([form, expected])
    }),
  )
})

test('seconds, with a fraction, in quotes or between spaces', () => {
  const read = ['120', '120.0', '0.5', '"120"', ' 120 ', '0'].map((text) => readRetryAfter(text, nowMs))
  expect(read).toEqual([120_000, 120_000, 500, 120_000, 120_000, 0])
})

test('anything else is ignored', () => {
  const wrong = ['', '-1', 'soon', '2026-11-29', '12e3', 'Sun, 99 Nov 2026 08:49:37 GMT', '1,2', null]
  for (const text of wrong) expect([text, readRetryAfter(text, nowMs)]).toEqual([text, null])
})
