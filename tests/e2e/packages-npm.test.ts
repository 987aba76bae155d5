/** The packages for npm as npm installs them in an empty folder: signals end the server as they end it without npm. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mainPackage, platformPackage } from '../../scripts/packages/npm.ts'
import { binaryPath, cleanEnv, cli, parseListening } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { run, type Running } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

let dir: TempDir
const version = '1.0.0'
const cwd = () => dir.join('empty')
const env = () => cleanEnv({ npm_config_offline: 'true', npm_config_update_notifier: 'false' })
const npx = () => ['npx', 'sightglass']
const bin = () => [join(cwd(), 'node_modules/.bin/sightglass')]

beforeAll(async () => {
  dir = tempDir('packages-npm')
  expect((await cli(['version'])).code).toBe(0) // builds when a source is newer
  const linux = { os: 'linux', cpu: process.arch as 'x64' | 'arm64', libc: 'glibc' } as const
  const bytes = readFileSync(binaryPath)
  const executable = { bytes, gzip: Bun.gzipSync(bytes, { level: 0 }) }
  const texts = { version, license: 'licence' }
  writeFileSync(dir.join('platform.tgz'), platformPackage(texts, linux, executable))
  writeFileSync(dir.join('main.tgz'), mainPackage(texts, [linux]))
  mkdirSync(cwd())
  writeFileSync(join(cwd(), 'package.json'), '{}')
  const files = [dir.join('platform.tgz'), dir.join('main.tgz')]
  const install = run(['npm', 'install', '--no-audit', '--no-fund', ...files], { cwd: cwd(), env: env() })
  expect([await install.exited, install.stderr()]).toEqual([0, ''])
})
const pids: number[] = []
afterAll(() => {
  for (const pid of pids.filter((candidatePid) => existsSync(`/proc/${candidatePid}`)))
    process.kill(pid, 'SIGKILL')
  dir.remove()
})

interface Served {
  child: Running
  data: string
  url: string
  pid: number // of the server
  acknowledged: string[]
}

/** A server that has acknowledged events and receives more. */
async function serve(command: string[], name: string): Promise<Served> {
  const data = dir.join(name)
  const keyResult = await cli(['key', 'create', '--kind', 'ingest', '--label', 'x', '--json'], {
    dataDir: data,
  })
  const { key } = JSON.parse(keyResult.stdout) as { key: string }
  const child = run([...command, 'serve', '--listen', '127.0.0.1:0', '--data-dir', data], {
    cwd: cwd(),
    env: env(),
  })
  const { url } = await child.line(parseListening, 60_000)
  const acknowledged: string[] = []
  const send = async (id: string): Promise<boolean> => {
    const answer = await fetch(`${url}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [event(id)] }),
    }).catch(() => null)
    if (answer?.status === 202) acknowledged.push(id)
    return answer !== null
  }
  for (let number = 0; number < 20; number++) expect(await send(`first_${number}`)).toBe(true)
  void (async () => {
    for (let number = 0; await send(`beside_${number}`); number++) await Bun.sleep(5)
  })()
  const pid = serverPid(data)
  pids.push(pid)
  return { child, data, url, pid, acknowledged }
}

/** The process that has the database open. */
function serverPid(data: string): number {
  const serverPids = readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) &&
        readFileSync(`/proc/${name}/cmdline`, 'utf8').startsWith(`${executable()}\0`)
        ? readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(`\0${data}\0`)
        : false
    } catch {
      return false // it has ended
    }
  })
  expect(serverPids).toHaveLength(1)
  return Number(serverPids[0])
}

const executable = () => join(cwd(), `node_modules/@sightglass/linux-${process.arch}/bin/sightglass`)

async function expectCleanEnd({ child, data, pid, acknowledged }: Served): Promise<void> {
  await until(() => !existsSync(`/proc/${pid}`))
  expect(child.stderr()).toContain('"stopped"')
  const { stdout } = await cli(['export', 'traces'], { dataDir: data })
  const stored = new Set(stdout.match(/"id":"[^"]+"/g)?.map((text) => text.slice(6, -1)))
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([])
  expect(acknowledged.length).toBeGreaterThanOrEqual(20)
  expect((await cli(['verify'], { dataDir: data })).code).toBe(0)
}

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  test(`the installed command passes ${signal} on, and ends with the exit code of the server`, async () => {
    const served = await serve(bin(), `bin-${signal}`)
    served.child.signal(signal)
    expect(await served.child.exited).toBe(0)
    await expectCleanEnd(served)
  })

test('the installed command passes SIGHUP on, on which the server reads its files again', async () => {
  const served = await serve(bin(), 'bin-SIGHUP')
  served.child.signal('SIGHUP')
  await until(() => served.child.stderr().includes('"reloaded"'))
  expect((await fetch(`${served.url}/readyz`)).status).toBe(200)
  served.child.signal('SIGTERM')
  expect(await served.child.exited).toBe(0)
  await expectCleanEnd(served)
})

test('the installed command ends as the server that a signal killed', async () => {
  const served = await serve(bin(), 'bin-SIGKILL')
  process.kill(served.pid, 'SIGKILL')
  expect(await served.child.exited).toBe(137)
})

for (const signal of ['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)
  test(`npx that ${signal} ended does not leave the server behind`, async () => {
    const served = await serve(npx(), `npx-${signal}`)
    served.child.signal(signal)
    await expectCleanEnd(served)
  })

test('Ctrl-C, which a terminal sends to all of npx, ends the server cleanly', async () => {
  const served = await serve(['setsid', ...npx()], 'npx-SIGINT')
  process.kill(-served.child.pid, 'SIGINT')
  await expectCleanEnd(served)
})
