/** Reading lines: escapes, forged lines, lines of any bytes, and the short form of `tests/fuzz/access-lines.ts`. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { compareLines } from '../../tests/fuzz/access-lines.ts'
import { formatNamed, logFormats, type ParsedLine } from './formats.ts'
import { lineBytesMax } from './input.ts'
import { timeMsOf, type LogRequest } from './log-request.ts'
import { runs } from '../../tests/support/runs.ts'

setDefaultTimeout(60_000) // 100,000 lines three times, on a machine that may be busy

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1')

function parse(format: string, line: string): ParsedLine {
  return formatNamed(format).open()(bytesOf(line), 0, bytesOf(line).length)
}

test('escapes of nginx and Apache are undone, and invalid UTF-8 becomes U+FFFD', () => {
  const line = (agentText: string): string =>
    `1.2.3.4 - - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "${agentText}"`
  const userAgent = (text: string): string | null => (parse('combined', line(text)) as LogRequest).userAgent
  expect(userAgent('a\\x22b\\x5C\\xC3\\xA4\\x0A')).toBe('a"b\\ä\n')
  expect(userAgent('a\\"b\\\\\\t')).toBe('a"b\\\t')
  expect(userAgent('ä \\xFF \\x')).toBe('ä \ufffd \\x')
})

test('a user name that imitates a request does not become one', () => {
  const forged = 'x [01/Jan/2020:00:00:00 +0000] \\"GET /forged HTTP/1.1\\" 200 1 \\"-\\" \\"GPTBot\\"'
  const line = `1.2.3.4 - ${forged} [23/Nov/2026:07:32:28 +0000] "GET /real HTTP/1.1" 401 5 "-" "curl"`
  expect(parse('combined', line)).toMatchObject({ path: '/real', status: 401, userAgent: 'curl' })
})

test('format strings of GoAccess and names of JSON fields', () => {
  const line = '203.0.113.9 2026-11-23 07:32:28 shop "GET /a HTTP/1.1" 200 1500 GPTBot 50% 12.5'
  const format = '%h %d %t %v "%r" %s %D %u %^%% %L'
  expect(parse(format, line)).toMatchObject({ durationMs: 1.5, userAgent: 'GPTBot', host: 'shop' })
  expect(parse('~h{, } %h [%x] %m %U %q', '1.1.1.1, 2.2.2.2 3.3.3.3 [1795411948] GET /a b=1')).toMatchObject({
    forwarded: '1.1.1.1, 2.2.2.2',
    address: '3.3.3.3',
    path: '/a?b=1',
    timeMs: 1_795_411_948_000,
  })
  const json = '{"t":"2026-11-23T07:32:28Z","c":{"ip":"1.2.3.4"},"u":"/a","s":200,"d":5}'
  const names = 'json:time=t,ip=c.ip,path=u,status=s'
  expect(parse(names, json)).toMatchObject({ address: '1.2.3.4', path: '/a', status: 200 })
  const goAccess = '{"t":"%x","c":{"ip":"%h"},"u":"%U","s":"%s","d":"%L"}'
  expect(parse(goAccess, json)).toMatchObject({ address: '1.2.3.4', path: '/a', durationMs: 5 })
  for (const wrong of ['combned', '%h %s', '%h %y %x', '{', 'json:time', 'json:who=x', 'json:ip=x', ''])
    expect(() => formatNamed(wrong)).toThrow()
  expect(formatNamed('AWSALB').name).toBe('awsalb')
})

test('requests that no server understood are requests without a path', () => {
  for (const requestText of ['\\x16\\x03\\x01', '-', '', 'GET', 'GET  HTTP/1.1', 'hello world'])
    expect(
      parse('combined', `1.2.3.4 - - [23/Nov/2026:07:32:28 +0000] "${requestText}" 400 5 "-" "-"`),
    ).toMatchObject({
      method: null,
      path: null,
      status: 400,
      userAgent: null,
    })
})

test('times: epochs of any unit, zones, and nothing that is ambiguous', () => {
  const ms = 1_795_411_948_123
  for (const epoch of ['1795411948.123', '1795411948123', '1795411948123456', '1795411948123456789'])
    expect(timeMsOf(epoch)).toBe(ms)
  expect(timeMsOf('2026-11-23 05:32:28,123')).toBe(ms)
  expect(timeMsOf('23/Nov/2026:07:32:28.123 +0200')).toBe(ms)
  for (const wrong of ['11/12/2026 05:32:28', '31/Feb/2026:00:00:00', '', '-', '0', '2026-11-23', 'x'])
    expect(timeMsOf(wrong)).toBeNaN()
})

describe('hostile lines', () => {
  test('any bytes parse or do not, and never throw', () => {
    const parsers = logFormats.map((format) => format.open())
    const pieces = [
      '"',
      '\\',
      '[23/Nov/2026:07:32:28 +0000]',
      ' ',
      '-',
      '%',
      '{',
      '#Fields: ',
      '1.2.3.4',
      '\0',
      '\xff',
      '\t',
    ]
    const line = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 8 })), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(line, (parts) => {
        const text = bytesOf(parts.join('').replaceAll('\n', ''))
        for (const parser of parsers) parser(text, 0, text.length)
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('the longest line of any character that formats know is read without much backtracking', () => {
    const size = lineBytesMax
    for (const unit of ['a', '"', '\\', ' ', '[', '-', ':', '{', '[23/Nov/2026:07:32:28 +0000', '1.2.3.4 '])
      for (const start of ['', '1.2.3.4 - - [23/Nov/2026:07:32:28 +0000] "']) {
        const text = start + unit.repeat(size / unit.length)
        const from = performance.now()
        for (const format of logFormats) format.open()(text, 0, text.length)
        expect(performance.now() - from).toBeLessThan(10_000) // exponential backtracking would take hours
      }
  })
})

test('100,000 generated lines read as a parser of another kind reads them', () => {
  expect(compareLines(100_000, 21)).toBeGreaterThan(50_000) // of them by position
})

describe('formats that people wrote for GoAccess', () => {
  const lineTail = '[07/Feb/2022:21:59:41 +0000] "GET /a HTTP/1.1" 304 0 "-" "GPTBot"'
  const ncsa = '%^[%d:%t %^] "%r" %s %b "%R" "%u"'
  const lines: [issue: string, format: string, line: string, request: Partial<LogRequest>][] = [
    [
      'allinurl/goaccess#2401',
      '%h %^ %^ [%d:%t %^] "%r" %s %b "%R" "%u" %^ forwarded_for="~h{, }"',
      `1.1.1.1 - - ${lineTail} host=x forwarded_for="3.3.3.3, 2.2.2.2" request_id="x"`,
      { address: '1.1.1.1', forwarded: '3.3.3.3, 2.2.2.2' },
    ],
    // Without %h the last address counts. GoAccess reads the first one, which a client chooses.
    [
      '#2148',
      `${ncsa} ~h{," } %T %K`,
      `10.0.0.1 - - ${lineTail} "3.3.3.3, 2.2.2.2" 0.137 x`,
      { address: '2.2.2.2' },
    ],
    [
      '#2272',
      `${ncsa} ~h{," }`,
      `10.0.0.1 - - ${lineTail} "3.3.3.3"`,
      { address: '3.3.3.3', durationMs: null },
    ],
    [
      '#1911',
      `%h ${ncsa} ~h{"}`,
      `10.0.0.1 - - ${lineTail} "3.3.3.3"`,
      { address: '10.0.0.1', forwarded: '3.3.3.3' },
    ],
    [
      '#336',
      `%h %^ %v ${ncsa}`,
      `66.249.79.94 - a.example a.example - ${lineTail}`,
      { address: '66.249.79.94' },
    ],
    [
      '#2557',
      '%x %h:%^ %m %U',
      '2023-09-10T23:55:00Z 2a02:a3::f215:50718 GET /a',
      { address: '2a02:a3::f215' },
    ],
    [
      '#1552',
      `%h ${ncsa}`,
      `crawl-66-249.googlebot.com - - ${lineTail}`,
      { peerName: 'crawl-66-249.googlebot.com' },
    ],
    ['#1742', `%h ${ncsa}`, `107.177.88.116.starhub.net.sg - - ${lineTail}`, { address: null }],
    [
      'a list first',
      `~h{, } ${ncsa}`,
      `203.0.113.9, 20.171.206.4 - - ${lineTail}`,
      { address: '20.171.206.4' },
    ],
  ]
  test.each(lines)('%s: %s', (_, format, line, request) => {
    expect(parse(format, line)).toMatchObject(request)
  })

  test('allinurl/goaccess#1349: braces with more than separators are refused', () => {
    expect(() => formatNamed('[%d:%t %^] [%v:%^] [client~h{ ,]} "%r" %s %b "%u"')).toThrow(
      'another separator',
    )
  })
})
