/** The guides "Access logs", "OpenTelemetry", "Python, Go and PHP" and "Ask with an assistant", followed literally. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { appendFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createSocket } from 'node:dgram'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { programs } from '../../scripts/programs.ts'
import { createGateway } from '../../sdk/node.ts'
import { gptBot, line } from '../support/access-logs.ts'
import { type Appliance, binaryPath, cleanEnv, cli, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { withEngine } from '../support/engine.ts'
import { testWith } from '../support/installed.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { ownerEnv, startWithOwner } from './dashboard-actions.ts'
import { type Guide, output, readGuide, save, shell } from './guide-reader.ts'
import { expectAccessibleInBothThemes } from './pages-actions.ts'
import { makeKeys, type Keys } from './sdk-appliance.ts'

setDefaultTimeout(90_000)

const files = tempDir('guides')
let appliance: Appliance
let keys: Keys
let env: Record<string, string>

beforeAll(async () => {
  appliance = await startWithOwner()
  keys = await makeKeys(appliance)
  mkdirSync(files.join('bin'))
  symlinkSync(binaryPath, files.join('bin/sightglass'))
  const { PATH, ...otherEnv } = cleanEnv(
    await withEngine(appliance.dataDir, { SIGHTGLASS_DATA_DIR: appliance.dataDir }),
  )
  env = { ...otherEnv, PATH: `${files.join('bin')}:${PATH}` }
})
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  files.remove()
})

async function stored(siteId: string): Promise<{ type: string; page: unknown; tool: unknown }[]> {
  const storedEvents = []
  const gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
  for await (const { type, tool, metadata } of gateway.traces({ siteId }))
    storedEvents.push({ type, tool, page: (metadata as { page?: unknown } | undefined)?.page })
  return storedEvents
}

const hasPage = (page: string) => async () =>
  (await stored('shop')).some((storedEvent) => storedEvent.page === page)

/** The guide's log is the reader's. */
const withLog = (block: string, folder: string): string => block.replaceAll('/var/log/nginx', folder)

let accessLogs: Promise<Guide> | null = null
/** The first block that contains the text. */
async function accessLogBlock(text: string): Promise<string> {
  accessLogs ??= readGuide(appliance, 'access-logs')
  const block = (await accessLogs).blocks.find((candidate) => candidate.includes(text))
  if (block === undefined) throw new Error(`the guide has no block with ${text}`)
  return block
}

test('Access logs: imported once, followed, from another machine, as a drain', async () => {
  const imported = await accessLogBlock('sightglass import access')
  const dry = await accessLogBlock('--dry-run')
  const watch = await accessLogBlock('sightglass watch')
  const remote = await accessLogBlock('--to ')
  const drain = await accessLogBlock('curl ')
  const log = files.join('access.log')
  appendFileSync(`${log}.1`, line({ path: '/old' }))
  appendFileSync(log, line({ path: '/new', second: 1 }))
  const localImport = withLog(imported, files.path)
  expect(await output(localImport, files.path, env)).toContain(
    'Read 2 lines of 2 files: 2 stored, 0 already known',
  )
  expect(await output(localImport, files.path, env)).toContain('0 stored, 2 already known')
  expect(await output(withLog(dry, files.path), files.path, env)).toContain('Nothing was stored.')

  const watching = shell(withLog(watch, files.path), files.path, env)
  appendFileSync(log, line({ path: '/watched', second: 2 }))
  await until(hasPage('/watched'))
  watching.signal('SIGTERM')
  await watching.exited
  expect(watching.stdout()).toContain('0 bad.')

  const { SIGHTGLASS_DATA_DIR: _, SIGHTGLASS_DATABASE: __, ...elsewhere } = env
  const web = files.join('web')
  mkdirSync(web)
  appendFileSync(join(web, 'access.log'), line({ path: '/remote', second: 3 }))
  const sending = shell(withLog(remote, web), web, elsewhere)
  await until(hasPage('/remote'))
  sending.signal('SIGTERM')
  await sending.exited
  expect(sending.stderr()).toBe('')
  expect(sending.stdout()).toEndWith(
    'Read 1 lines: 1 stored, 0 already known, 0 by people, 0 excluded, 0 bad.\n',
  )

  const otherFolder = files.join('drain')
  mkdirSync(otherFolder)
  appendFileSync(join(otherFolder, 'access.log'), line({ path: '/drain', second: 4 }))
  expect(JSON.parse(await output(withLog(drain, otherFolder), otherFolder, elsewhere))).toMatchObject({
    ok: true,
    stored: 1,
  })
  const requests = (await stored('shop')).filter(({ type }) => type === 'agent.requested')
  expect(requests.map(({ page }) => page).toSorted()).toEqual([
    '/drain',
    '/new',
    '/old',
    '/remote',
    '/watched',
  ])
})

/** Starts a server with the options of a block that starts with `sightglass serve`. */
async function served(block: string, extraArgs: string[] = []): Promise<Appliance> {
  expect(block).toStartWith('sightglass serve ')
  return startAppliance({ args: [...block.split(' ').slice(2), ...extraArgs], env: { ...ownerEnv } })
}

const pagesOf = async (source: Appliance): Promise<string[]> =>
  [
    ...(await source.cli('export', 'traces')).stdout.matchAll(
      /"type":"agent\.requested".*?"page":"([^"]*)"/g,
    ),
  ].map(([, page]) => page!)

test('Access logs: the server follows the log, by option and by file', async () => {
  const serve = await accessLogBlock('serve --watch')
  const toml = await accessLogBlock('[[watch]]')
  const folder = files.join('served')
  mkdirSync(folder)
  appendFileSync(join(folder, 'access.log'), line({ path: '/served' }))
  save(files, 'sightglass.toml', withLog(toml, folder))
  for (const start of [
    withLog(serve, folder),
    `sightglass serve --config ${files.join('sightglass.toml')}`,
  ]) {
    await using server = await served(start)
    await until(async () => (await pagesOf(server)).includes('/served'))
  }
})

async function freeUdpPort(): Promise<string> {
  const socket = createSocket('udp4')
  await new Promise<void>((go) => socket.bind(0, '127.0.0.1', go))
  const { port } = socket.address()
  await new Promise<void>((go) => socket.close(() => go()))
  return String(port)
}

testWith('nginx', 'Access logs: nginx sends its log by syslog', async () => {
  const serve = await accessLogBlock('serve --listen-syslog')
  const directive = await accessLogBlock('access_log syslog:')
  const port = await freeUdpPort()
  await using server = await served(serve.replace('5514', port))
  const folder = files.join('nginx')
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (tempName) => `${tempName}_temp_path ${folder};`,
  )
  save(
    files,
    'nginx/nginx.conf',
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events {} http { ${temp.join(' ')} ${directive.replace('5514', port)}
  server { listen unix:${folder}/web.sock; location / { return 200 "page"; } } }`,
  )
  const web = run([programs.nginx, '-c', `${folder}/nginx.conf`, '-p', folder], { cwd: folder, env: {} })
  const ask = () =>
    fetch('http://web/syslog', { unix: `${folder}/web.sock`, headers: { 'user-agent': gptBot } })
      .then((answer) => answer.ok)
      .catch(() => false)
  await until(ask)
  await until(async () => (await pagesOf(server)).includes('/syslog'))
  web.signal('SIGTERM')
  await web.exited
})

testWith('caddy', 'Access logs: Caddy writes a log that is imported', async () => {
  const imported = await accessLogBlock('sightglass import access')
  const block = await accessLogBlock('output file')
  const folder = files.join('caddy')
  const options = '{\n  admin off\n  auto_https off\n}\n'
  const site = `${options}http://127.0.0.1 {\n  bind unix/${folder}/web.sock\n  respond "page"\n`
  save(files, 'caddy/Caddyfile', `${site}${block.replaceAll('/var/log/caddy', folder)}\n}`)
  const home = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
  const web = run([programs.caddy, 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'], {
    cwd: folder,
    env: home,
  })
  const ask = () =>
    fetch('http://127.0.0.1/caddy', { unix: `${folder}/web.sock`, headers: { 'user-agent': gptBot } })
      .then((answer) => answer.ok)
      .catch(() => false)
  await until(ask)
  web.signal('SIGTERM')
  await web.exited
  expect(await output(withLog(imported, folder), files.path, env)).toContain(': caddy, fits ')
  expect((await stored('shop')).map(({ page }) => page)).toContain('/caddy')
})

/** What the program itself has sent. */
const recorded = (name: string): string =>
  join(import.meta.dir, `../../server/otlp/fixtures/recorded/${name}.logs.pb`)

test('OpenTelemetry: two variables, a span by hand, Claude Code and Codex', async () => {
  const { blocks } = await readGuide(appliance, 'opentelemetry')
  const [variables = '', protocol = '', span = '', claude = '', codex = ''] = blocks
  const program = `exec ${process.execPath} ${join(import.meta.dir, 'otel-program.mjs')} protobuf guide 3`
  expect(await output(`${variables}\n${protocol}\n${program}`, import.meta.dir, env)).toBe('0 \n'.repeat(5))
  expect(await stored('guide')).toHaveLength(4)
  expect(await output(span, files.path, env)).toBe('{}')
  expect(await stored('my-shop')).toMatchObject([{ type: 'tool.executed', tool: 'search' }])
  // As its exporter sends, to the address and with the header of the variables.
  const checkScript = `test "$CLAUDE_CODE_ENABLE_TELEMETRY$OTEL_LOGS_EXPORTER" = 1otlp
test "$OTEL_EXPORTER_OTLP_PROTOCOL" = http/protobuf
header=\${OTEL_EXPORTER_OTLP_HEADERS/=/: }
curl -sf "$OTEL_EXPORTER_OTLP_ENDPOINT/v1/logs" -H "\${header/\\%20/ }" \
  -H 'content-type: application/x-protobuf' --data-binary @${recorded('claude-code')}`
  await output(`${variables}\n${claude}\n${checkScript}`, files.path, env)
  expect((await stored('claude-code')).map(({ type, tool }) => [type, tool])).toContainEqual([
    'tool.executed',
    'Bash',
  ])
  const { otel } = Bun.TOML.parse(codex) as { otel: { exporter: { 'otlp-http': CodexExporter } } }
  const { endpoint, protocol: encoding, headers } = otel.exporter['otlp-http']
  expect(encoding).toBe('binary')
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/x-protobuf' },
    body: Bun.file(recorded('codex')),
  })
  expect(answer.status).toBe(200)
  const { stdout } = await appliance.cli('export', 'traces')
  expect(stdout).toMatch(/"name":"Codex"/)
})

interface CodexExporter {
  endpoint: string
  protocol: string
  headers: Record<string, string>
}

let languages: Promise<Guide> | null = null

/** Saves the files of a language from the guide and runs its program as the guide says. */
async function follow(
  folder: string,
  write: (save: (path: string, text: string) => void, blocks: string[]) => void,
) {
  languages ??= readGuide(appliance, 'languages')
  const { blocks, commands } = await languages
  mkdirSync(files.join(folder))
  const ownBlocks = blocks.map((block) => block.replace('my-site', folder))
  write((path, text) => save(files, `${folder}/${path}`, text), ownBlocks)
  const go = { GOFLAGS: '-mod=mod', GOCACHE: files.join('go-cache'), GOPATH: files.join('go-path') }
  return { own: ownBlocks, commands, cwd: files.join(folder), with: { ...env, ...go } }
}

const tracked = [{ type: 'tool.executed', tool: 'search', page: undefined }]

testWith('python3', 'Python: its program tracks an event', async () => {
  const {
    cwd,
    commands,
    with: env,
  } = await follow('python', (write, [client = '', program = '']) => {
    write('sightglass.py', client)
    write('main.py', program)
  })
  expect(commands).toEqual(['python3 main.py', 'go run .', 'php public/index.php'])
  expect(await output(commands[0]!, cwd, env)).toBe('')
  expect(await stored('python')).toEqual(tracked)
})

testWith('go', 'Go: its program tracks an event', async () => {
  const {
    own: ownBlocks,
    cwd,
    commands,
    with: env,
  } = await follow('go', (write, [, , , client = '', program = '']) => {
    write('sightglass/sightglass.go', client)
    write('main.go', program)
  })
  expect(await output(`${ownBlocks[2]}\n${commands[1]}`, cwd, env)).toBe('')
  expect(await stored('go')).toEqual(tracked)
})

testWith('php', 'PHP: its program tracks an event', async () => {
  const {
    cwd,
    commands,
    with: env,
  } = await follow('php', (write, [, , , , , client = '', program = '']) => {
    write('sightglass.php', client)
    write('public/index.php', program)
  })
  expect(await output(commands[2]!, cwd, env)).toBe('')
  expect(await stored('php')).toEqual(tracked)
})

test('Ask with an assistant: the files of each client, the command that writes them, a question by hand', async () => {
  const { blocks } = await readGuide(appliance, 'mcp')
  const [
    variable = '',
    claude = '',
    added = '',
    cursor = '',
    vscode = '',
    codex = '',
    write = '',
    ask = '',
    local = '',
  ] = blocks
  const key = variable.replace('export SIGHTGLASS_MCP_KEY=', '')
  expect(added).toContain(`--header "Authorization: Bearer ${key}"`)
  const url = `${appliance.url}/mcp`
  expect(JSON.parse(claude)).toMatchObject({ mcpServers: { sightglass: { type: 'http', url } } })
  expect(JSON.parse(vscode)).toMatchObject({ servers: { sightglass: { type: 'http', url } } })
  expect(Bun.TOML.parse(codex)).toMatchObject({ mcp_servers: { sightglass: { url } } })
  const folder = files.join('project')
  mkdirSync(folder)
  await output(write, folder, env)
  expect(readFileSync(join(folder, '.cursor/mcp.json'), 'utf8').trimEnd()).toBe(cursor.trimEnd())
  const started = JSON.parse(await output(local, folder, env)) as {
    mcpServers: { sightglass: { args: string[] } }
  }
  expect(started.mcpServers.sightglass.args).toEqual(['mcp', '--data-dir', '/var/lib/sightglass'])
  const answer = JSON.parse(await output(ask, folder, env)) as {
    result: { structuredContent: { count: number } }
  }
  expect(answer.result.structuredContent.count).toBeGreaterThanOrEqual(0)
  // The new key reads, and nothing else.
  const scopes = JSON.parse(await output('sightglass key list --kind secret --json', folder, env)) as {
    keys: { prefix: string; scopes: string[] }[]
  }
  const createdKey = scopes.keys.find(({ prefix }) => key.startsWith(prefix))
  expect(createdKey?.scopes).toEqual(['traces:read', 'metrics:read', 'audit:read'])
  const question = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  const bridge = `echo '${question}' | sightglass mcp --to ${appliance.url}`
  expect(await output(bridge, folder, { ...env, SIGHTGLASS_MCP_KEY: key })).toContain('"describe_record"')
})

/** All keys, without their last use, which the server writes within seconds. */
async function keysOf(appliance: Appliance): Promise<object[]> {
  const { stdout } = await appliance.cli('key', 'list', '--json')
  const { keys } = JSON.parse(stdout) as { keys: { lastUsedAt: unknown; lastUsedAddress: unknown }[] }
  return keys.map(({ lastUsedAt: _at, lastUsedAddress: _from, ...key }) => key)
}

test('owners and admins create keys; the page tells others to ask them', async () => {
  const url = `${appliance.url}/docs/access-logs`
  const viewer = { email: 'vi@example.com', password: 'correct horse viewer' }
  const args = ['--email', viewer.email, '--role', 'viewer', '--password-stdin']
  const { dataDir } = appliance
  const accountExit = await cli(['account', 'create', ...args], {
    dataDir,
    env: ownerEnv,
    stdin: viewer.password,
  })
  expect(accountExit.code).toBe(0)
  const keysBefore = await keysOf(appliance)
  const refused = (text: string) => async (page: Page) => {
    await expectAccessibleInBothThemes(page)
    await page.getByRole('button', { name: 'Create an ingest key' }).click()
    await page.getByRole('status').filter({ hasText: text }).waitFor()
    expect((await page.locator('.example pre').allTextContents()).join()).toContain('agtx_ik_your-key')
  }
  await withPage(url, refused('Sign in to the dashboard first, then click again.'))
  await withPage(url, refused('Only owners and admins can create keys. Ask one of them.'), { as: viewer })
  expect(await keysOf(appliance)).toEqual(keysBefore)
})
