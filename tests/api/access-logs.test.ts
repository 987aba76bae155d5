/** POST /v1/sdk/access-logs, syslog, logs that the server watches, and what Settings shows of them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { followLog } from '../../server/access/follow.ts'
import { httpSink } from '../../server/access/http-sink.ts'
import { watchRules } from '../../server/access/watches.ts'
import { syslogRules } from '../../server/access/syslog.ts'
import type { SourcesView } from '../../server/access/source-routes.ts'
import { makeOrg, person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'
import { runs } from '../support/runs.ts'

setDefaultTimeout(60_000)

const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

function line(page: string, userAgent = gptBot): string {
  return `203.0.113.9 - - [23/Nov/2026:10:00:00 +0000] "GET /${page} HTTP/1.1" 200 512 "-" "${userAgent}"\n`
}

const files = tempDir('access')
const watched = files.join('watched.log')
const socket = files.join('syslog.sock')
let server: TestServer
let key: string

beforeAll(async () => {
  server = await testServer({
    watches: watchRules(`blog=${watched}`),
    syslog: [
      ...syslogRules(`edge=udp:127.0.0.1:0,local=unix:${socket}`),
      ...syslogRules(JSON.stringify([{ site: 'other', address: 'udp:127.0.0.1:0', org: 'acme' }])),
    ],
  })
  key = await server.key('ingest')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  files.remove()
})

interface Answer {
  [field: string]: unknown
  position: number
  tail: string
}

async function post(query: string, body: string | Uint8Array, headers: Record<string, string> = {}) {
  const type = { 'content-type': 'text/plain', ...headers }
  const response = await server.call(`/v1/sdk/access-logs?${query}`, {
    method: 'POST',
    key,
    body,
    headers: type,
  })
  return { status: response.status, answer: (await response.json()) as Answer }
}

async function until<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (const endMs = performance.now() + 20_000; ; await Bun.sleep(20)) {
    const value = await read()
    if (holds(value)) return value
    if (performance.now() > endMs) throw new Error(`it did not happen in time: ${JSON.stringify(value)}`)
  }
}

async function pagesOf(siteId: string): Promise<string[]> {
  const query = { orgId: server.org.id, filter: {}, limit: 1_000, before: null, ceilingSeq: null }
  const { events } = await server.store.events.page(query)
  const storedRequests = events.map(
    ({ json }) => JSON.parse(json) as { siteId: string; type: string; metadata: { page: string } },
  )
  const requests = storedRequests.filter(
    (event) => event.siteId === siteId && event.type === 'agent.requested',
  )
  return requests.map(({ metadata }) => metadata.page).toSorted()
}

async function sources(): Promise<SourcesView> {
  const cookie = await server.signIn('analyst')
  return (await (await server.call('/api/sources', { headers: { cookie } })).json()) as SourcesView
}

test('a drain stores each line of a body once; a repeated body is known', async () => {
  const body = line('a') + line('b') + line('people', browser) + line('style.css', browser) + 'broken\n'
  const first = await post('siteId=drain', body)
  expect(first.status).toBe(202)
  expect(first.answer).toMatchObject({
    ok: false,
    lines: 5,
    stored: 2,
    deduped: 0,
    people: 1,
    excluded: 1,
    bad: 1,
    state: 'stored',
    errors: [{ line: 5, message: 'does not fit combined' }],
  })
  const again = await post('siteId=drain', Bun.gzipSync(Buffer.from(body)), { 'content-encoding': 'gzip' })
  expect(again.answer).toMatchObject({
    lines: 5,
    stored: 0,
    deduped: 2,
    people: 1,
    excluded: 1,
    bad: 1,
    state: 'known',
  })
  expect(await pagesOf('drain')).toEqual(['/a', '/b'])
  const json = {
    time: '2026-11-23T10:00:00Z',
    remote_addr: '203.0.113.9',
    request: 'GET /json HTTP/1.1',
    status: 200,
  }
  const ndjson = `${JSON.stringify({ ...json, http_user_agent: gptBot })}\n`
  const type = { 'content-type': 'application/x-ndjson' }
  expect((await post('siteId=drain', ndjson, type)).answer).toMatchObject({ ok: true, lines: 1, stored: 1 })
})

test('with source and offset the lines of a log follow each other; another position is refused', async () => {
  const text = [line('one'), line('two'), line('three')]
  const one = text[0]!.length
  const two = text[0]!.length + text[1]!.length
  const queryAt = (offset: number): string => `siteId=offset&source=web1&format=combined&offset=${offset}`
  expect((await post(queryAt(0), text[0]!)).answer).toMatchObject({
    state: 'stored',
    stored: 1,
    position: one,
  })
  const behind = await post(queryAt(two), text[2]!)
  expect(behind.status).toBe(409)
  expect(behind.answer).toMatchObject({
    error: 'conflict',
    position: one,
    hint: expect.stringContaining('Continue'),
  })
  // A body that begins with known lines: only the rest is new.
  expect((await post(queryAt(0), text.join(''))).answer).toMatchObject({
    lines: 3,
    stored: 2,
    deduped: 1,
    state: 'stored',
  })
  expect((await post(queryAt(0), text.join(''))).answer).toMatchObject({
    lines: 3,
    stored: 0,
    deduped: 3,
    state: 'known',
  })
  const response = await server.call('/v1/sdk/access-logs?siteId=offset&source=web1', { key })
  expect(await response.json()).toMatchObject({ position: text.join('').length })
  expect(await pagesOf('offset')).toEqual(['/one', '/three', '/two'])
})

test('a body that is not an access log, and invalid parameters, are refused with what is accepted', async () => {
  const limited = await server.key('ingest', { siteIds: ['other'] })
  const calls: [
    query: string,
    body: string,
    status: number,
    message: RegExp,
    headers?: Record<string, string>,
  ][] = [
    ['siteId=x', 'hello\nworld\n', 415, /is not an access log: no known format fits its first 2 lines/],
    ['siteId=x&format=nginxx', line('a'), 400, /is not a log format/],
    // Fields without anything between them once took longer than the universe has existed.
    ['siteId=x&format=%25U%25U%25U%25U%20%25d:%25t', 'a'.repeat(2_000), 400, /%U is followed by %U/],
    ['siteId=x&trustedProxy=proxy', line('a'), 400, /"proxy" is not an IP address or a range/],
    ['siteId=x&trustedProxy=10.0.0.0/33', line('a'), 400, /"10.0.0.0\/33" is not an IP address or a range/],
    ['', line('a'), 400, /siteId must have 1 to 200 characters/],
    ['siteId=x&source=s', line('a'), 400, /offset is required with source/],
    ['siteId=x&source=s&offset=-1', line('a'), 400, /offset must be a whole number/],
    [`siteId=x&source=${'s'.repeat(81)}&offset=0`, line('a'), 400, /source must have at most 80 characters/],
    [
      'siteId=x&source=s&offset=0&end=5&tail=t',
      line('a'),
      400,
      /end must be at or after the end of the body/,
    ],
    ['siteId=x&sites=y', line('a'), 400, /Unknown parameter 'sites'/],
    ['siteId=x', line('a'), 415, /content-type must be text\/plain or/, { 'content-type': 'image/png' }],
  ]
  for (const [query, body, status, message, headers] of calls) {
    const { status: got, answer } = await post(query, body, headers)
    expect([query, got]).toEqual([query, status])
    expect(answer['message']).toMatch(message)
  }
  const headers = { 'content-type': 'text/plain' }
  const wrongSite = await server.call('/v1/sdk/access-logs?siteId=x', {
    key: limited,
    body: line('a'),
    headers,
  })
  expect([wrongSite.status, (await wrongSite.json()).reason]).toEqual([403, 'wrong_site'])
  expect((await server.call('/v1/sdk/access-logs?siteId=x', { body: line('a') })).status).toBe(401)
  const bomb = Bun.gzipSync(Buffer.alloc(32 * 1024 * 1024))
  expect((await post('siteId=x', bomb, { 'content-encoding': 'gzip' })).status).toBe(413)
  // Cloudflare tries an address with this body.
  expect((await post('siteId=x', '{"content":"tests"}')).status).toBe(202)
})

test('bodies of any bytes are stored, counted as bad or refused; the sums always add up', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      line('f'),
      line('p', browser),
      '\n',
      '#Fields: date\n',
      '{"a":',
      '\0',
      '"',
      'x'.repeat(70_000),
    ),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  )
  const format = fc.constantFrom(
    '',
    '&format=combined',
    '&format=w3c',
    '&format=caddy',
    '&format=json:time=t,ip=a,ua=u',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), format, async (pieces, formatQuery) => {
      const { status, answer } = await post(
        `siteId=fuzz${formatQuery}`,
        Buffer.from(pieces.join(''), 'latin1'),
      )
      expect([status, answer['message']]).toEqual([
        status === 415 ? 415 : 202,
        status === 415 ? answer['message'] : undefined,
      ])
      if (status === 415) return
      const { lines, stored, deduped, people, excluded, bad } = answer as unknown as { [sum: string]: number }
      expect(stored! + deduped! + people! + excluded! + bad!).toBe(lines!)
    }),
    { numRuns: runs(60) },
  )
})

test('watch --to sends a log over HTTP, waits while the appliance refuses, and continues', async () => {
  const path = files.join('remote.log')
  writeFileSync(path, line('r1') + line('r2', browser))
  const ending = new AbortController()
  const options = { siteId: 'remote', keepQuery: [], keepAddresses: false, trustedProxies: [] }
  const problems: (string | null)[] = []
  const running = (reader: string, readerKey = key): Promise<void> =>
    followLog({
      path,
      format: 'auto',
      signal: ending.signal,
      now: Date.now,
      intervalMs: 5,
      sink: httpSink({ url: server.url, key: readerKey, options, reader }),
      understood: () => undefined,
      stored: () => undefined,
      problem: (message) => problems.push(message),
    })
  const followed = running('one')
  await until(
    () => pagesOf('remote'),
    (pages) => pages.length === 1,
  )
  const refused = await running('wrong', 'agtx_ik_wrong').catch((error: Error) => error.message)
  expect(refused).toBe('Unknown API key.')
  renameSync(path, `${path}.1`)
  writeFileSync(path, line('r3'))
  appendFileSync(path, `${'x'.repeat(100_000)}\n${line('r4')}`)
  await until(
    () => pagesOf('remote'),
    (pages) => pages.length === 3,
  )
  expect(await pagesOf('remote')).toEqual(['/r1', '/r3', '/r4'])
  ending.abort()
  await followed
  const [log] = (await sources()).logs.filter(({ siteId }) => siteId === 'remote')
  expect(log).toMatchObject({
    path,
    format: 'combined',
    lines: 5,
    agents: 3,
    people: 1,
    bad: 1,
    isDrain: false,
  })
  expect(log!.reader).toMatchObject({ problem: null })
})

test('the server follows a log of --watch, and Settings shows its reader', async () => {
  const waiting = await until(sources, ({ logs }) =>
    logs.some(({ path, reader }) => path === watched && reader?.problem),
  )
  expect(waiting.logs.find(({ path }) => path === watched)!.reader!.problem).toContain('does not exist')
  writeFileSync(watched, line('w1') + line('w2'))
  await until(
    () => pagesOf('blog'),
    (pages) => pages.length === 2,
  )
})

test('syslog over UDP and a Unix socket: headers are removed, and a line feed makes no second line', async () => {
  const { syslog } = await sources()
  const [udp] = syslog
  const port = Number(udp!.listen.split(':').at(-1))
  const sender = await Bun.udpSocket({})
  const send = (text: string): boolean => sender.send(text, port, '127.0.0.1')
  send(`<190>Nov 23 10:00:00 web1 nginx: ${line('s1').trimEnd()}`)
  send(`<190>Nov  3 10:00:00 nginx: ${line('s2')}`)
  send(`<190>1 2026-11-23T10:00:00Z web1 nginx 12 - - ${line('s3')}`)
  send(`${line('s4').trimEnd()}\n${line('forged')}`)
  await until(
    () => pagesOf('edge'),
    (pages) => pages.length >= 4,
  )
  const socketSender = Bun.spawn([
    'python3',
    '-c',
    unixSender,
    socket,
    `<190>Nov 23 10:00:00 web1 nginx: ${line('u1')}`,
  ])
  expect(await socketSender.exited).toBe(0)
  await until(
    () => pagesOf('local'),
    (pages) => pages.length === 1,
  )
  sender.close()
  const shown = (await sources()).syslog
  expect(
    shown.map(({ siteId, received, dropped, format }) => ({ siteId, received, dropped, format })),
  ).toEqual([
    { siteId: 'edge', received: 4, dropped: 0, format: 'combined' },
    { siteId: 'local', received: 1, dropped: 0, format: 'combined' },
  ])
  expect(await pagesOf('edge')).toEqual(['/s1', '/s2', '/s3', '/s4'])
})

test('syslog of another organization waits until it exists, and is shown to its members only', async () => {
  const org = await makeOrg(server, 'acme')
  const admin = await person(server, org, 'admin')
  const { syslog } = (await (await admin.call('/api/sources')).json()) as SourcesView
  expect(syslog).toMatchObject([{ siteId: 'other', org: 'acme' }])
  const sender = await Bun.udpSocket({})
  sender.send(line('acme'), Number(syslog[0]!.listen.split(':').at(-1)), '127.0.0.1')
  await until(
    async () => (await server.store.accessLogs.sources(org.id)).length,
    (count) => count === 1,
  )
  sender.close()
  expect(await pagesOf('other')).toEqual([]) // of the organization default
})

const unixSender = `
import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])
`

test('no door takes a forged address for that of the connection', async () => {
  const published = '20.171.206.9' // of GPTBot
  const lineTail = `- - [23/Nov/2026:10:00:00 +0000] "GET /forged HTTP/1.1" 200 512 "-" "${gptBot}"`
  const ownHost = `shop.example 198.51.100.7 ${lineTail}\n`
  const forged = `${published} 198.51.100.7 ${lineTail}\n`
  const traefik = {
    ClientAddr: '198.51.100.7:1',
    ClientHost: published,
    StartUTC: '2026-11-23T10:00:00Z',
    RequestPath: '/',
    DownstreamStatus: 200,
    'request_User-Agent': gptBot,
  }
  await post('siteId=forged', ownHost + forged)
  await post('siteId=forged', forged)
  await post('siteId=forged&format=combined', forged)
  await post(
    'siteId=forged&format=combined-forwarded&trustedProxy=10.0.0.0/8',
    `198.51.100.7 ${lineTail} "${published}"\n`,
  )
  await post('siteId=forged&format=traefik', `${JSON.stringify(traefik)}\n`)
  // Over syslog a colon may be of an address, and a host of the line itself.
  const { syslog } = await sources()
  const address = syslog.find(({ siteId }) => siteId === 'edge')!.listen
  const sender = await Bun.udpSocket({})
  const datagrams = [`<13>Nov 23 10:00:00 web1 ${forged}`, `<13>Nov 23 10:00:00 nginx: ${forged}`]
  const untagged = `<13>Nov 23 10:00:00 web1 2001:${published} ${lineTail}`
  const last = `<13>Nov 23 10:00:00 nginx: 198.51.100.7 ${lineTail.replace('/forged', '/last')}`
  for (const datagram of [...datagrams, untagged, last])
    sender.send(datagram, Number(address.split(':').at(-1)), '127.0.0.1')
  await until(
    () => verdictsOf('edge', '/last'),
    (verdicts) => verdicts.length > 0,
  )
  sender.close()
  const verdicts = [...(await verdictsOf('forged', null)), ...(await verdictsOf('edge', '/forged'))]
  expect(verdicts).toHaveLength(5)
  expect(new Set(verdicts)).toEqual(new Set(['contradicted']))
  expect(await verdictsOf('edge', '/last')).toEqual(['contradicted'])
})

/** The verdicts on requests of a site, of one page or of all. */
async function verdictsOf(siteId: string, page: string | null): Promise<string[]> {
  const query = { orgId: server.org.id, filter: {}, limit: 1_000, before: null, ceilingSeq: null }
  const { events } = await server.store.events.page(query)
  const storedRequests = events.map(({ json }) => JSON.parse(json) as StoredRequest)
  const requests = storedRequests.filter(
    (event) => event.siteId === siteId && event.type === 'agent.requested',
  )
  return requests
    .filter(({ metadata }) => page === null || metadata.page === page)
    .map(({ agent }) => agent.verdict)
}

interface StoredRequest {
  siteId: string
  type: string
  metadata: { page: string }
  agent: { verdict: string }
}

test('Ingest health says of each body with bad lines how many and why, without their text', async () => {
  expect((await post('siteId=health', `${line('a')}nonsense\n${line('b')}more\n`)).answer).toMatchObject({
    bad: 2,
  })
  expect((await post('siteId=unread', '198.51.100.7 hello\nworld\n')).status).toBe(415)
  expect((await post('siteId=health&source=s', line('a'))).status).toBe(400)
  const cookie = await server.signIn('analyst')
  const response = await server.call('/api/ingest/health', { headers: { cookie } })
  const { rejected } = (await response.json()) as { rejected: { [field: string]: unknown }[] }
  expect(rejected.slice(0, 3).toReversed()).toMatchObject([
    {
      code: 'bad_lines',
      message: '2 of 4 lines for the site health are not stored. Line 2 does not fit combined.',
      excerpt: '',
    },
    {
      code: 'unsupported_media_type',
      message: 'The body is not an access log: no known format fits its first 2 lines.',
      excerpt: '',
    },
    { code: 'invalid_query', excerpt: '' },
  ])
  expect(JSON.stringify(rejected)).not.toContain('198.51.100.7')
})
