/** The verbs of the executable, without and beside a running server: output, JSON shapes, exit codes. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commands } from '../../server/cli/run.ts'
import { version } from '../../server/system/version.ts'
import { binaryPath, cli, startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { folderTest, isOnPostgres } from '../support/engine.ts'

const temp = tempDir('cli')
let appliance: Appliance

beforeAll(async () => {
  appliance = await startAppliance({ dataDir: temp.join('served') })
}, 90_000)
afterAll(async () => {
  await appliance.stop()
  temp.remove()
})

type Run = (args: string[], stdin?: string) => Promise<Exit>
const alone: Run = (args, stdin) =>
  cli(args, { dataDir: temp.join('alone'), ...(stdin === undefined ? {} : { stdin }) })
const beside: Run = (args, stdin) =>
  cli(args, { dataDir: temp.join('served'), ...(stdin === undefined ? {} : { stdin }) })

async function expectSuccess(run: Run, args: string[], stdin?: string): Promise<string> {
  const { code, stdout, stderr } = await run(args, stdin)
  expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 0, ''])
  return stdout
}

async function json(run: Run, args: string[], stdin?: string): Promise<Record<string, unknown>> {
  const stdout = await expectSuccess(run, [...args, '--json'], stdin)
  expect(stdout).toEndWith('\n')
  expect(stdout.trim()).not.toContain('\n')
  return JSON.parse(stdout) as Record<string, unknown>
}

function rowsOf(answer: Record<string, unknown>, member: string): Record<string, unknown>[] {
  return answer[member] as Record<string, unknown>[]
}

/** Runs many lines in one process, because each start of the executable costs 40 ms. Expects exit code 0 of each. */
async function runFromSource(lines: string[][]): Promise<string[]> {
  const program = join(import.meta.dir, 'run-lines.ts')
  const child = run([process.execPath, program, JSON.stringify(lines)], {
    cwd: temp.path,
    env: { PATH: process.env.PATH ?? '' },
  })
  expect([await child.exited, child.stderr()]).toEqual([0, ''])
  const parts = child.stdout().split('\u0004')
  expect(parts.slice(1).map((part) => part.split('\n')[0])).toEqual(lines.map(() => '0'))
  return parts.slice(0, -1).map((part, n) => (n === 0 ? part : part.slice(part.indexOf('\n') + 1)))
}

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

for (const [place, run] of [
  ['alone', alone],
  ['beside a running server', beside],
] as const) {
  test(`${place}: organizations`, () => organizations(run))
  test(`${place}: keys`, () => keys(run))
  test(`${place}: accounts`, () => accounts(run))
}

// Parsing and printing are the same in both places, and a verb alone costs a start of the store.
test('texts, rejected options and rejected passwords', async () => {
  expect(await expectSuccess(beside, ['org', 'list'])).toMatch(/^SLUG +NAME +ID +CREATED\n/)
  expect(await expectSuccess(beside, ['org', 'create', '--name=Second Shop'])).toMatch(
    /^Created the organization Second Shop \(second-shop, org_/,
  )
  const key = ['key', 'create', '--kind', 'ingest', '--label']
  const text = await expectSuccess(beside, [...key, 'for people'])
  expect(text).toMatch(/^agtx_ik_[\w-]{32}\n\n.*not shown again/s)
  expect((await beside(['key', 'revoke'])).code).toBe(2)
  expect((await beside([...key, 'x', '--scope', 'traces:read'])).code).toBe(2)
  expect(await expectSuccess(beside, ['account', 'list'])).toContain('default:owner')
  const account = ['account', 'create', '--email=c@d.e', '--role=viewer', '--password-stdin']
  expect(await beside(account, 'short')).toMatchObject({ code: 1 })
  expect(await beside(account, 'two\nlines')).toMatchObject({ code: 2 })
})

async function organizations(run: Run): Promise<void> {
  expect(await json(run, ['org', 'create', '--name', 'Acme Shop', '--slug', 'acme'])).toEqual({
    id: expect.stringMatching(/^org_[\w-]{22}$/),
    slug: 'acme',
    name: 'Acme Shop',
    createdAt: time,
  })
  expect(
    rowsOf(await json(run, ['org', 'list']), 'orgs')
      .map(({ slug }) => slug)
      .sort(),
  ).toEqual(['acme', 'default'])
  const again = await run(['org', 'create', '--name', 'Acme Shop', '--slug', 'acme'])
  expect(again).toEqual({
    code: 1,
    stdout: '',
    stderr: 'sightglass: An organization with the slug "acme" already exists.\n',
  })
}

async function keys(run: Run): Promise<void> {
  const createdKey = await json(run, [
    '--label',
    'no',
    'key',
    'create',
    '--kind',
    'ingest',
    '--org=acme',
    '--label',
    'shop backend',
  ])
  expect(createdKey).toEqual({
    key: expect.stringMatching(/^agtx_ik_[\w-]{32}$/),
    id: expect.stringMatching(/^key_[\w-]{22}$/),
    kind: 'ingest',
    orgId: expect.stringMatching(/^org_/),
    label: 'shop backend',
    prefix: String(createdKey['key']).slice(0, 16),
    createdAt: time,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    lastUsedAddress: null,
    exposedAt: null,
    siteIds: [],
    scopes: [],
    behindProxy: false,
  })
  const secret = await json(run, [
    'key',
    'create',
    '--kind=secret',
    '--label=x',
    '--scope=traces:read',
    '--scope=audit:read',
  ])
  expect(secret).toMatchObject({ kind: 'secret', scopes: ['traces:read', 'audit:read'] })
  expect((await json(run, ['key', 'create', '--kind=publishable', '--label=y']))['key']).toMatch(/^agtx_pk_/)
  const listed = rowsOf(await json(run, ['key', 'list', '--org', String(createdKey['orgId'])]), 'keys')
  const { key: _key, ...view } = createdKey
  expect(listed).toEqual([{ ...view, state: 'active' }])
  expect(await expectSuccess(run, ['key', 'revoke', String(createdKey['id'])])).toStartWith(
    'Revoked the ingest key "shop backend"',
  )
  expect(await json(run, ['key', 'revoke', '--id', String(secret['id'])])).toMatchObject({
    revokedAt: time,
  })
  expect(await expectSuccess(run, ['key', 'list', '--org', 'acme'])).toContain('revoked')
  expect((await run(['key', 'revoke', 'key_none'])).code).toBe(1)
  expect((await run(['key', 'create', '--kind', 'ingest', '--label', 'x', '--org', 'nowhere'])).code).toBe(1)
}

async function accounts(run: Run): Promise<void> {
  const args = ['account', 'create', '--email', 'Ann@example.com', '--role', 'owner', '--password-stdin']
  expect(await json(run, args, 'correct horse battery\n')).toEqual({
    id: expect.stringMatching(/^usr_[\w-]{22}$/),
    email: 'ann@example.com',
    role: 'owner',
    orgId: expect.stringMatching(/^org_/),
    operator: true,
    createdAt: time,
    link: null,
    linkExpiresAt: null,
  })
  const invited = await json(run, [
    'account',
    'create',
    '--email',
    'bob@example.com',
    '--role',
    'viewer',
    '--operator',
  ])
  expect(invited).toMatchObject({
    operator: true,
    link: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/reset#[\w-]{43}$/),
  })
  expect(await json(run, ['account', 'reset-password', '--email', 'ann@example.com'])).toEqual({
    accountId: expect.stringMatching(/^usr_/),
    email: 'ann@example.com',
    link: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/reset#[\w-]{43}$/),
    linkExpiresAt: time,
  })
  const listed = rowsOf(await json(run, ['account', 'list']), 'accounts')
  expect(listed.map(({ email }) => email).sort()).toEqual(['ann@example.com', 'bob@example.com'])
  expect(listed[0]).toMatchObject({ memberships: [{ orgSlug: 'default' }] })
  expect(await run(args, 'correct horse battery\n')).toMatchObject({ code: 1, stdout: '' })
  expect(await run(['account', 'reset-password', '--email=none@d.e'])).toMatchObject({ code: 1 })
}

test('beside a server a link has the server’s address', async () => {
  const { link } = await json(beside, ['account', 'reset-password', '--email', 'ann@example.com'])
  expect(String(link)).toStartWith(`${appliance.url}/reset#`)
})

test('without a server a link has the configured address', async () => {
  const args = ['account', 'reset-password', '--email', 'ann@example.com']
  const { link } = await json(alone, [...args, '--public-url', 'https://traces.example.com'])
  expect(String(link)).toStartWith('https://traces.example.com/reset#')
})

test('a key created beside the server works at once, and stops at once when revoked', async () => {
  const { key, id } = await json(beside, ['key', 'create', '--kind', 'ingest', '--label', 'now'])
  const event = {
    id: 'evt_1',
    siteId: 's',
    sessionId: 's',
    occurredAt: '2026-06-23T12:00:00Z',
    type: 'agent.detected',
    outcome: 'success',
  }
  const post = () =>
    fetch(`${appliance.url}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${String(key)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [event] }),
    })
  expect((await post()).status).toBe(202)
  await expectSuccess(beside, ['key', 'revoke', String(id)])
  expect((await post()).status).toBe(401)
})

/** They list, export, change or remove what is there. */
const verbsOnData = [
  'org list',
  'key list',
  'account list',
  'demo remove',
  'export audit',
  'export traces',
  'org keep',
  'org rename --name x',
  'org delete --confirm default',
  'site change shop --name x',
  'key revoke key_x',
  'key rotate key_x',
  'key change key_x --label x',
  'erase --session x --yes',
  'webhook remove ep_x',
  'account set-role --email a@example.com --role viewer',
  'account remove --email a@example.com',
]

test('only commands that create something create the folder, for its owner alone', async () => {
  const dataDir = temp.join('fresh')
  for (const verb of verbsOnData) {
    const { code, stderr } = await cli(verb.split(' '), { dataDir })
    expect([verb, code, stderr]).toEqual([
      verb,
      1,
      isOnPostgres
        ? 'sightglass: There is no data in the database. (check --database, or start the server, which creates it)\n'
        : `sightglass: There is no data in ${dataDir}. (set the folder with --data-dir)\n`,
    ])
  }
  expect(existsSync(dataDir)).toBe(false)
  await cli(['key', 'create', '--kind', 'ingest', '--label', 'x'], { dataDir })
  if (!isOnPostgres) expect(statSync(dataDir).mode & 0o777).toBe(0o700)
})

folderTest('commands about the state of a folder name one that is mistyped, and create nothing', async () => {
  const dataDir = temp.join('mistyped')
  const error = new RegExp(
    `^sightglass: there is no data in ${dataDir}\\.? \\(set the folder with --data-dir\\)\n$`,
    'i',
  )
  for (const verb of [
    'verify',
    'verify audit',
    'migrate status',
    'migrate up',
    'copy reopen',
    'accept-loss',
  ]) {
    const { code, stderr } = await cli(verb.split(' '), { dataDir })
    expect([verb, code, stderr]).toEqual([verb, 1, expect.stringMatching(error)])
  }
  expect(existsSync(dataDir)).toBe(false)
})

folderTest(
  'a data folder that is a file, or has a broken database, is a one-line error and exit 1',
  async () => {
    writeFileSync(temp.join('file'), 'x')
    const notFolder = await cli(['org', 'create', '--name', 'x'], { dataDir: temp.join('file') })
    const dataDir = temp.join('garbage')
    await cli(['org', 'create', '--name', 'x'], { dataDir })
    writeFileSync(`${dataDir}/sightglass.db`, 'this is not a database, whatever its name says. '.repeat(400))
    const garbage = await cli(['org', 'list'], { dataDir })
    for (const { code, stdout, stderr } of [notFolder, garbage]) {
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^sightglass: [^\n]+\n$/)
    }
  },
)

describe('help and version', () => {
  test('version', async () => {
    expect(await expectSuccess(alone, ['version'])).toBe(`sightglass ${version}\n`)
    expect(await expectSuccess(alone, ['--version'])).toBe(`sightglass ${version}\n`)
    expect(await json(alone, ['version'])).toEqual({
      version,
      bun: Bun.version,
      platform: expect.any(String),
    })
  })

  test('the overview lists every verb, and every verb has a help page', async () => {
    const names = commands.map(({ name }) => name)
    const overview = await expectSuccess(alone, ['help'])
    expect(names.filter((name) => !overview.includes(`  ${name} `))).toEqual([])
    const pages = await runFromSource(names.map((name) => ['help', ...name.split(' ')]))
    const byOption = await runFromSource(names.map((name) => [...name.split(' '), '--help']))
    names.forEach((name, n) => {
      const page = pages[n]!
      expect(page).toStartWith(name === 'help' ? 'sightglass help: ' : `sightglass ${name}: `)
      if (name !== 'help') expect(byOption[n]).toBe(page)
      for (const line of page.split('\n')) expect(line.length).toBeLessThanOrEqual(130)
    })
    const page = pages[names.indexOf('key create')]!
    expect(await expectSuccess(alone, ['help', 'key', 'create'])).toBe(page)
    expect(await expectSuccess(alone, ['key', 'create', '--help'])).toBe(page)
    const { verbs } = await json(alone, ['help', 'key'])
    expect((verbs as { verb: string }[]).map(({ verb }) => verb)).toEqual([
      'key create',
      'key list',
      'key revoke',
      'key rotate',
      'key change',
    ])
  })

  test('an unknown command suggests the nearest one and exits 2', async () => {
    expect(await alone(['verison'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'sightglass: unknown command "verison" (did you mean "sightglass version"?)\n',
    })
    expect(await alone(['help', 'orgs'])).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('config', () => {
  test('shows each value with its source and hides secrets', async () => {
    const path = temp.join('config.toml')
    writeFileSync(path, 'log-level = "warn"\n')
    const env = {
      SIGHTGLASS_DISK_FLOOR: '1GiB',
      SIGHTGLASS_ADMIN_EMAIL: 'a@b.c',
      SIGHTGLASS_ADMIN_PASSWORD: 'not to be seen',
    }
    const { stdout, code } = await cli(['config', '--config', path, '--listen', '[::1]:0', '--json'], { env })
    expect([code, stdout.includes('not to be seen')]).toEqual([0, false])
    const { options, warnings } = JSON.parse(stdout) as { options: { name: string }[]; warnings: string[] }
    expect(warnings).toEqual([])
    const optionsByName = Object.fromEntries(options.map((option) => [option.name, option]))
    expect(optionsByName).toMatchObject({
      listen: { value: '[::1]:0', source: 'flag', from: '--listen' },
      'disk-floor': { value: '1GiB', source: 'environment', from: 'SIGHTGLASS_DISK_FLOOR' },
      'log-level': { value: 'warn', source: 'file', from: path },
      'data-dir': { value: './sightglass-data', source: 'default', from: 'default' },
      'admin-password': { value: '(hidden)', source: 'environment', from: 'SIGHTGLASS_ADMIN_PASSWORD' },
    })
    const text = await cli(['config', '--config', path], { env })
    expect(text.stdout).toContain('(hidden)')
  })

  test('rejects the options that serve rejects, with exit 2', async () => {
    const wrong = [
      ['--listen', 'x'],
      ['--metrics-token', 'two words'],
      ['--config', '/no/such'],
      ['--ingest-listen', '127.0.0.1:7400'],
    ]
    for (const args of wrong) {
      for (const verb of ['config', 'serve']) {
        const { code, stdout, stderr } = await cli([verb, ...args])
        expect([verb, ...args, code, stdout]).toEqual([verb, ...args, 2, ''])
        expect(stderr).toMatch(/^sightglass: [^\n]+\n$/)
      }
    }
  })

  test('the proxy variables of the environment are ignored', async () => {
    const args = ['demo', '--live', '--json', '--rate', '50/s']
    const child = Bun.spawn([binaryPath, ...args, '--data-dir', temp.join('served')], {
      env: {
        PATH: process.env.PATH ?? '',
        HTTP_PROXY: 'http://127.0.0.1:9',
        http_proxy: 'http://127.0.0.1:9',
      },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    await Bun.sleep(1_500)
    child.kill('SIGINT')
    const sum = JSON.parse(await new Response(child.stdout).text()) as { accepted: number; retries: number }
    expect(await child.exited).toBe(0)
    expect(sum.retries).toBe(0)
    expect(sum.accepted).toBeGreaterThan(10)
  })
})
