/**
 * Logs as servers, runtimes and services of the world write them (`cases/`), at every door that takes them: files, logs
 * that are followed, bodies and syslog. Each door reads the same, whatever wraps a line.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { syslogRules } from '../../server/access/syslog.ts'
import type { SourcesView } from '../../server/access/source-routes.ts'
import { watchRules } from '../../server/access/watches.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(90_000) // the executable starts for each import, on a machine that may be busy

interface Case {
  file: string
  format?: string
  isBehindProxy?: boolean
  /** Whether a program would send its lines by syslog. */
  isSyslog: boolean
  verified: number
  contradicted: number
  unverifiable: number
  bad: number
}

/** A log with nothing special but its lines. */
function allVerified(file: string, verified: number, overrides: Partial<Case> = {}): Case {
  return { file, isSyslog: true, verified, contradicted: 0, unverifiable: 0, bad: 0, ...overrides }
}

const proxies = ['10.0.0.0/8']
const listFirst = '~h{, } %^[%d:%t %^] "%r" %s %b "%R" "%u"'
const dottedKeys =
  'json:time=@timestamp,ip=source.ip,status=http.response.status_code,userAgent=user_agent.original,path=url.original'

const cases: Case[] = [
  allVerified('a-01.txt', 3),
  allVerified('a-02.txt', 1),
  allVerified('a-03.txt', 22, { isBehindProxy: true, unverifiable: 1 }),
  allVerified('a-04.txt', 5, { isBehindProxy: true }),
  allVerified('a-05.txt', 2),
  allVerified('a-07.ndjson', 2, { unverifiable: 1 }),
  allVerified('a-08.txt', 3, { isBehindProxy: true, isSyslog: false }),
  allVerified('a-12.txt', 4, { format: listFirst, isSyslog: false }),
  allVerified('a-13.ndjson', 1),
  allVerified('a-15.ndjson', 1, { format: dottedKeys, isSyslog: false }),
  allVerified('a-21.txt', 4, { unverifiable: 1 }),
  allVerified('a-21-w3c.txt', 1, { unverifiable: 1, isSyslog: false }),
  allVerified('a-22-1.txt', 5),
  allVerified('a-23-docker.ndjson', 1),
  allVerified('a-23-journald.ndjson', 1),
  allVerified('a-24.txt', 1),
  allVerified('a-25.txt', 3),
  allVerified('a-30.txt', 4, { contradicted: 2 }),
  allVerified('a-31.ndjson', 7),
  allVerified('a-32.ndjson', 10, { bad: 2 }),
  allVerified('a-36.txt', 4, { bad: 1 }),
  allVerified('a-37.txt', 1),
  allVerified('a-38.txt', 6, { isSyslog: false }),
  allVerified('a-39.txt', 0, { contradicted: 5, isSyslog: false }),
]

const pathOf = (file: string): string => join(import.meta.dir, 'cases', file)
const siteOf = (door: string, file: string): string => `${door}-${file.replaceAll(/\W/g, '-')}`
const trusted = ({ isBehindProxy = false }: Case): string[] => (isBehindProxy ? proxies : [])

let server: TestServer
let appliance: Appliance
let key: string
let syslogAddresses: SourcesView['syslog']

beforeAll(async () => {
  const watches = cases.map((testCase) => {
    const { file, format = 'auto' } = testCase
    return { site: siteOf('watch', file), path: pathOf(file), format, 'trusted-proxy': trusted(testCase) }
  })
  const addresses = cases
    .filter(({ isSyslog }) => isSyslog)
    .map((testCase) => {
      return {
        site: siteOf('syslog', testCase.file),
        address: 'udp:127.0.0.1:0',
        'trusted-proxy': trusted(testCase),
      }
    })
  server = await testServer({
    watches: watchRules(JSON.stringify(watches)),
    syslog: syslogRules(JSON.stringify(addresses)),
  })
  key = await server.key('ingest')
  const cookie = await server.signIn('analyst')
  const view = await server.call('/api/sources', { headers: { cookie } })
  syslogAddresses = ((await view.json()) as SourcesView).syslog
  appliance = await startAppliance()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await appliance.stop()
})

interface Reading {
  verified: number
  contradicted: number
  unverifiable: number
  bad: number
}

function expected({ verified, contradicted, unverifiable, bad }: Case): Reading {
  return { verified, contradicted, unverifiable, bad }
}

async function readingOf(siteId: string): Promise<Reading & { lines: number }> {
  const reading = { verified: 0, contradicted: 0, unverifiable: 0, bad: 0, lines: 0 }
  for (const source of await server.store.accessLogs.sources(server.org.id)) {
    if (source.siteId !== siteId) continue
    reading.bad += source.bad
    reading.lines += source.lines
  }
  const query = {
    orgId: server.org.id,
    filter: { siteIds: [siteId] },
    limit: 1_000,
    before: null,
    ceilingSeq: null,
  }
  const { events } = await server.store.events.page(query)
  for (const { json } of events) {
    const event = JSON.parse(json) as { type: string; siteId: string; agent: { verdict: keyof Reading } }
    if (event.siteId === siteId && event.type === 'agent.requested') reading[event.agent.verdict]++
  }
  return reading
}

/** Waits for all lines of a file, then says what was read. */
async function readingWhenDone(siteId: string, lines: number): Promise<Reading> {
  for (const endMs = performance.now() + 60_000; ; await Bun.sleep(50)) {
    const { lines: read, ...reading } = await readingOf(siteId)
    if (read >= lines) return reading
    if (performance.now() > endMs) throw new Error(`${siteId}: ${read} of ${lines} lines after a minute`)
  }
}

const linesOf = (file: string): string[] => readFileSync(pathOf(file), 'utf8').trimEnd().split('\n')

describe.each(cases)('$file', (testCase) => {
  const { file, format } = testCase

  test('as a file', async () => {
    const options = [
      ...(format === undefined ? [] : ['--format', format]),
      ...trusted(testCase).flatMap((proxy) => ['--trusted-proxy', proxy]),
    ]
    const args = ['import', 'access', pathOf(file), '--site', siteOf('file', file), '--json', ...options]
    const { code, stdout, stderr } = await appliance.cli(...args)
    expect([code, stderr]).toEqual([0, ''])
    const sums = JSON.parse(stdout) as { stored: number; bad: number; lines: number; agents: Reading[] }
    const sumOf = (name: 'verified' | 'contradicted'): number =>
      sums.agents.reduce((sum, agent) => sum + agent[name], 0)
    const verified = sumOf('verified')
    const contradicted = sumOf('contradicted')
    const unverifiable = sums.stored - verified - contradicted
    expect({ verified, contradicted, unverifiable, bad: sums.bad }).toEqual(expected(testCase))
  })

  test('as a log that is followed', async () => {
    expect(await readingWhenDone(siteOf('watch', file), linesOf(file).length)).toEqual(expected(testCase))
  })

  test('as a body', async () => {
    const site = siteOf('body', file)
    const query = new URLSearchParams({ siteId: site, trustedProxy: trusted(testCase).join(',') })
    if (format !== undefined) query.set('format', format)
    const response = await server.call(`/v1/sdk/access-logs?${query}`, {
      method: 'POST',
      key,
      body: readFileSync(pathOf(file), 'utf8'),
      headers: { 'content-type': 'text/plain' },
    })
    expect(response.status).toBe(202)
    expect(await response.json()).toMatchObject({ lines: linesOf(file).length, bad: testCase.bad })
    expect(await readingWhenDone(site, linesOf(file).length)).toEqual(expected(testCase))
  })

  test.if(testCase.isSyslog)('by syslog', async () => {
    const site = siteOf('syslog', file)
    const report = syslogAddresses.find(({ siteId }) => siteId === site)!
    const socket = await Bun.udpSocket({})
    const port = Number(report.listen.split(':').at(-1))
    for (const line of linesOf(file))
      socket.send(`<190>Nov  5 10:00:00 web1 nginx: ${line}`, port, '127.0.0.1')
    expect(await readingWhenDone(site, linesOf(file).length)).toEqual(expected(testCase))
    socket.close()
  })
})

test('every case is tried, and no door reads more from one than another', () => {
  expect(cases.length).toBeGreaterThan(20)
  expect(new Set(cases.map(({ file }) => file)).size).toBe(cases.length)
})
