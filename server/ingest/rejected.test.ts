/** How rejected events are reported: guard rails of the store, requests that store nothing, and samples. */
import fc from 'fast-check'
import { expect, test } from 'bun:test'
import { exampleEvent } from '../../tests/support/events.ts'
import { acceptEvents } from './accept.ts'
import { allRejected, eventSamples, guardRailRejected, requestSample } from './rejected.ts'
import { AppError } from '../errors.ts'

const accept = (events: unknown[], siteIds: string[]) =>
  acceptEvents(JSON.stringify({ events }), 'application/json', siteIds)

test('a request whose events are all for other sites is 403 with its reason', () => {
  const error = allRejected(accept([exampleEvent, exampleEvent], ['other']).rejected)
  expect([error.status, error.code, error.details.reason]).toEqual([403, 'forbidden', 'wrong_site'])
  expect(error.details.issues?.map(({ index, id, code }) => `${index} ${id} ${code}`)).toEqual([
    '0 evt_1 wrong_site',
    '1 evt_1 wrong_site',
  ])
})

test('a request whose events are all invalid for other or mixed reasons is 400 with the issues', () => {
  const error = allRejected(accept([exampleEvent, { ...exampleEvent, id: 7 }], ['other']).rejected)
  expect([error.status, error.code, error.details.reason]).toEqual([400, 'invalid_body', undefined])
  expect(error.details.issues?.map((issue) => issue.code)).toEqual(['wrong_site', 'wrong_type'])
})

test('an event beyond a guard rail is reported with its index, id and excerpt', () => {
  const [record] = accept([exampleEvent], []).records
  if (record === undefined) throw new Error('the example is accepted')
  for (const [member, max] of [
    ['type', 1_000],
    ['outcome', 100],
    ['siteId', 1_000],
  ] as const) {
    expect(guardRailRejected(4, { index: 2, member, id: record.id, json: record.json })).toEqual({
      index: 4,
      issues: [
        {
          path: member,
          code: 'too_many',
          message: `an organization can have at most ${max} distinct values`,
          index: 4,
          id: 'evt_1',
        },
      ],
      excerpt: JSON.stringify(exampleEvent),
    })
  }
})

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
