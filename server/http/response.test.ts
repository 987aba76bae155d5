/** Responses: common headers, the media type for each Accept header, and streams that follow their reader. */
import { expect, test } from 'bun:test'
import { StoreError, endsWriting } from '../../db/contract/errors.ts'
import { acceptedType, addCommonHeaders, errorResponse, json, streamText, toAppError } from './response.ts'
import { AppError } from '../errors.ts'
import { silent } from '../../tests/support/silent-log.ts'

const readHeaders = (response: Response) => Object.fromEntries(addCommonHeaders(response, 'req_1').headers)

test('a JSON response has the same headers as any other', () => {
  const jsonResponse = new Response('{}', { headers: { 'content-type': 'application/json' } })
  expect(readHeaders(json({}))).toEqual(readHeaders(jsonResponse))
})

test('a header that a handler sets wins, in its own response only', () => {
  const headers = {
    'cache-control': 'private',
    'retry-after': '3',
    'content-type': 'application/problem+json',
  }
  expect(readHeaders(json({}, 429, headers))).toMatchObject({
    ...headers,
    'x-content-type-options': 'nosniff',
  })
  const next = json({})
  expect(next.headers.get('x-request-id')).toBeNull()
  expect(readHeaders(next)).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' })
  expect(next.headers.get('retry-after')).toBeNull()
})

function watched(parts: AsyncGenerator<string>, stallMs = 5_000) {
  const ends: unknown[] = []
  return { ends, stream: streamText({ parts, stallMs, ended: (failed) => ends.push(failed) }) }
}

test('sends the parts in order and reports the end once', async () => {
  const { ends, stream } = watched(
    (async function* () {
      yield 'a'
      yield 'ü'
    })(),
  )
  expect(await new Response(stream).text()).toBe('aü')
  expect(ends).toEqual([null])
})

test('generates nothing ahead of the reader', async () => {
  let partCount = 0
  const { stream } = watched(
    (async function* () {
      for (;;) yield `part ${partCount++}`
    })(),
  )
  const reader = stream.getReader()
  for (let n = 0; n < 3; n++) await reader.read()
  await Bun.sleep(20)
  expect(partCount).toBeLessThanOrEqual(4)
  await reader.cancel()
})

test('an error of the generator reaches the reader', async () => {
  const { ends, stream } = watched(
    (async function* () {
      yield 'a'
      throw new Error('gone')
    })(),
  )
  const receivedText = await new Response(stream).text().catch((error: unknown) => String(error))
  expect(receivedText).toContain('gone')
  expect(ends.map(String)).toEqual(['Error: gone'])
})

test('a reader that disconnects ends the generator', async () => {
  let closed = false
  const { ends, stream } = watched(
    (async function* () {
      try {
        for (;;) yield 'x'
      } finally {
        closed = true
      }
    })(),
  )
  const reader = stream.getReader()
  await reader.read()
  await reader.cancel()
  expect([closed, ends]).toEqual([true, [null]])
})

test('a reader that stalls is disconnected', async () => {
  const { ends, stream } = watched(
    (async function* () {
      for (;;) yield 'x'
    })(),
    30,
  )
  const reader = stream.getReader()
  await reader.read()
  await Bun.sleep(100)
  const read = await reader.read().catch((error: unknown) => String(error))
  expect(read).toContain('read nothing for 30 ms')
  expect(ends.length).toBe(1)
})

const offered = ['application/json', 'application/x-ndjson', 'text/csv'] as const

test.each([
  [null, 'application/json'],
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'application/json'],
  ['application/x-ndjson', 'application/x-ndjson'],
  ['Text/CSV', 'text/csv'],
  ['text/*', 'text/csv'],
  ['application/json;q=0.5, text/csv', 'text/csv'],
  ['text/csv;q=0.5, application/x-ndjson;q=0.6', 'application/x-ndjson'],
  ['text/csv, application/x-ndjson', 'application/x-ndjson'],
  ['*/*, application/json;q=0', 'application/x-ndjson'],
] as const)('%p gets %p', (header, type) => {
  expect(acceptedType(header, offered)).toBe(type)
})

test.each(['text/html', 'application/json;q=0', 'application/json;q=x', ';', ','])('%p is 406', (header) => {
  let thrown: unknown = null
  try {
    acceptedType(header, offered)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(AppError)
  expect((thrown as AppError).status).toBe(406)
})

test('a database that does not answer is 503 with Retry-After: 1, is no failed write, and is logged once a second', async () => {
  const warnings: unknown[] = []
  const log = { ...silent, warn: (name: string, fields: unknown) => warnings.push([name, fields]) }
  const error = new StoreError('unavailable', 'connection refused')
  for (let n = 0; n < 5; n++) {
    const response = errorResponse(toAppError(error, 'req_1', log), 'req_1')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await response.json()).toEqual({
      error: 'unavailable',
      message: 'The database did not answer. Try again in a second.',
      requestId: 'req_1',
    })
  }
  expect(warnings).toEqual([['store_unavailable', { message: 'connection refused' }]])
  expect(endsWriting(error)).toBe(false)
})
