/** Lines that are read in place have the fields, the kind and the events that the steps of their format find. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { browser, gptBot, plainOptions } from '../../tests/support/access-logs.ts'
import { agentEvents, lineReader, type LineReader } from './agent-events.ts'
import { formatNamed, type FileParser } from './formats.ts'
import type { LogRequest } from './log-request.ts'
import { runs } from '../../tests/support/runs.ts'

const pickFrom = <T>(...values: T[]) => fc.constantFrom(...values)
const bytes = (text: string): string => Buffer.from(text).toString('latin1')

const address = pickFrom(
  '203.0.113.9',
  '2001:db8::1',
  '::ffff:1.2.3.4',
  'host.example',
  '[::1]',
  '-',
  '1.2.3.4%eth0',
  'unix:',
  '1.2.3',
  '256.1.1.1',
  '01.2.3.4',
  '1.2.3.4.5',
  '0.0.0.0',
  '1.2.3.4:80',
  '20.171.206.9 203.0.113.9',
  '1.2.3.4,',
  ':::1',
  '::',
  '1::',
  '1:',
  '1::2::3',
  '1:2:3:4:5:6:7:8',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7::',
  '12345::1',
  '2001:DB8::00a1',
  '2001:db8::1:443',
  '2001:db8::1:51234',
  '::ffff:cb00:7109',
  '203.0.113.9, 10.0.0.1',
  'beef',
)
const user = pickFrom(
  '20.171.206.9 -',
  '- 20.171.206.9',
  'a 20.171.206.9 - b',
  '- -',
  '- alice',
  'x y',
  '- [a',
  `- ${'u'.repeat(299)}`,
  `- ${'u'.repeat(300)}`,
  '- "',
  '-',
)
const time = pickFrom(
  '23/Nov/2026:07:32:28 +0000',
  '23/Nov/2026:07:32:29 +0000',
  '24/Nov/2026:23:59:59 -0330',
  '23/nov/2026:07:32:28 +0000',
  '31/Feb/2026:07:32:28 +0000',
  '31/Dec/2016:23:59:60 +0000',
  '3/Nov/2026:07:32:28 +0000',
  '23/Nov/2026:24:00:00 +0000',
  '23/Nov/2026:07:32:28 +9999',
  '01/Jan/1970:00:00:00 +0500',
  '31/Dec/9999:00:00:00 +0000',
  '23/Nov/2026:07:32:28',
  '2026-11-23:07:32:28 +0000',
  '23/Nov/2026:07:32:28.5 +0000',
  '23/Xxx/2026:07:32:28 +0000',
)
const method = pickFrom('GET', 'POST', 'HEAD', 'M-SEARCH', '-GET', 'get', '', 'A'.repeat(32), 'A'.repeat(33))
const path = pickFrom(
  '/',
  '/a',
  '/app.js',
  '/APP.CSS?v=1',
  '/a.b/c',
  '/x.webmanifest',
  '/.js',
  '/a b.png',
  '/a.js#x',
  '/ ',
  '*',
  '/?utm_source=chatgpt.com',
  '/utm_source=openai',
  '/a?utm_source=news&x',
  '/&utm_source=openai',
  '/\\x22',
  '/ä.png',
  '',
  'http://h.example/a',
  '//a',
  '/a?b#c',
  '/a.unknownending',
  '/a.js/',
  '/a..js',
  '/\u0019mp3',
  '/a.mp3',
  '/a.\u0017mp3',
)
const protocol = pickFrom(
  'HTTP/1.1',
  'HTTP/2.0',
  'HTTP/2',
  'HTTP/',
  'HTTP/x',
  'http/1.1',
  'HTTP/1.1 ',
  'HTTP/1.1234567890',
  '',
)
const status = pickFrom('200', '404', '099', '600', '000', '-', '20', '2000', '')
const size = pickFrom('0', '512', '-', '', '999999999999999', '1000000000000000', '-5', '1e3')
const referrer = pickFrom(
  '-',
  '',
  'https://shop.example/a',
  'http://chatgpt.com',
  'https://www.Perplexity.ai:443/x',
  'HTTPS://claude.ai/',
  'android-app://com.openai.chatgpt',
  'https://',
  'https:///',
  'httpx',
  'https://a?chatgpt.com',
  '\\"',
  'é',
  'x y',
)
const userAgent = pickFrom(
  '-',
  '',
  gptBot,
  browser,
  'curl/8.5',
  `${browser} \\x22`,
  'Mozilla/5.0 (bot)',
  'Mozilla/5.0 ä',
  'a'.repeat(2_100),
  'Opera/9.80',
  'Mozilla/5.0 CUBOT',
  'M',
  ' - ',
)
const forwarded = pickFrom(
  '-',
  '',
  '203.0.113.1',
  '203.0.113.1, 10.0.0.1',
  '-x',
  'unknown',
  'a_b',
  '2001:db8::2',
)
const host = pickFrom(
  'shop.example:443',
  'shop.example:',
  ':80',
  '-:80',
  'shop.example',
  'a\rb:1',
  'a b:1',
  'a:b:c',
)
const separators = fc.tuple(
  ...Array.from({ length: 4 }, () =>
    fc.oneof({ weight: 12, arbitrary: fc.constant(' ') }, pickFrom('  ', '', '\t', '" ', '\r')),
  ),
)
const end = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  pickFrom(' ', '"', ' trailing "text"', '\r', ' "', '\0'),
)

/** Mostly lines as servers write them; half of them with one odd part or more. */
const anyLine = fc
  .tuple(
    host,
    address,
    user,
    time,
    method,
    path,
    protocol,
    status,
    size,
    referrer,
    userAgent,
    forwarded,
    separators,
    end,
  )
  .chain((odd) =>
    fc.tuple(fc.constant(odd), fc.array(fc.nat(odd.length - 1), { maxLength: 3 }), path, referrer, userAgent),
  )
  .map(([odd, oddAt, ...usual]) => {
    const plain = [
      'shop.example:443',
      '203.0.113.9',
      '- -',
      '23/Nov/2026:07:32:28 +0000',
      'GET',
      usual[0],
      'HTTP/1.1',
      '200',
      '512',
      usual[1],
      usual[2],
      '203.0.113.1',
      [' ', ' ', ' ', ' '],
      '',
    ]
    return plain.map((value, index) => (oddAt.includes(index) ? odd[index]! : value))
  })

type Format = 'combined' | 'vcombined' | 'combined-forwarded'

function textOf(format: Format, parts: (string | string[])[]): string {
  const gaps = parts[12] as string[]
  const [
    siteHost,
    from,
    userText,
    timeText,
    verb,
    page,
    version,
    code,
    length,
    referrerText,
    agent,
    behind,
    ,
    lineEnd,
  ] = parts as string[]
  const request = [verb, page, version].filter((part) => part !== '').join(' ')
  const start = `${format === 'vcombined' ? `${siteHost} ` : ''}${from}${gaps[0]}${userText}${gaps[1]}[${timeText}]${gaps[2]}`
  const tail = format === 'combined-forwarded' ? ` "${behind}"` : ''
  return bytes(
    `${start}"${request}" ${code} ${length} "${referrerText}"${gaps[3]}"${agent}"${tail}${lineEnd}`,
  )
}

/** Reads a line in the middle of others, as blocks have them. */
const around = (line: string): { text: string; start: number; end: number } => {
  const lineBefore = '203.0.113.9 - - [22/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "x"\n'
  return {
    text: `${lineBefore}${line}\n${lineBefore}`,
    start: lineBefore.length,
    end: lineBefore.length + line.length,
  }
}

const formats: Format[] = ['combined', 'vcombined', 'combined-forwarded']

for (const format of formats)
  test(`${format}: a line that is read in place has the fields that pattern.ts finds`, () => {
    const parse = formatNamed(format).open()
    const plain = parse.plain!
    let read = 0
    fc.assert(
      fc.property(anyLine, (parts) => {
        const { text, start, end } = around(textOf(format, parts))
        if (!plain.read(text, start, end)) return
        read++
        expect(plain.request()).toEqual(parse(text, start, end) as LogRequest)
      }),
      { numRuns: runs(20_000) },
    )
    expect(read).toBeGreaterThan(2_000)
  })

test('any bytes read in place are what pattern.ts reads, also at the end of a text', () => {
  const pieces = pickFrom(
    '"',
    '" ',
    ' ',
    '-',
    '[23/Nov/2026:07:32:28 +0000] "',
    '1.2.3.4',
    'GET / HTTP/1.1',
    '200',
    '\0',
    'é',
    '\\',
    ':',
  )
  const line = fc.array(fc.oneof(pieces, fc.string({ maxLength: 4 })), { maxLength: 30 })
  const parsers = formats.map((format) => formatNamed(format).open())
  fc.assert(
    fc.property(line, (parts) => {
      const text = bytes(parts.join('').replaceAll('\n', ''))
      for (const parse of parsers)
        if (parse.plain!.read(text, 0, text.length))
          expect(parse.plain!.request()).toEqual(parse(text, 0, text.length) as LogRequest)
    }),
    { numRuns: runs(10_000) },
  )
})

test('kinds and events of lines are those that the whole requests have', () => {
  const readerOf = (parse: FileParser): LineReader =>
    lineReader(parse, agentEvents({ ...plainOptions, trustedProxies: ['203.0.113.0/24'] }), {
      name: 'log',
      secret: null,
    })
  const parse = formatNamed('combined-forwarded').open()
  const quick = readerOf(parse)
  const whole = readerOf((text, start, end) => parse(text, start, end))
  const kinds = new Set<string>()
  fc.assert(
    fc.property(anyLine, fc.nat(1e9), (parts, offset) => {
      const { text, start, end } = around(textOf('combined-forwarded', parts))
      const [quickLine, wholeLine] = [quick, whole].map((read) =>
        structuredClone(read(text, start, end, offset)),
      )
      kinds.add(wholeLine!.events.length > 0 ? `${wholeLine!.kind} with events` : wholeLine!.kind)
      expect(quickLine).toEqual(wholeLine!)
    }),
    { numRuns: runs(10_000) },
  )
  const allKinds = ['agent with events', 'asset', 'bad', 'bot', 'person', 'person with events']
  expect([...kinds].toSorted()).toEqual(allKinds)
})
