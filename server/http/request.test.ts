/** Query strings: rejected parameters, errors that name them, and every form of a time. */
import { expect, test } from 'bun:test'
import { AppError } from '../errors.ts'
import { parseQueryTime, readQuery } from './request.ts'

const allowed = { limit: 'one', type: 'many' } as const
const read = (query: string) => readQuery(new Request(`http://x/v1/traces${query}`), allowed)

function refusal(query: string): unknown {
  try {
    read(query)
  } catch (error) {
    if (error instanceof AppError)
      return [error.code, error.details.issues?.[0]?.path, error.details.issues?.[0]?.code]
    throw error
  }
  return null
}

test('reads single and repeated values', () => {
  const query = read('?limit=5&type=a&type=&type=b%26c')
  expect(query.one('limit')).toBe('5')
  expect(query.many('type')).toEqual(['a', '', 'b&c'])
  expect(query.one('absent')).toBeUndefined()
  expect(read('').many('type')).toBeUndefined()
})

test('names the parameter it rejects', () => {
  expect(refusal('?nope=1')).toEqual(['invalid_query', 'nope', 'unknown'])
  expect(refusal('?__proto__=1')).toEqual(['invalid_query', '__proto__', 'unknown'])
  expect(refusal('?limit=1&limit=2')).toEqual(['invalid_query', 'limit', 'repeated'])
  expect(refusal(`?type=${'a'.repeat(2_001)}`)).toEqual(['invalid_query', 'type', 'too_long'])
  expect(refusal(`?${'type=a&'.repeat(101)}`)).toEqual(['invalid_query', 'type', 'too_many'])
  expect(refusal(`?${'x'.repeat(500)}=1`)).toEqual(['invalid_query', `${'x'.repeat(60)}…`, 'unknown'])
})

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
