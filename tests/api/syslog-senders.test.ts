/**
 * Syslog as real programs send it: nginx, rsyslog, `logger` and Python. Several programs send to one address, each in a
 * format of its own, and what cannot be read is counted wherever lost lines are shown.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { syslogRules } from '../../server/access/syslog.ts'
import type { SourcesView } from '../../server/access/source-routes.ts'
import { freePort } from '../support/free-port.ts'
import { testWith } from '../support/installed.ts'
import { person } from '../support/people.ts'
import { run } from '../support/process.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

const gptBot = 'Mozilla/5.0 AppleWebKit/537.36 (compatible; GPTBot/1.3; +https://openai.com/gptbot)'
const published = '20.171.206.9' // OpenAI's list has it
const sites = ['nginx', 'rsyslog', 'logger', 'python', 'mixed', 'silent'] as const
type Site = (typeof sites)[number]

const line = (path: string, peer = published): string =>
  `${peer} - - [23/Nov/2026:10:00:00 +0000] "GET ${path} HTTP/1.1" 200 512 "-" "${gptBot}"`
const host = (path: string): string => `shop.example ${line(path)}`
const forwarded = (path: string): string => `${line(path, '10.0.0.5')} "${published}"`

const metricsToken = 'metrics-token-of-the-test'
const files = tempDir('senders')
let server: TestServer

beforeAll(async () => {
  const rules = sites.map((site) => ({
    site,
    address: 'udp:127.0.0.1:0',
    'trusted-proxy': ['10.0.0.0/8', '127.0.0.0/8'],
  }))
  server = await testServer({ syslog: syslogRules(JSON.stringify(rules)), metricsToken })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  files.remove()
})

async function reportOf(site: Site): Promise<SourcesView['syslog'][number]> {
  const cookie = await server.signIn('analyst')
  const response = await server.call('/api/sources', { headers: { cookie } })
  const { syslog } = (await response.json()) as SourcesView
  return syslog.find(({ siteId }) => siteId === site)!
}

const portOf = async (site: Site): Promise<string> => (await reportOf(site)).listen.split(':').at(-1)!

async function requestsOf(site: Site): Promise<string[]> {
  const query = {
    orgId: server.org.id,
    filter: { siteIds: [site] },
    limit: 1_000,
    before: null,
    ceilingSeq: null,
  }
  const { events } = await server.store.events.page(query)
  return events
    .map(
      ({ json }) =>
        JSON.parse(json) as { type: string; agent: { verdict: string }; metadata: { page: string } },
    )
    .filter(({ type }) => type === 'agent.requested')
    .map(({ agent, metadata }) => `${metadata.page} ${agent.verdict}`)
    .toSorted()
}

async function untilRequests(site: Site, count: number): Promise<string[]> {
  for (const endMs = performance.now() + 30_000; ; await Bun.sleep(50)) {
    const requests = await requestsOf(site)
    if (requests.length >= count) return requests
    if (performance.now() > endMs)
      throw new Error(`${site}: ${JSON.stringify([requests, await reportOf(site)])}`)
  }
}

async function finished(command: string[]): Promise<void> {
  const child = run(command, { cwd: files.path, env: {} })
  const code = await child.exited
  expect([code, child.stderr()]).toEqual([0, ''])
}

testWith('logger', 'logger in each of its formats', async (logger) => {
  const to = ['--udp', '--server', '127.0.0.1', '--port', await portOf('logger')]
  const forms = [
    ['--rfc3164'],
    ['--rfc5424'],
    ['--rfc5424=notime,notq,nohost'],
    ['--rfc3164', '--octet-count'],
  ]
  for (const [index, form] of [...forms, ['--rfc3164', '--id=42', '--tag', 'nginx'], []].entries())
    await finished([logger, ...to, ...form, line(`/${index}`)])
  expect(await untilRequests('logger', 6)).toEqual([0, 1, 2, 3, 4, 5].map((index) => `/${index} verified`))
  expect(await reportOf('logger')).toMatchObject({ received: 6, bad: 0, dropped: 0, format: 'combined' })
})

testWith('python3', "Python's SysLogHandler, with and without an ident", async (python) => {
  const program = `
import logging, logging.handlers, sys
for ident, text in (('', sys.argv[2]), ('shop: ', sys.argv[3])):
    handler = logging.handlers.SysLogHandler(('127.0.0.1', int(sys.argv[1])))
    handler.ident = ident
    handler.emit(logging.makeLogRecord({'msg': text}))
    handler.close()
`
  await finished([python, '-c', program, await portOf('python'), line('/plain'), line('/ident')])
  expect(await untilRequests('python', 2)).toEqual(['/ident verified', '/plain verified'])
  expect(await reportOf('python')).toMatchObject({ received: 2, bad: 0, dropped: 0, format: 'combined' })
})

testWith('nginx', 'three formats of nginx on one address', async (nginx) => {
  const port = freePort()
  const to = `syslog:server=127.0.0.1:${await portOf('nginx')}`
  const folder = files.join('nginx')
  mkdirSync(folder)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    `${folder}/nginx.conf`,
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
    events {}
    http {
      ${temporary.map((name) => `${name}_temp_path ${folder};`).join(' ')}
      log_format main '$remote_addr - $remote_user [$time_local] "$request" '
        '$status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"';
      log_format iso '$host $remote_addr - $remote_user [$time_iso8601] "$request" '
        '$status $body_bytes_sent "$http_referer" "$http_user_agent"';
      server {
        listen 127.0.0.1:${port};
        access_log ${to} combined;
        access_log ${to},tag=behind main;
        access_log ${to},tag=iso,nohostname iso;
        location / { return 200 "page"; }
      }
    }`,
  )
  const server = run([nginx, '-c', `${folder}/nginx.conf`, '-p', folder], { cwd: folder, env: {} })
  const headers = { 'user-agent': gptBot, 'x-forwarded-for': published }
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
  for (
    let tries = 0;
    tries < 200 &&
    !(await get('/up').then(
      () => true,
      () => false,
    ));
    tries++
  )
    await Bun.sleep(20)
  for (let page = 0; page < 3; page++) await get(`/${page}`)
  const requests = await untilRequests('nginx', 12)
  server.signal('SIGTERM')
  await server.exited
  // Only one of the three formats has the client's address: the others have that of a trusted proxy.
  expect(requests).toEqual(
    ['/0', '/1', '/2', '/up'].flatMap((page) => [
      `${page} unverifiable`,
      `${page} unverifiable`,
      `${page} verified`,
    ]),
  )
  expect(await reportOf('nginx')).toMatchObject({ received: 12, bad: 0, dropped: 0 })
})

testWith('rsyslogd', 'rsyslog forwards what it received, in both of its formats', async (rsyslogd) => {
  const inward = freePort()
  const target = `type="omfwd" target="127.0.0.1" port="${await portOf('rsyslog')}" protocol="udp"`
  writeFileSync(
    files.join('rsyslog.conf'),
    `module(load="imudp")
    input(type="imudp" address="127.0.0.1" port="${inward}")
    action(${target} template="RSYSLOG_ForwardFormat")
    action(${target} template="RSYSLOG_TraditionalForwardFormat")
    action(${target} template="RSYSLOG_SyslogProtocol23Format")\n`,
  )
  const relay = run([rsyslogd, '-n', '-f', files.join('rsyslog.conf'), '-i', files.join('rsyslog.pid')], {
    cwd: files.path,
    env: {},
  })
  const socket = await Bun.udpSocket({})
  let sentCount = 0
  // It may not listen yet.
  for (; sentCount < 200 && (await reportOf('rsyslog')).received === 0; sentCount++) {
    socket.send(`<190>Nov 23 10:00:00 web1 nginx: ${line('/relayed')}`, inward, '127.0.0.1')
    await Bun.sleep(50)
  }
  const requests = await untilRequests('rsyslog', 3)
  relay.signal('SIGTERM')
  await relay.exited
  socket.close()
  expect(new Set(requests)).toEqual(new Set(['/relayed verified']))
  expect(await reportOf('rsyslog')).toMatchObject({ bad: 0, dropped: 0, format: 'combined' })
})

test('servers on one address are each read in their format, and every lost line is counted', async () => {
  const port = Number(await portOf('mixed'))
  const socket = await Bun.udpSocket({})
  const send = (text: string): boolean => socket.send(text, port, '127.0.0.1')
  for (let round = 0; round < 5; round++) {
    send(`<190>Nov 23 10:00:00 web1 nginx: ${line(`/a${round}`)}`)
    send(`<190>Nov 23 10:00:00 web2 nginx: ${host(`/b${round}`)}`)
    send(`<190>Nov 23 10:00:00 web3 nginx: ${forwarded(`/c${round}`)}`)
  }
  send('<190>Nov 23 10:00:00 web1 nginx: last message repeated 3 times')
  send(`<190>Nov 23 10:00:00 web1 nginx: ${line('/cut').slice(0, 60)}`)
  const names = ['/a', '/b', '/c'].flatMap((name) =>
    [0, 1, 2, 3, 4].map((round) => `${name}${round} verified`),
  )
  expect(await untilRequests('mixed', 15)).toEqual(names)
  const report = await untilBad('mixed', 2)
  expect(report).toMatchObject({ received: 17, bad: 2, dropped: 0 })
  expect(report.format?.split(', ').toSorted()).toEqual(['combined', 'combined-forwarded', 'host-combined'])
  const metrics = await (await server.call('/metrics', { key: metricsToken })).text()
  // A node of a shared database adds its name.
  const bad = metrics.split('\n').filter((row) => row.includes('_bad_lines_total{'))
  expect(bad.find((row) => row.includes(`listen="${report.listen}"`))).toEndWith(' 2')
  expect(bad.find((row) => row.includes('door="syslog"'))).toMatch(/ [2-9]$/)
  const operator = await person(server, server.org, 'owner', { operator: true })
  const { checks } = (await (await operator.call('/api/doctor')).json()) as { checks: { id: string }[] }
  expect(checks.find(({ id }) => id === 'access-lines')).toMatchObject({
    status: 'warning',
    detail: expect.stringMatching(
      /^Access logs, since the server started: [2-9] lines fit no format, 0 syslog/,
    ),
  })
  socket.close()
})

test('a log without user agents is said', async () => {
  const socket = await Bun.udpSocket({})
  const common = line('/').slice(0, line('/').indexOf(' "-"'))
  socket.send(`<190>Nov 23 10:00:00 web1 nginx: ${common}`, Number(await portOf('silent')), '127.0.0.1')
  for (let tries = 0; tries < 200 && (await reportOf('silent')).problem === null; tries++) await Bun.sleep(50)
  expect((await reportOf('silent')).problem).toContain(
    'web1 nginx sends has the format common, which has no user',
  )
  const key = await server.key('ingest')
  const post = async (query: string) => {
    const headers = { 'content-type': 'text/plain' }
    const request = { method: 'POST', key, body: `${common}\n`, headers }
    const response = await server.call(`/v1/sdk/access-logs?siteId=silent${query}`, request)
    return [response.status, ((await response.json()) as { message: string }).message]
  }
  expect(await post('')).toEqual([415, expect.stringContaining('has no user agents')])
  expect(await post('&format=common')).toEqual([400, expect.stringContaining('has no user agents')])
})

async function untilBad(site: Site, bad: number): Promise<SourcesView['syslog'][number]> {
  for (const endMs = performance.now() + 30_000; ; await Bun.sleep(50)) {
    const report = await reportOf(site)
    if (report.bad >= bad || performance.now() > endMs) return report
  }
}
