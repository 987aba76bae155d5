/** Samples of rejected events: their first issue, and an excerpt of at most 4 KiB of whole characters. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { exampleEvent } from '../../tests/fuzz/any-event.ts'
import { AppError } from '../errors.ts'
import { acceptEvents } from './accept.ts'
import { eventSamples, requestSample } from './rejected.ts'

const key = { id: 'key_1', orgId: 'org_1' }

test('a rejected event becomes a sample with its first issue and its excerpt', () => {
  const bad = JSON.stringify({ ...exampleEvent, type: 7, tool: 8 })
  const { rejected } = acceptEvents(`{"events":[${bad}]}`, 'application/json', [])
  expect(eventSamples(key, 5, rejected)).toEqual([
    {
      orgId: 'org_1',
      keyId: 'key_1',
      atMs: 5,
      code: 'wrong_type',
      message: 'must be a string',
      path: 'type',
      excerpt: bad,
    },
  ])
})

test('a rejected request becomes a sample with its code', () => {
  const error = new AppError('invalid_json', 'The body is not valid JSON.')
  expect(requestSample(key, 5, error, '{"events":[\0')).toEqual({
    orgId: 'org_1',
    keyId: 'key_1',
    atMs: 5,
    code: 'invalid_json',
    message: 'The body is not valid JSON.',
    path: '',
    excerpt: '{"events":[\u2400',
  })
  const issues = [{ path: 'events', code: 'required', message: 'is required' }]
  const missing = new AppError('invalid_body', 'The field "events" is required.', { issues })
  expect(requestSample(key, 5, missing, '{}').path).toBe('events')
})

test('a sample of NULs is as short as any other', () => {
  const error = new AppError('invalid_json', 'The body is not valid JSON.')
  expect(requestSample(key, 5, error, '\0'.repeat(5_000)).excerpt).toBe('\u2400'.repeat(1_365))
})

test('samples have at most 4 KiB of whole characters', () => {
  const error = new AppError('invalid_json', 'The body is not valid JSON.')
  const long = fc.tuple(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 5 }),
    fc.integer({ min: 800, max: 9_000 }),
  )
  fc.assert(
    fc.property(long, ([unit, count]) => {
      const text = unit.repeat(count)
      const { excerpt } = requestSample(key, 5, error, text)
      expect(Buffer.byteLength(excerpt)).toBeLessThanOrEqual(4_096)
      expect(excerpt.isWellFormed()).toBe(true)
      expect(excerpt).not.toContain('\0')
      if (!unit.includes('\0')) expect(text.startsWith(excerpt)).toBe(true)
    }),
    { numRuns: 50 },
  )
})
