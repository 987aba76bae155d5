/** The parser of the stream returns the same messages for any chunk boundaries. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { messageReader } from './shared-live.ts'

const stream =
  ': heartbeat\n\nevent: events\nid: 41\ndata: {"events":[1]}\n\n' +
  ':x\r\nevent:events\r\nid: 42\r\ndata: a\r\ndata: b\r\n\r\ndata\n\nid: 43\n\nevent: bye\ndata: last\n\n'

const expected = [
  { event: 'events', id: '41', data: '{"events":[1]}' },
  { event: 'events', id: '42', data: 'a\nb' },
  { event: 'message', id: null, data: '' },
  { event: 'bye', id: null, data: 'last' },
]

test('parses a whole stream', () => {
  expect(messageReader()(stream)).toEqual(expected)
})

test('law: chunk boundaries do not change the result', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: stream.length - 1 })), (cuts) => {
      const read = messageReader()
      const edges = [0, ...[...new Set(cuts)].sort((a, b) => a - b), stream.length]
      const messages = edges.slice(1).flatMap((edge, i) => read(stream.slice(edges[i], edge)))
      expect(messages).toEqual(expected)
    }),
  )
})

test('does not return an incomplete message', () => {
  const read = messageReader()
  expect(read('data: half')).toEqual([])
  expect(read('\n')).toEqual([])
  expect(read('\n')).toEqual([{ event: 'message', id: null, data: 'half' }])
})
