/** How rejected events are reported: guard rails of the store, and requests that store nothing. */
import { expect, test } from 'bun:test'
import { exampleEvent } from '../../tests/fuzz/any-event.ts'
import { acceptEvents } from './accept.ts'
import { allRejected, guardRailRejected } from './rejected.ts'

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
