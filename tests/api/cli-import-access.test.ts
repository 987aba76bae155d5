/** `import access` of the executable: a real nginx, a running server, a kill in the middle, and wrong input. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { programs } from '../../scripts/programs.ts'
import { binaryPath, cli, startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { testWith } from '../support/installed.ts'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000) // the executable starts several times, on a machine that may be busy

const agents = {
  gptBot: 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  claude: 'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com) "quoted\\"',
  browser: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
}

/** Polls until the answer is true. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + 30_000; !(await holds()); await Bun.sleep(20))
    if (performance.now() > endMs) throw new Error('it did not happen in time')
}

const files = tempDir('access-logs')
let appliance: Appliance

beforeAll(async () => {
  appliance = await startAppliance()
})
afterAll(async () => {
  await appliance.stop()
  files.remove()
})

function expectSuccess({ code, stdout, stderr }: Exit): string {
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

type Event = {
  type: string
  siteId: string
  agent: { [name: string]: string }
  metadata: { [name: string]: unknown }
}

async function eventsOf(site: string): Promise<Event[]> {
  const lines = expectSuccess(await appliance.cli('export', 'traces'))
    .trim()
    .split('\n')
    .slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Event).filter(({ siteId }) => siteId === site)
}

async function importJson(...args: string[]): Promise<{ [name: string]: number }> {
  const sums = JSON.parse(expectSuccess(await appliance.cli('import', 'access', ...args, '--json')))
  const { lines, stored, deduped, people, excluded, bad } = sums
  expect(stored + deduped + people + excluded + bad).toBe(lines)
  return sums
}

/** Serves with nginx, whose logs are in its own format, in that of its packages and as JSON; then asks for pages. */
async function nginxLogs(): Promise<string> {
  const folder = files.join('nginx')
  mkdirSync(folder)
  const port = freePort()
  const json =
    '{"time_iso8601":"$time_iso8601","remote_addr":"$remote_addr","request":"$request","status":"$status",' +
    '"body_bytes_sent":"$body_bytes_sent","http_referer":"$http_referer","http_user_agent":"$http_user_agent"}'
  const config = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
    events {}
    http {
      client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
      uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
      log_format main '$remote_addr - $remote_user [$time_local] "$request" '
        '$status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"';
      log_format js escape=json '${json}';
      server {
        listen 127.0.0.1:${port};
        access_log ${folder}/combined.log;
        access_log ${folder}/main.log main;
        access_log ${folder}/json.log js;
        location /private { return 403; }
        location / { return 200 "page"; }
      }
    }`
  writeFileSync(`${folder}/nginx.conf`, config)
  const nginx = run([programs.nginx, '-c', `${folder}/nginx.conf`, '-p', folder], { cwd: folder, env: {} })
  const get = async (
    path: string,
    userAgent: string,
    headers: Record<string, string> = {},
  ): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { 'user-agent': userAgent, ...headers },
    })
    await response.text()
  }
  try {
    await until(() =>
      get('/style.css', agents.browser).then(
        () => true,
        () => false,
      ),
    )
    await get('/docs?q=1', agents.gptBot, { 'x-forwarded-for': '203.0.113.9' })
    await get('/private', agents.gptBot, { 'x-forwarded-for': '198.51.100.7' })
    await get('/docs', agents.claude)
    await get('/pricing', agents.browser, { referer: 'https://chatgpt.com/' })
  } finally {
    nginx.signal('SIGTERM')
    await nginx.exited
  }
  return folder
}

// Without nginx its formats are read from the samples of server/access/formats.test.ts alone.
testWith('nginx', "every format of Debian's nginx shows the same agents", async () => {
  const folder = await nginxLogs()
  const formats = { combined: 'combined', main: 'combined-forwarded', json: 'json' }
  for (const [name, format] of Object.entries(formats)) {
    const path = `${folder}/${name}.log`
    const text = expectSuccess(
      await appliance.cli('import', 'access', path, '--site', name, '--trusted-proxy', '127.0.0.0/8'),
    )
    expect(text).toStartWith(`${path}: ${format}, fits 5 of the first 5 lines\n`)
    expect(text).toContain(
      'Read 5 lines of 1 file: 3 stored, 0 already known, 1 by people, 1 excluded, 0 bad.',
    )
    const table = text.split('\n').map((row) => row.split(/ {2,}/))
    expect(table).toContainEqual(['agent', 'operator', 'requests', 'verified', 'contradicted'])
    // Other formats have only the address of the proxy, which says nothing about an agent.
    const contradicted = name === 'main' ? '2' : '0'
    expect(table).toContainEqual(['GPTBot', 'OpenAI', '2', '0', contradicted])
    const events = await eventsOf(name)
    const requests = events.filter(({ type }) => type === 'agent.requested')
    expect(
      requests.map(({ agent, metadata }) => [agent['name'], metadata['page'], metadata['status']]).sort(),
    ).toEqual([
      ['ClaudeBot', '/docs', 200],
      ['GPTBot', '/docs', 200],
      ['GPTBot', '/private', 403],
    ])
    const userAgents = new Set(requests.map(({ agent }) => agent['userAgent']!))
    expect([...userAgents].sort()).toEqual([agents.claude, agents.gptBot].sort())
    // Two sessions of GPTBot only where the log has the address behind the proxy.
    expect(events.filter(({ type }) => type === 'agent.detected')).toHaveLength(name === 'main' ? 3 : 2)
    expect(events.filter(({ type }) => type === 'agent.referred')).toHaveLength(1)
  }
})

test('true and false GPTBots are distinguished in filters, counts and exports', async () => {
  const line = (address: string, path: string): string =>
    `${address} - - [23/Nov/2026:10:00:00 +0000] "GET ${path} HTTP/1.1" 200 5 "-" "${agents.gptBot}"\n`
  const path = files.join('claims.log')
  writeFileSync(
    path,
    line('132.196.86.5', '/true') + line('198.51.100.7', '/false') + line('10.0.0.1', '/inside'),
  )
  expect(await importJson(path, '--site', 'claims')).toMatchObject({ stored: 3 })
  const key = JSON.parse(
    expectSuccess(
      await appliance.cli('key', 'create', '--kind', 'secret', '--org', 'default', '--label', 'k', '--json'),
    ),
  ) as { key: string }
  const get = async (query: string, accept = 'application/json') => {
    const headers = { authorization: `Bearer ${key.key}`, accept }
    const response = await fetch(`${appliance.url}/v1/traces?siteId=claims&type=agent.requested&${query}`, {
      headers,
    })
    expect(response.status).toBe(200)
    return await response.text()
  }
  const pagesOf = async (verdict: string): Promise<unknown[]> => {
    const { events } = JSON.parse(await get(`verdict=${verdict}`)) as { events: Event[] }
    expect(events.every(({ agent }) => agent['verdict'] === verdict)).toBe(true)
    return events.map(({ metadata }) => metadata['page'])
  }
  expect(await pagesOf('verified')).toEqual(['/true'])
  expect(await pagesOf('contradicted')).toEqual(['/false'])
  expect(await pagesOf('unverifiable')).toEqual(['/inside'])
  expect(JSON.parse(await get('verdict=')) as unknown).toMatchObject({ events: [] })
  const csv = (await get('verdict=contradicted', 'text/csv')).split('\n')
  expect(csv[0]).toContain(',verdict,')
  expect(csv[1]).toMatch(/,contradicted,,access-log,,appliance,[^,]+,appliance,198\.51\.100\.0\/24,"\{/)
})

function logLines(count: number): string {
  const line = (index: number): string => {
    const time = new Date(Date.UTC(2026, 10, 23) + index * 100).toISOString()
    const userAgent = index % 5 === 0 ? agents.browser : agents.gptBot
    const clock = `23/Nov/2026:${time.slice(11, 19)} +0000`
    return `203.0.113.${index % 200} - - [${clock}] "GET /${index} HTTP/1.1" 200 5 "-" "${userAgent}"\n`
  }
  return Array.from({ length: count }, (_, index) => line(index)).join('')
}

test('an import that was killed stores the rest when it is repeated, and nothing twice', async () => {
  const text = logLines(10_000)
  const path = files.join('killed.log')
  writeFileSync(path, text)
  const args = ['import', 'access', '-', '--site', 'killed', '--data-dir', appliance.dataDir]
  const child = Bun.spawn([binaryPath, ...args], {
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'ignore',
    env: {},
  })
  child.stdin.write(text.slice(0, text.length * 0.75))
  await child.stdin.flush()
  const stored = async (): Promise<number> => (await eventsOf('killed')).length
  await until(async () => (await stored()) >= 2_000)
  child.kill('SIGKILL')
  await child.exited
  const countBefore = (await eventsOf('killed')).filter(({ type }) => type === 'agent.requested').length
  expect(countBefore).toBeLessThan(8_000)
  const sums = await importJson(path, '--site', 'killed')
  expect(sums).toMatchObject({
    lines: 10_000,
    stored: 8_000 - countBefore,
    deduped: countBefore,
    people: 2_000,
    bad: 0,
  })
  expect(await importJson(path, '--site', 'killed')).toMatchObject({ stored: 0, deduped: 8_000 })
  const events = await eventsOf('killed')
  const pages = events
    .filter(({ type }) => type === 'agent.requested')
    .map(({ metadata }) => metadata['page'])
  expect([pages.length, new Set(pages).size]).toEqual([8_000, 8_000])
  expect(events.filter(({ type }) => type === 'agent.detected')).toHaveLength(sums['sessions']!)
  const create = ['--kind', 'secret', '--org', 'default', '--label', 'reader', '--json']
  const { key } = JSON.parse(expectSuccess(await appliance.cli('key', 'create', ...create))) as {
    key: string
  }
  const headers = { authorization: `Bearer ${key}` }
  const counts = await fetch(`${appliance.url}/v1/requests?since=2020-01-01&siteId=killed`, { headers })
  expect(await counts.json()).toMatchObject({
    byKind: { agent: { requests: 8_000 }, person: { requests: 2_000 } },
    bySite: [{ siteId: 'killed', agent: 8_000, person: 2_000, asset: 0, bot: 0 }],
  })
  expect(expectSuccess(await appliance.cli('verify'))).toContain('Everything is intact.')
})

test('standard input is read alike from a pipe, packed or slow, and from an open file', async () => {
  const path = files.join('stdin.log')
  writeFileSync(path, logLines(10_000))
  const shell = async (script: string): Promise<string> => {
    const args = ['sh', '-c', `import() { "$0" import access - --site stdin --dry-run; }; ${script}`]
    const child = Bun.spawn([...args, binaryPath, path], { stdout: 'pipe', stderr: 'pipe', env: {} })
    const output = await new Response(child.stdout).text()
    expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, expect.any(String)])
    return output.slice(output.indexOf('Read '))
  }
  const whole = 'Read 10,000 lines of 1 file: 8,000 by agents, 2,000 by people, 0 excluded, 0 bad.'
  expect(await shell('cat "$1" | import')).toContain(whole)
  expect(await shell('gzip -c "$1" | import')).toContain(whole)
  expect(await shell('(head -c 300000 "$1"; sleep 0.2; tail -c +300001 "$1") | import')).toContain(whole)
  expect(await shell('import < "$1"')).toContain(whole)
  const summary = 'Read 9,999 lines of 1 file: 8,000 by agents, 1,999 by people, 0 excluded, 0 bad.'
  expect(await shell('(read -r first; import) < "$1"')).toContain(summary)
})

test('a dry run stores nothing and needs no data; invalid input is refused with what to do', async () => {
  const path = files.join('dry.log')
  writeFileSync(path, `${logLines(10)}half a line`)
  const dry = expectSuccess(
    await cli(['import', 'access', path, '--site', 'dry', '--dry-run', '--data-dir', files.join('no')]),
  )
  expect(dry).toContain('Read 11 lines of 1 file: 8 by agents, 2 by people, 0 excluded, 1 bad.')
  expect(dry).toContain(`Nothing was stored.\n  ${path}:11 does not fit combined`)
  expect(existsSync(files.join('no'))).toBe(false)

  const refused = async (...args: string[]): Promise<[number, string]> => {
    const { code, stderr } = await appliance.cli('import', 'access', ...args)
    return [code, stderr]
  }
  writeFileSync(files.join('program'), '\x7fELF\x02\x01\x01\0')
  const [code, message] = await refused(files.join('program'), '--site', 'x')
  expect([code, message]).toEqual([1, expect.stringContaining('is not an access log: it is a program')])
  expect(message).toContain('--format')
  expect(await refused(path)).toEqual([2, expect.stringContaining('--site')])
  expect(await refused('--site', 'x')).toEqual([2, expect.stringContaining('name a log')])
  expect(await refused(path, '--site', 'x', '--format', '%q')).toEqual([
    2,
    expect.stringContaining('no time'),
  ])
  const [missing, reason] = await refused(files.join('none.log'), '--site', 'x')
  expect([missing, reason]).toEqual([1, ''])
  const { stdout } = await appliance.cli('import', 'access', files.join('none.log'), '--site', 'x')
  expect(stdout).toContain('none.log does not exist')
})
