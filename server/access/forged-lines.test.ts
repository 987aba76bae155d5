/**
 * The verdict on an agent depends on the address of its connection, or on the one that a trusted proxy reported, and on
 * nothing that a client chooses: in every format, whatever its Host header, forwarded header, user name, path, referrer
 * and cookie are.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { plainOptions } from '../../tests/support/access-logs.ts'
import {
  bracketed,
  gptBot,
  iso,
  ncsa,
  plus,
  quoted,
  timestamp,
  writers,
  type Sent,
} from '../../tests/support/forged-lines.ts'
import { runs } from '../../tests/support/runs.ts'
import { agentEvents, lineReader } from './agent-events.ts'
import { createStreamFormat, detectFormat, withoutForwarded } from './detect-format.ts'
import { formatNamed, logFormats } from './formats.ts'

/** OpenAI publishes the first network for GPTBot, and none of the others. */
const verdicts: { readonly [address: string]: string } = {
  '20.171.206.9': 'verified',
  '198.51.100.7': 'contradicted',
  '2001:db8::7': 'contradicted',
  '10.1.2.3': 'unverifiable',
}
const addresses = Object.keys(verdicts)

const published = '20.171.206.200'
const words = fc.constantFrom(
  '',
  '-',
  'shop.example',
  'a b',
  'Nov',
  '"',
  '\\',
  '[',
  '] [',
  ':',
  ', ',
  '%20',
  '#Fields: date',
  'web-1 | ',
  `${iso} `,
  'Nov  5 10:00:00 web1 nginx: ',
  '<14>x: ',
  'unix:',
  '- -',
  published,
  `${published}:443`,
  `[::ffff:${published}]`,
  `::ffff:${published}`,
  `${published} -`,
  `- ${published}`,
  `${published} - -`,
  `x ${published} - - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`,
  `, ${published}`,
)
const hostile = fc.array(words, { maxLength: 3 }).map((parts) => parts.join(''))
const sentRequest = fc.record({
  peer: fc.constantFrom(...addresses),
  host: hostile,
  user: hostile,
  path: hostile,
  referrer: hostile,
  forwarded: hostile,
})
const plainRequest: Sent = { peer: '', host: '', user: '', path: '', referrer: '', forwarded: '' }
const bytes = (text: string): string => Buffer.from(text).toString('latin1')

/** The verdict on the last line of a log; what the line counts as, when it is no agent's. */
function verdictOn(format: string, lines: readonly string[], trustedProxies: string[] = []): string {
  const parse = formatNamed(format).open()
  const read = lineReader(parse, agentEvents({ ...plainOptions, trustedProxies }), {
    name: 'log',
    secret: null,
  })
  const results = lines.map((line) => {
    const { kind, events } = read(bytes(line), 0, bytes(line).length, 0)
    return events[0]?.verdict ?? kind
  })
  return results.at(-1)!
}

const linesOf = (format: string, requests: readonly Sent[]): string[] => {
  const { heading, line } = writers[format]!
  return [...(heading === undefined ? [] : [heading]), ...requests.map(line)]
}

/** The format that is recognized from nothing but a hostile line. */
function guessed(lines: readonly string[]): string | null {
  const detection = detectFormat(bytes(`${lines.join('\n')}\n`))
  return 'guess' in detection ? detection.guess.format.name : null
}

/**
 * Old servers accept a Host header with spaces. So where the host comes first, a user name with an address and an
 * identity may be the true end of a Host header, and nothing can be verified.
 */
function verdictsFor(format: string, { peer, user, host }: Sent): string[] {
  const mayBeHost = /^v|^host/.test(format) && / [^ ]*\d[^ ]* - /.test(` ${user} `)
  // nginx with the host first writes what lighttpd writes, where the host is an address.
  const mayBePeer = format === 'lighttpd' && /[\d:]/.test(host)
  return mayBeHost || mayBePeer ? [verdicts[peer]!, 'unverifiable'] : [verdicts[peer]!]
}

test('every format with user agents is in the table', () => {
  const formatNames = logFormats.filter(({ hasUserAgent }) => hasUserAgent).map(({ name }) => name)
  expect(formatNames.filter((name) => name !== 'squid').toSorted()).toEqual(Object.keys(writers).toSorted())
})

describe.each(Object.keys(writers))('%s', (format) => {
  test('the verdict is that of the connection', () => {
    let read = 0
    let triedCount = 0
    fc.assert(
      fc.property(sentRequest, (request) => {
        const lines = linesOf(format, [request])
        const verdict = verdictOn(format, lines)
        triedCount++
        if (verdict === 'bad') return // counted, and shown on Sources
        read++
        expect(verdictsFor(format, request)).toContain(verdict)
        // Nor does a client choose the format that gives it another address.
        const otherGuess = guessed(lines)
        if (otherGuess !== null)
          expect(['bad', ...verdictsFor(format, request)]).toContain(verdictOn(otherGuess, lines))
      }),
      { numRuns: runs(1_000) },
    )
    expect(read).toBeGreaterThan(triedCount * 0.8)
  })

  const { hasForwarded } = formatNamed(format)
  const isForwarded = hasForwarded ?? writers[format]!.heading?.toLowerCase().includes('x-forwarded-for')
  test.if(isForwarded === true)(
    'behind a trusted proxy, the verdict is that of the hop that it reports',
    () => {
      fc.assert(
        fc.property(
          sentRequest,
          fc.constantFrom(...addresses.slice(0, 3)),
          fc.boolean(),
          (request, client, hasPort) => {
            const hop = hasPort ? `${bracketed(client)}:443` : client
            const forwarded = request.forwarded === '' ? hop : `${request.forwarded}, ${hop}`
            const proxied = linesOf(format, [{ ...request, peer: '10.0.0.5', forwarded }])
            const verdict = verdictOn(format, proxied, ['10.0.0.0/8'])
            if (verdict !== 'bad')
              expect(verdictsFor(format, { ...request, peer: client })).toContain(verdict)
            const direct = linesOf(format, [{ ...request, peer: '198.51.100.7', forwarded }])
            const verdictOnDirect = verdictOn(format, direct, ['10.0.0.0/8'])
            if (verdictOnDirect !== 'bad')
              expect(verdictsFor(format, { ...request, peer: '198.51.100.7' })).toContain(verdictOnDirect)
          },
        ),
        { numRuns: runs(600) },
      )
    },
  )
})

/** What stands around a line when it comes by syslog or from a container, journald or a shipper. */
const wrappers: { readonly [name: string]: (line: string) => string } = {
  nothing: (line) => line,
  syslog: (line) => `<190>Nov  5 10:00:00 web1 nginx: ${line}`,
  'syslog, RFC 5424': (line) => `<190>1 2026-11-05T10:00:00Z web1 nginx 12 - [a@1 b="c"] ${line}`,
  'journalctl -o short': (line) => `Nov 05 10:00:00 web1 nginx[12]: ${line}`,
  CRI: (line) => `${iso} stdout F ${line}`,
  compose: (line) => `web-1  | ${line}`,
  'docker logs -t': (line) => `${iso} ${line}`,
  'json-file': (line) => JSON.stringify({ log: `${line}\n`, stream: 'stdout', time: iso }),
  'journalctl -o json': (line) => JSON.stringify({ MESSAGE: line, __REALTIME_TIMESTAMP: '1793872800000000' }),
}

/** Formats whose servers write no referrer, and W3C, where an escaped character and its escape are one. */
const withoutReferrer = ['awsalb', 'awselb', 'w3c']
const startedMs = Date.parse('2026-11-05T10:00:00Z')

describe.each(Object.keys(writers))(
  '%s: what is read is what was sent, whatever wraps it, or is bad',
  (format) => {
    // The heading of a log with headings is not of this line.
    const names = writers[format]!.heading === undefined ? Object.keys(wrappers) : ['nothing']

    test.each(names)('in %s', (wrapper) => {
      let read = 0
      let triedCount = 0
      fc.assert(
        fc.property(sentRequest, fc.constantFrom('', 'ä😀', '\\x22', '\t'), (request, suffix) => {
          const referrer = `${request.referrer}${suffix}`
          const lines = linesOf(format, [{ ...request, referrer }])
          const parse = formatNamed(format).open()
          const parsed = lines.map((line, index) => {
            const text = bytes(index === lines.length - 1 ? wrappers[wrapper]!(line) : line)
            return parse(text, 0, text.length)
          })
          const result = parsed.at(-1)!
          triedCount++
          if (result === null) return
          read++
          if (result === 'note') throw new Error('a request became a comment')
          const isAmbiguous = verdictsFor(format, request).length > 1
          expect({
            timeMs: Math.floor(result.timeMs / 1_000) * 1_000,
            address: isAmbiguous ? (result.address ?? request.peer) : result.address,
            status: result.status,
            userAgent: result.userAgent,
            method: result.method,
            referrer: withoutReferrer.includes(format) ? null : result.referrer,
          }).toEqual({
            timeMs: startedMs,
            address: request.peer,
            status: 200,
            // IIS writes a space as a plus sign, and a plus sign as itself.
            userAgent: format === 'w3c' ? gptBot.replaceAll('+', ' ') : gptBot,
            method: 'GET',
            referrer: withoutReferrer.includes(format) || /^-?$/.test(referrer) ? null : referrer,
          })
        }),
        { numRuns: runs(300) },
      )
      expect(read).toBeGreaterThan(triedCount * 0.8)
    })
  },
)

test('a Host header with spaces, which old servers accept, is never taken for the address', () => {
  const spaced = fc.record({
    host: hostile,
    user: hostile,
    peer: fc.constantFrom('198.51.100.7', '10.1.2.3'),
  })
  const usual = `shop.example 198.51.100.7 ${ncsa({ ...plainRequest, peer: '198.51.100.7' })}\n`
  const stream = createStreamFormat()
  stream.read(usual.repeat(100))
  fc.assert(
    fc.property(spaced, ({ host, user, peer }) => {
      const request = { ...plainRequest, peer, host, user }
      const line = `${quoted(host)} ${peer} ${ncsa(request)}`
      const format = stream.read(bytes(`${line}\n`))
      for (const name of ['host-combined', 'vcombined', 'name' in format ? format.name : 'host-combined'])
        expect([name, verdictOn(name, [line])]).not.toEqual([name, 'verified'])
    }),
    { numRuns: runs(3_000) },
  )
})

test('the host of a log with the host first is not the address, also when it looks like one', () => {
  const line = (host: string, peer: string): string =>
    `${host} ${peer} - - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  const lines = [line('shop.example', '198.51.100.7'), line(published, '198.51.100.7')]
  expect(guessed(lines)).toBe('host-combined')
  expect(guessed([lines[1]!])).toBe('host-combined')
  expect(verdictOn('host-combined', lines)).toBe('contradicted')
  expect(verdictOn('combined', lines)).toBe('bad')
  expect(verdictOn('%h %^ %^ [%d:%t %^] "%r" %s %b "%R" "%u"', lines)).toBe('bad')
})

test('words in front of a line are skipped, never stored', () => {
  const line = `20.171.206.9 - - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  for (const prefix of [
    'Nov  5 10:00:00 web1 nginx: ',
    'Nov 15 10:00:00 web1 nginx[12]: ',
    'Nov  5 10:00:00 nginx: ',
    '2026-11-05T10:00:00.123456+02:00 web1 nginx: ',
    '<190>1 2026-11-05T10:00:00Z web1 nginx 12 - - ',
    '2026-11-05T10:00:00.123456789Z stdout F ',
    'web-1  | ',
    '<190>Nov  5 10:00:00 web1 nginx: ',
    '2026-11-05T10:00:00.123456789Z ',
    'web-1  | 2026-11-05T10:00:00.123456789Z ',
    '[pod/web-1/nginx] ',
    'Nov 05 10:00:00.123456 web1 nginx[12]: ',
    'Thu 2026-11-05 10:00:00 UTC web1 nginx[12]: ',
    '1793872800.123456 web1 nginx[12]: ',
    '[ 1234.567890] web1 nginx[12]: ',
    '"',
    '2026-11-05T10:00:00+0000 web1 nginx[12]: ',
    '\u001b[36mweb-1  |\u001b[0m ',
    '<30>Nov  5 10:00:00 docker.io/library/nginx:1.29/web/0123456789ab[12]: ',
    '145 <190>Nov  5 10:00:00 web1 nginx: ',
    '<189>29: *Nov  5 10:00:00.123: ',
    '<189>29: r1: Nov  5 10:00:00 UTC: ',
    '<190>Nov  5 2026 10:00:00 web1 nginx: ',
    '<190>Nov  5 10:00:00 web1 nginx: @cee: ',
  ]) {
    expect([prefix, guessed([prefix + line])]).toEqual([prefix, 'combined'])
    expect(verdictOn('combined', [prefix + line])).toBe('verified')
  }
  for (const prefix of ['Nov ', 'Nov 5 10:00:00 ', 'access: web1 ', '7 ', 'info - '])
    expect([prefix, verdictOn('combined', [prefix + line])]).toEqual([prefix, 'bad'])
})

test('a line inside of a JSON object is read, and no object around a piece of a line', () => {
  const line = `20.171.206.9 - - [${timestamp}] "GET /ä HTTP/1.1" 200 5 "-" "${gptBot}"`
  const docker = (log: string): string => JSON.stringify({ log, stream: 'stdout', time: iso })
  const journal = (MESSAGE: unknown, fields = {}): string =>
    JSON.stringify({ __REALTIME_TIMESTAMP: '1793872800000000', _PID: '12', MESSAGE, ...fields })
  const wholes = [
    docker(`${line}\n`),
    docker(`web1 nginx: ${line}\n`.slice('web1 nginx: '.length)),
    docker(`Nov  5 10:00:00 web1 nginx: ${line}\n`),
    journal(line),
    journal([...Buffer.from(line)]),
    JSON.stringify({ '@timestamp': iso, message: line, host: { name: 'web1' } }),
    JSON.stringify({ date: 1_793_872_800.5, log: line }),
    `Nov  5 10:00:00 web1 dockerd[12]: ${docker(`${line}\n`)}`,
  ]
  for (const whole of wholes) {
    expect([whole, guessed([whole])]).toEqual([whole, 'combined'])
    expect([whole, verdictOn('combined', [whole])]).toEqual([whole, 'verified'])
  }
  const caddy = writers['caddy']!.line({ ...plainRequest, peer: '20.171.206.9' })
  expect(guessed([docker(`${caddy}\n`)])).toBe('caddy')
  expect(verdictOn('caddy', [docker(`${caddy}\n`)])).toBe('verified')
  const first = `198.51.100.7 - - [${timestamp}] "GET /aaaa`
  const cri = (mark: string, text: string, stream = 'stdout'): string => `${iso} ${stream} ${mark} ${text}`
  for (const pieces of [
    [docker(first), docker(`${line}\n`)],
    [docker(first), docker('b'), docker(`${line}\n`)],
    [cri('P', first), cri('F', line)],
    [cri('P', first), cri('F', 'an error\n', 'stderr'), cri('F', line)],
    [cri('P', line)],
    [journal(first, { _LINE_BREAK: 'line-max' }), journal(line)],
    [journal(line, { CONTAINER_PARTIAL_MESSAGE: 'true', CONTAINER_PARTIAL_LAST: 'true' })],
  ])
    expect([pieces, verdictOn('combined', pieces)]).toEqual([pieces, 'bad'])
  expect(verdictOn('combined', [docker(first), docker(`${line}\n`), docker(`${line}\n`)])).toBe('verified')
  expect(verdictOn('combined', [docker(`${line}\n${line}\n`)])).toBe('verified') // one line, never two
})

test('a time that is not of a common log is read in its place', () => {
  const line = (time: string): string => `20.171.206.9 - - [${time}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  for (const time of [
    '2026-11-05T10:00:01+02:00',
    '2026-11-05T10:00:01.123Z',
    '2026-11-05 10:00:01 +0200',
    '1793872801.123',
  ]) {
    expect([time, guessed([line(time)])]).toEqual([time, 'combined'])
    expect([time, verdictOn('combined', [line(time)])]).toEqual([time, 'verified'])
  }
  for (const time of ['2026-11-05', 'yesterday', '12', '2026-13-05T10:00:01Z'])
    expect([time, verdictOn('combined', [line(time)])]).toEqual([time, 'bad'])
})

test('an agent without an address is counted, and cannot be verified', () => {
  const lineTail = `- - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  for (const peer of ['-', 'crawl.googlebot.com', 'unix:'])
    expect(verdictOn('combined', [`${peer} ${lineTail}`])).toBe('unverifiable')
  expect(verdictOn('combined', [`203.0.113.9, 20.171.206.4 ${lineTail}`])).toBe('verified') // of the last proxy
  expect(verdictOn('combined', [`20.171.206.4, 198.51.100.7 ${lineTail}`])).toBe('contradicted')
  const fields = '#Fields: date time c-ip cs-method cs-uri-stem cs(User-Agent) sc-status'
  expect(verdictOn('w3c', [fields, `2026-11-05 10:00:00 - GET /a ${plus(gptBot)} 200`])).toBe('unverifiable')
  expect(verdictOn('w3c', [fields, `2026-11-05 10:00:00 - GET /a ${plus(gptBot)} 200 more`])).toBe('bad')
})

test('values between quotes in a W3C log are read', () => {
  const fields = '#Fields: date time c-ip cs-method cs-uri-stem cs(Referer) cs(User-Agent) sc-status'
  const line = (peer: string, referrer: string): string =>
    `2026-11-05 10:00:00 ${peer} GET /a "${referrer}" "${gptBot}" 200`
  expect(guessed([fields, line(published, '-')])).toBe('w3c')
  for (const referrer of ['-', 'https://a.example/ b', 'a ""b"" c', `x"" ${published} ""`])
    expect([referrer, verdictOn('w3c', [fields, line('198.51.100.7', referrer)])]).toEqual([
      referrer,
      'contradicted',
    ])
  expect(verdictOn('w3c', [fields, line(published, 'https://a.example/ b')])).toBe('verified')
  expect(verdictOn('w3c', [fields, line(published, 'a" 200 "b')])).toBe('bad')
  const noReferrer = line('198.51.100.7', '-').replace('"-"', '-')
  expect(verdictOn('w3c', [fields, noReferrer])).toBe('contradicted')
})

test('a proxy that reports no client says nothing about it', () => {
  const lineTail = `- - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  for (const forwarded of ['-', 'unknown', '20.171.206.9, unknown', '_hidden'])
    expect(
      verdictOn('combined-forwarded', [`203.0.113.1 ${lineTail} "${forwarded}"`], ['203.0.113.0/24']),
    ).toBe('unverifiable')
})

test('Traefik writes X-Forwarded-For of anybody into ClientHost', () => {
  const line = (peer: string, clientHost: string): string =>
    JSON.stringify({
      ClientAddr: `${bracketed(peer)}:50064`,
      ClientHost: clientHost,
      DownstreamStatus: 200,
      StartUTC: iso,
      RequestMethod: 'GET',
      RequestPath: '/',
      'request_User-Agent': gptBot,
    })
  for (const forged of [published, `${published}, 203.0.113.9`, `203.0.113.9, ${published}`])
    expect(verdictOn('traefik', [line('198.51.100.7', forged)])).toBe('contradicted')
  expect(verdictOn('traefik', [line('172.18.0.2', `198.51.100.7, ${published}`)])).toBe('verified')
  expect(verdictOn('traefik', [line('172.18.0.2', `${published}, 198.51.100.7`)])).toBe('contradicted')
  expect(verdictOn('traefik', [line('203.0.113.1', published)], ['203.0.113.0/24'])).toBe('verified')
})

test('of several headers X-Forwarded-For, the proxy added the last', () => {
  const headers = { 'User-Agent': [gptBot], 'X-Forwarded-For': [published, '198.51.100.7'] }
  const request = { remote_ip: '10.0.0.5', method: 'GET', uri: '/', headers }
  expect(
    verdictOn('caddy', [JSON.stringify({ ts: 1_793_872_800.5, request, status: 200 })], ['10.0.0.0/8']),
  ).toBe('contradicted')
})

test('another value in quotes at the end is not X-Forwarded-For, also when it is an address', () => {
  const lineTail = `- - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  const lines = Array.from({ length: 20 }, () => `10.0.0.5 ${lineTail} "shop.example"`)
  expect(guessed([...lines, `10.0.0.5 ${lineTail} "${published}"`])).toBe('combined')
})

test('a few strange lines do not change the format of a file or of a stream', () => {
  const lineTail = `- - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  const good = `10.0.0.5 ${lineTail} "20.171.206.9"`
  const strange = [
    `10.0.0.5 ${lineTail} "a-b.example"`,
    `10.0.0.5 ${lineTail}`,
    'x',
    `${published} ${lineTail}`,
  ]
  for (const line of strange) {
    expect(guessed([line, ...Array<string>(20).fill(good)])).toBe('combined-forwarded')
    const stream = createStreamFormat()
    stream.read(`${line}\n`)
    for (let body = 0; body < 50; body++) stream.read(`${good}\n${good}\n`)
    expect(stream.name()).toBe('combined-forwarded')
    for (let body = 0; body < 50; body++) stream.read(`${line}\n`)
    expect(stream.read(`${good}\n`)).toEqual({ name: 'combined-forwarded' })
  }
})

test('--trusted-proxy without X-Forwarded-For in the log is said', () => {
  const lineTail = `- - [${timestamp}] "GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
  const warningFor = (line: string): string | null => {
    const detection = detectFormat(`${line}\n`)
    return 'guess' in detection ? withoutForwarded(detection.guess) : 'not recognized'
  }
  expect(warningFor(`10.0.0.5 ${lineTail}`)).toBe(
    '--trusted-proxy has no effect: combined has no X-Forwarded-For',
  )
  expect(warningFor(`10.0.0.5 ${lineTail} "-"`)).toBeNull()
})
