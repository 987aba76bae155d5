/** Only the lines of NDJSON that are not UTF-8 are rejected; all other text decodes as usual. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { exampleEvent } from '../../tests/fuzz/any-event.ts'
import { acceptLines } from './accept.ts'
import { linesText } from './accept.ts'

const good = Buffer.from(JSON.stringify(exampleEvent))
const bytes = (...lines: (Buffer | string)[]): Buffer =>
  Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))

test('a line that is not UTF-8 is rejected with its excerpt; the others are accepted', () => {
  const bad = Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')])
  const accepted = acceptLines(linesText(bytes(good, '', bad, ' \t', Buffer.from([0xe2, 0x82]), good)), [])
  expect(accepted).toMatchObject({ sent: 4, positions: [0, 3] })
  expect(accepted.rejected.map(({ index, issues, excerpt }) => [index, issues[0]?.message, excerpt])).toEqual(
    [
      [1, 'is not valid UTF-8', '{"id":"\ufffd\ufffd"}'],
      [2, 'is not valid UTF-8', '\ufffd'],
    ],
  )
})

test('replacement characters and a byte order mark are accepted', () => {
  const sent = bytes('\ufeff{"a":"\ufffd"}', Buffer.from([0x80]))
  expect(linesText(sent)).toBe('{"a":"\ufffd"}\n\ufffd\udfff')
  expect(linesText(Buffer.from('\ufeff{}'))).toBe('{}')
})

test('an invalid line does not change the text of valid ones', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', minLength: 1 }), { maxLength: 8 }), (texts) => {
      const lines = texts.map((text) => `x${text.replaceAll('\n', '').toWellFormed()}`)
      const text = linesText(bytes(...lines, Buffer.from([0xff])))
      expect(text.split('\n')).toEqual([...lines, '\ufffd\udfff'])
    }),
  )
})

test('8 MB of lines are read only up to the limit of events', () => {
  const many = Buffer.concat([Buffer.from([0xff, 0x0a]), Buffer.alloc(8 * 1024 * 1024 - 2, 'x\n')])
  expect(linesText(many).split('\n')).toHaveLength(1_001)
  expect(() => acceptLines(linesText(many), [])).toThrow('at most 1000 events')
})
