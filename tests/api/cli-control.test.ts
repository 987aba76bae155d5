/** The control socket: requests of the command line, long folder paths, leftovers of a crash, malformed requests. */
import type { AccessReceiver } from '../../server/access/receiver.ts'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Json, Store } from '../../db/contract/store.ts'
import { commands } from '../../server/cli/run.ts'
import { workTable } from '../../server/cli/data-command.ts'
import { openStoreAccess } from '../../server/runtime/store-access.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { controlPath, startControl } from '../../server/runtime/store-access.ts'
import { startClockGuard, testTime } from '../../server/system/clock-guard.ts'
import { startLog } from '../../server/log.ts'
import { version } from '../../server/system/version.ts'
import { cli, startAppliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000) // the executable starts several times, on a machine that may be busy

const clock = { now: () => Date.UTC(2026, 5, 23, 12) }
const baseUrl = 'https://traces.example'
const work = workTable(commands)
const lines: string[] = []
const sink = { write: (line: string) => void lines.push(line), takeDropped: () => 0, flush: async () => {} }
const log = startLog({ level: 'debug', clock, sink })

const keyRing = () => null
const clockGuard = startClockGuard({
  time: testTime(clock),
  dataDir: null,
  log: { info() {}, warn() {}, error() {} },
})

const notWatched: AccessReceiver = {
  position: () => Promise.reject(new Error('no log is watched here')),
  store: () => Promise.reject(new Error('no log is watched here')),
  warm: () => Promise.reject(new Error('no log is watched here')),
  watched: () => [],
  requests: () => [],
  badLines: () => [],
}

async function withServer(dataDir: string, use: (store: Store) => Promise<void>): Promise<void> {
  const store = await openDataFolder(dataDir, clock)
  const webhooks = () => {
    throw new Error('no webhook verb is called here')
  }
  const server = {
    ingestUrl: 'http://127.0.0.1:1',
    log,
    backups: { dir: dataDir, passphrase: null, keyRing: null },
    clockGuard,
    accessReceiver: notWatched,
    answerMcp: () => Promise.reject(new Error('no command asks this here')),
    state: () => Promise.reject(new Error('no command asks for the state here')),
  }
  const context = { store, clock, baseUrl, webhooks, server }
  const control = await startControl({ dataDir, log, work, context })
  try {
    await use(store)
  } finally {
    await control.stop()
    await store.close()
  }
}

async function throughSocket(
  dataDir: string,
  verb: string,
  params: { [member: string]: Json },
): Promise<Json> {
  const data = await openStoreAccess({
    dataDir,
    keyRing,
    baseUrl: 'http://wrong',
    clock,
    work,
    access: 'write',
  })
  try {
    expect(data.byServer).toBe(true)
    return await data.call(verb, params)
  } finally {
    await data.close()
  }
}

function post(dataDir: string, body: string): Promise<Response> {
  return fetch('http://localhost/', { unix: controlPath(dataDir), method: 'POST', body })
}

test('the server runs a verb, sees its effect at once and uses its own address in links', async () => {
  using temp = tempDir('control')
  await withServer(temp.path, async (store) => {
    expect(statSync(controlPath(temp.path)).mode & 0o777).toBe(0o600)
    await throughSocket(temp.path, 'org create', { name: 'Acme', slug: null })
    expect((await store.orgs.list()).map(({ slug }) => slug).sort()).toEqual(['acme', 'default'])
    const params = { email: 'a@b.c', role: 'viewer', org: 'acme' }
    const { link } = (await throughSocket(temp.path, 'account create', params)) as { link: string }
    expect(link).toStartWith('https://traces.example/reset#')
    expect(lines.join('')).toContain('"control_verb"')
    // The response has the link; the log must not.
    expect(lines.join('')).not.toContain(link.split('#')[1]!)
  })
  expect(existsSync(controlPath(temp.path))).toBe(false)
})

test('an error of the server reaches the command line unchanged', async () => {
  using temp = tempDir('control')
  await withServer(temp.path, async () => {
    const refusal = (slug: string) =>
      throughSocket(temp.path, 'org create', { name: 'X', slug }).catch((error: unknown) => error)
    expect(await refusal('Big')).toMatchObject({ name: 'UsageError', message: '"Big" is not a valid slug' })
    expect(await refusal('default')).toMatchObject({
      name: 'AppError',
      code: 'conflict',
      message: 'An organization with the slug "default" already exists.',
    })
  })
})

test('the data folder’s path may be longer than a socket path', async () => {
  using temp = tempDir('deep')
  const dataDir = join(temp.path, ...Array.from({ length: 5 }, (_, index) => `${index}`.repeat(60)))
  mkdirSync(dataDir, { recursive: true })
  expect(controlPath(dataDir).length).toBeGreaterThan(300)
  await withServer(dataDir, async () => {
    expect(existsSync(controlPath(dataDir))).toBe(true)
    expect(await throughSocket(dataDir, 'org list', {})).toMatchObject({ orgs: [{ slug: 'default' }] })
  })
})

test('a command of another version gets an error and changes nothing', async () => {
  using temp = tempDir('control')
  await withServer(temp.path, async (store) => {
    const request = { version: '9.9.9', verb: 'org create', params: { name: 'Acme' } }
    const answer = (await (await post(temp.path, JSON.stringify(request))).json()) as {
      error: { message: string }
    }
    expect(answer.error.message).toBe(
      `the server on this data folder runs version ${version}, this command is version 9.9.9`,
    )
    expect(await store.orgs.list()).toHaveLength(1)
  })
})

test('a malformed request gets an error, and the socket still works', async () => {
  using temp = tempDir('control')
  await withServer(temp.path, async () => {
    const wrong = ['', 'x', 'null', '[]', '{}', JSON.stringify({ version, verb: 'constructor', params: {} })]
    wrong.push(JSON.stringify({ version, verb: 'org create', params: { name: 5 } }))
    for (const body of wrong)
      expect(await (await post(temp.path, body)).json()).toHaveProperty('error.message')
    expect(await throughSocket(temp.path, 'org list', {})).toHaveProperty('orgs')
  })
})

test('a leftover file at the socket’s path is replaced; without a server the verb works on the folder itself', async () => {
  using temp = tempDir('control')
  await withServer(temp.path, async () => {})
  writeFileSync(controlPath(temp.path), 'not a socket')
  const alone = await openStoreAccess({ dataDir: temp.path, keyRing, baseUrl, clock, work, access: 'write' })
  expect(alone.byServer).toBe(false)
  expect(await alone.call('org list', {})).toHaveProperty('orgs')
  await alone.close()
  await withServer(temp.path, async () => {
    expect(await throughSocket(temp.path, 'org list', {})).toHaveProperty('orgs')
  })
})

test('after kill -9 of the server verbs work without it, and a new server replaces the socket', async () => {
  using temp = tempDir('killed')
  const dataDir = temp.join('data')
  const first = await startAppliance({ dataDir })
  expect((await first.cli('org', 'create', '--name', 'Acme')).code).toBe(0)
  await first.kill()
  expect(existsSync(controlPath(dataDir))).toBe(true)
  const alone = await first.cli('org', 'list', '--json')
  expect(JSON.parse(alone.stdout).orgs).toHaveLength(2)
  const second = await startAppliance({ dataDir })
  const beside = await second.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')
  expect(JSON.parse(beside.stdout)).toHaveProperty('key')
  expect((await second.stop()).code).toBe(0)
  expect(existsSync(controlPath(dataDir))).toBe(false)
})

test('concurrent verbs on a folder without a server wait for each other', async () => {
  using temp = tempDir('crowd')
  const dataDir = temp.join('data')
  const names = ['one', 'two', 'three', 'four']
  const exits = await Promise.all(names.map((name) => cli(['org', 'create', '--name', name], { dataDir })))
  expect(exits.map(({ code, stderr }) => [code, stderr])).toEqual(names.map(() => [0, '']))
  const { stdout } = await cli(['org', 'list', '--json'], { dataDir })
  const slugs = (JSON.parse(stdout).orgs as { slug: string }[]).map(({ slug }) => slug)
  expect(slugs.sort()).toEqual(['default', 'four', 'one', 'three', 'two'])
})
