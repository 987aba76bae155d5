/** Times in a query string: every form of the contract, and rejected ones. */
import { expect, test } from 'bun:test'
import { AppError } from '../errors.ts'
import { parseQueryTime } from './query.ts'

test('parses every form as UTC', () => {
  const noon = Date.UTC(2026, 5, 23, 12)
  for (const text of ['2026-06-23T12:00:00Z', '2026-06-23T14:00:00+02:00', '2026-06-23T14:00:00.000 02:00']) {
    expect(parseQueryTime('since', text)).toBe(noon)
  }
  expect(parseQueryTime('since', '2026-06-23')).toBe(Date.UTC(2026, 5, 23))
})

test('rejects everything else and names the parameter', () => {
  for (const text of [
    '',
    '2026',
    '2026-13-01',
    '2026-02-29',
    '12:00',
    '1767225600',
    '2026-06-23 12:00:00Z',
  ]) {
    try {
      parseQueryTime('until', text)
      expect(text).toBe('refused')
    } catch (error) {
      expect(error).toBeInstanceOf(AppError)
      expect((error as AppError).details.issues?.[0]?.path).toBe('until')
    }
  }
})
