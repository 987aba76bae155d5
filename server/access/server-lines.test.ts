/**
 * What is read of a line is what its server wrote, or the line is bad, whatever each field holds: quotes, escapes,
 * blanks, controls, bytes that are no text, numbers of any size and words of other formats.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../tests/support/runs.ts'
import {
  expectedOf,
  serverWriters,
  type Expected,
  type ServedRequest,
  type ServerWriter,
} from '../../tests/support/server-lines.ts'
import { detectFormat } from './detect-format.ts'
import { formatNamed, type FileParser, type ParsedLine } from './formats.ts'

const gptBot = 'Mozilla/5.0 AppleWebKit/537.36 (compatible; GPTBot/1.3; +https://openai.com/gptbot)'
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const fragments = fc.constantFrom(
  '',
  '-',
  '--',
  ' ',
  '  ',
  '\t',
  '"',
  '""',
  '" "',
  '\\',
  '\\"',
  '\\x22',
  '\\u0022',
  '\\n',
  "'",
  '`',
  '[',
  '] [',
  '{"a":1}',
  '<script>&amp;',
  '%',
  '%zz',
  '%22',
  '%2520',
  '+',
  '|',
  ';',
  ',',
  ', ',
  ':',
  '#Fields: date time',
  '\x00',
  '\x01',
  '\x07',
  '\x08',
  '\x0b',
  '\x0c',
  '\x1b[31m',
  '\x7f',
  '\x80',
  '\xff\xfe',
  '\xc3',
  '\xed\xa0\x80',
  utf8('ä'),
  utf8('😀'),
  utf8('\u202e\u2066txt.exe'),
  utf8('\u00a0\u00ad\u2028\ufeff'),
  utf8('\u{e0001}'),
  utf8('\ufffd'),
  '99999999999999999999',
  '-1',
  '0x1F',
  '1e309',
  '127.0.0.1',
  '20.171.206.200',
  '20.171.206.200:443',
  '[2001:db8::9]:443',
  'fe80::1%eth0',
  'unix:',
  ' - - [05/Nov/2026:10:00:00 +0000] ',
  '20.171.206.200 - - [05/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "GPTBot/1.3"',
  'Nov  5 10:00:00 web1 nginx: ',
  '<190>1 2026-11-05T10:00:00Z web1 nginx - - - ',
  ' HTTP/1.1',
  ' HTTP/1.1" 200 5 "-" "',
  gptBot,
)
const anyByte = fc
  .array(fc.integer({ min: 0, max: 255 }), { maxLength: 6 })
  .map((codes) => String.fromCharCode(...codes))
// No server accepts a line feed or a carriage return inside of a field.
const hostile = fc
  .array(fc.oneof({ weight: 4, arbitrary: fragments }, { weight: 1, arbitrary: anyByte }), { maxLength: 4 })
  .map((parts) => parts.join('').replaceAll(/[\r\n]/g, ''))

const requests: fc.Arbitrary<ServedRequest> = fc.record({
  address: fc.constantFrom(
    '20.171.206.9',
    '198.51.100.7',
    '10.1.2.3',
    '0.0.0.0',
    '2001:db8::7',
    'fe80::1%eth0',
    '::1',
  ),
  user: hostile,
  host: fc.oneof(hostile, fc.constantFrom('shop.example', '20.171.206.200', '[2001:db8::9]:8080')),
  method: fc.constantFrom('GET', 'POST', 'M-SEARCH', 'PROPFIND'),
  target: hostile.map((path) => `/${path}`),
  protocol: fc.constantFrom('HTTP/1.0', 'HTTP/1.1', 'HTTP/2.0'),
  status: fc.constantFrom(100, 200, 304, 404, 499, 599),
  bytes: fc.constantFrom(0, 5, 999_999_999_999_999, 123_456_789),
  referrer: hostile,
  userAgent: fc.oneof(hostile, fc.constant(gptBot)),
  forwarded: hostile,
  timeMs: fc.constantFrom(
    Date.UTC(2026, 10, 5, 10, 0, 0),
    Date.UTC(2024, 1, 29, 23, 59, 59),
    Date.UTC(2000, 0, 1),
  ),
  zoneMinutes: fc.constantFrom(0, 330, -210, 840),
})

/** As the import reads: the quick reader first. */
function readLine(parse: FileParser, line: string): ParsedLine {
  if (parse.plain?.read(line, 0, line.length) === true) return parse.plain.request()
  return parse(line, 0, line.length)
}

function readFields(writer: ServerWriter, parsed: ParsedLine, expected: Partial<Expected>): unknown {
  if (parsed === null || parsed === 'note') return parsed
  return Object.fromEntries(
    Object.keys(expected).map((name) => [name, comparable(writer, parsed[name as keyof Expected])]),
  )
}

/** How many characters stand for bytes that are no text differs from language to language. */
const noText = /\ufffd+/g

/** Where a format makes two values alike, both are compared in the form that it gives them. */
function comparable(writer: ServerWriter, value: string | number | null): unknown {
  if (typeof value !== 'string') return value
  let text = value
  let previous: string | null = null
  while (writer.normalize !== undefined && text !== previous) {
    previous = text
    text = Buffer.from(writer.normalize(utf8(text)), 'latin1').toString()
  }
  text = text.replaceAll(noText, '\ufffd')
  return text === '' || text === '-' ? null : text
}

describe.each(Object.keys(serverWriters))('%s', (server) => {
  const writer = serverWriters[server]!

  test('what is read is what was sent, or the line is bad', () => {
    let tried = 0
    let good = 0
    fc.assert(
      fc.property(requests, (request) => {
        const parse = formatNamed(writer.format).open()
        if (writer.heading !== undefined) readLine(parse, writer.heading)
        const parsed = readLine(parse, writer.line(writer.request?.(request) ?? request))
        tried++
        if (parsed === null) return
        good++
        const expected = expectedOf(writer, request)
        if (parsed !== 'note' && parsed.address === null && writer.mayHideAddress?.(request))
          expected.address = null
        const truth = Object.fromEntries(
          Object.entries(expected).map(([name, value]) => [name, comparable(writer, value)]),
        )
        expect(readFields(writer, parsed, expected)).toEqual(truth)
      }),
      { numRuns: runs(1_500) },
    )
    expect(good).toBeGreaterThan(tried * 0.7)
  })

  test('a log of nothing but such lines is read with the right addresses, or refused', () => {
    fc.assert(
      fc.property(fc.array(requests, { minLength: 1, maxLength: 12 }), (log) => {
        const lines = log.map((request) => writer.line(writer.request?.(request) ?? request))
        const all = writer.heading === undefined ? lines : [writer.heading, ...lines]
        if (log.some((request) => writer.mayBeOther?.(request))) return
        const detection = detectFormat(`${all.join('\n')}\n`)
        if (!('guess' in detection)) return
        const parse = detection.guess.format.open()
        const parsed = all.map((line) => readLine(parse, line)).slice(-lines.length)
        for (const [index, request] of log.entries()) {
          const result = parsed[index]!
          if (result === null || result === 'note' || result.address === null) continue
          const { timeMs, status } = result
          const address = request.address.replace(/%.*/, '')
          expect({ address: result.address, timeMs, status }).toEqual({
            address,
            timeMs: request.timeMs,
            status: request.status,
          })
        }
      }),
      { numRuns: runs(600) },
    )
  })
})
