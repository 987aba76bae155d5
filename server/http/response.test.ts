/** Every response has the common headers, its request id, and the headers its handler set. */
import { expect, test } from 'bun:test'
import { json } from './response.ts'
import { addCommonHeaders } from './response.ts'

const of = (response: Response) => Object.fromEntries(addCommonHeaders(response, 'req_1').headers)

test('a JSON response has the same headers as any other', () => {
  const other = new Response('{}', { headers: { 'content-type': 'application/json' } })
  expect(of(json({}))).toEqual(of(other))
})

test('a header that a handler sets wins, in its own response only', () => {
  const headers = {
    'cache-control': 'private',
    'retry-after': '3',
    'content-type': 'application/problem+json',
  }
  expect(of(json({}, 429, headers))).toMatchObject({ ...headers, 'x-content-type-options': 'nosniff' })
  const next = json({})
  expect(next.headers.get('x-request-id')).toBeNull()
  expect(of(next)).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' })
  expect(next.headers.get('retry-after')).toBeNull()
})
