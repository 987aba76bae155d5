/** A response is read alike however its bytes arrive, with bounded memory, and nothing but a missing status fails. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { headBytesMax, responseReader, type HttpResponse } from './http-response.ts'
import { SendError } from './sink.ts'

const bodyBytesMax = 64

function readAll(pieces: Uint8Array[]): HttpResponse | null | 'not HTTP' {
  const reader = responseReader(bodyBytesMax)
  try {
    for (const piece of pieces) if (reader.read(piece)) break
  } catch (error) {
    if (error instanceof SendError) return 'not HTTP'
    throw error
  }
  return reader.response()
}

const words = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 100 Continue',
  '\r\n',
  '\n',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  ': ',
  '0',
  '5',
]
const names = ['Content-Length', 'Transfer-Encoding: chunked', 'X-A', 'ok', ';', '\u0000', '\u00ff']
const text = fc.array(fc.constantFrom(...words, ...names), { maxLength: 40 }).map((parts) => parts.join(''))
const anyBytes = fc.oneof(
  text.map((tail) => Buffer.from(`HTTP/1.1 200 OK\r\n${tail}`, 'latin1')),
  text.map((whole) => Buffer.from(whole, 'latin1')),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
)

test('the pieces in which bytes arrive change nothing', () => {
  fc.assert(
    fc.property(anyBytes, fc.infiniteStream(fc.integer({ min: 1, max: 9 })), (bytes, sizes) => {
      const pieces: Uint8Array[] = []
      for (let offset = 0; offset < bytes.length;) {
        const size = sizes.next().value as number
        pieces.push(bytes.subarray(offset, offset + size))
        offset += size
      }
      expect(readAll(pieces)).toEqual(readAll([bytes]))
    }),
    { numRuns: 2_000 },
  )
})

test('headers have names in lower case and unfolded values, in their order', () => {
  const head = 'HTTP/1.1 200 OK\r\nRetry-After :\r\n 5\r\nX-A: one \r\n\t two\r\nX-a: three\r\n\r\n'
  expect(readAll([Buffer.from(head)])).toMatchObject({
    status: 200,
    headers: [
      ['retry-after', '5'],
      ['x-a', 'one two'],
      ['x-a', 'three'],
    ],
  })
})

test('a head that never ends counts once its limit is reached, if it has a status', () => {
  const line = Buffer.from(`x: ${'y'.repeat(1_000)}\r\n`)
  const lines = Array.from({ length: headBytesMax / line.length + 1 }, () => line)
  expect(readAll([Buffer.from('HTTP/1.1 202 Accepted\r\n'), ...lines])).toMatchObject({ status: 202 })
  expect(readAll([Buffer.from('HTTP/1.1 200 OK\r\n'), ...lines.slice(2)])).toBeNull()
  const interim = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')
  expect(readAll(Array.from({ length: headBytesMax / interim.length + 1 }, () => interim))).toBe('not HTTP')
  expect(readAll([Buffer.alloc(headBytesMax + 1, 'x')])).toBe('not HTTP')
})

test('a line of chunk sizes that never ends ends the body', () => {
  const head = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n')
  const reader = responseReader(bodyBytesMax)
  expect(reader.read(head)).toBe(false)
  let pieces = 0
  while (!reader.read(Buffer.alloc(1_000, '0'))) expect(++pieces).toBeLessThan(100)
  expect(reader.response()!.body.toString()).toBe('o')
})
