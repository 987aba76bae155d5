/**
 * `sightglass upgrade` with small executables that start the real one: verified, backed up, swapped, restarted, and
 * rolled back. `upgrade-releases.ts --full` does it with releases that migrate the data.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gcOptions } from '../../server/system/environment.ts'
import { cleanEnv, cli, type Exit } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { script, writeRelease } from '../support/releases.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let dir: TempDir
const { privateKey, publicKey } = generateKeyPairSync('ed25519')

const executable = () => dir.join('bin/sightglass')
const data = () => dir.join('data')
const pid = () => readFileSync(dir.join('pid'), 'utf8').trim()

/** A release folder with one file; returns its path. */
const release = (version: string, text: string, key: KeyObject | null = privateKey): string =>
  writeRelease(dir.join(`release-${version}`), version, text, key)

beforeAll(async () => {
  dir = tempDir('upgrade')
  for (const name of ['bin', 'data']) mkdirSync(dir.join(name))
  writeFileSync(executable(), script('1.0.0'))
  chmodSync(executable(), 0o755)
  writeFileSync(dir.join('key.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  // Otherwise it would execute itself again, under the name of the file.
  const runtime = Object.entries(gcOptions)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
  const serve = `${executable()} serve --listen 127.0.0.1:0 --data-dir ${data()}`
  writeFileSync(
    dir.join('start'),
    `${runtime} ${serve} >> ${dir.join('log')} 2>&1 < /dev/null & echo $! > ${dir.join('pid')}\n`,
  )
  writeFileSync(dir.join('stop'), `kill "$(cat ${dir.join('pid')})" || true\n`)
  writeFileSync(dir.join('events'), ['one', 'two'].map((id) => `${JSON.stringify(event(id))}\n`).join(''))
  expect((await cli(['import', dir.join('events')], { dataDir: data() })).code).toBe(0)
  // A variable of the test run would end the server with the shell that starts it.
  await Bun.spawn(['sh', dir.join('start')], { env: cleanEnv() }).exited
  const isReady = async () => (await cli(['ready'], { dataDir: data() })).code === 0
  await until(isReady).catch((error: Error) => {
    throw new Error(`${error.message}: ${readFileSync(dir.join('log'), 'utf8')}`)
  })
})
afterAll(() => {
  try {
    process.kill(Number(pid()), 'SIGKILL')
  } catch {
    // It did not start, or has ended.
  }
  dir.remove()
})

const upgrade = (file: string, ...args: string[]): Promise<Exit> => {
  const control = ['--stop', `sh ${dir.join('stop')}`, '--start', `sh ${dir.join('start')}`]
  const upgradeArgs = ['--executable', executable(), '--unit-dir', dir.join('none'), '--json']
  return cli(['upgrade', file, ...upgradeArgs, ...control, ...args], { dataDir: data(), timeoutMs: 50_000 })
}
const withKey = () => ['--key', dir.join('key.pub')]
const message = ({ stderr }: Exit) => (JSON.parse(stderr) as { message: string }).message

async function events(): Promise<number> {
  return (await cli(['export', 'traces'], { dataDir: data() })).stdout.match(/"id":/g)?.length ?? 0
}

test('a file that is altered, unknown, unsigned or of another machine is refused, and nothing changes', async () => {
  const pidBefore = pid()
  const altered = release('1.1.0', script('1.1.0'))
  writeFileSync(altered, Bun.gzipSync(Buffer.from(script('6.6.6'))))
  expect(message(await upgrade(altered, ...withKey(), '--trust'))).toContain(
    'its checksum is not the one in SHA256SUMS',
  )
  const unsigned = release('1.2.0', script('1.2.0'), null)
  expect(message(await upgrade(unsigned, ...withKey()))).toContain('SHA256SUMS is not signed')
  const foreignRelease = release('1.3.0', script('1.3.0'), generateKeyPairSync('ed25519').privateKey)
  expect(message(await upgrade(foreignRelease, ...withKey()))).toContain('not signed with the key in')
  expect(message(await upgrade(foreignRelease))).toContain('not signed with a release key')
  const machine = release('1.4.0', 'no executable')
  expect(message(await upgrade(machine, ...withKey()))).toContain('does not run on this machine')
  const newer = `[ "$1" = migrate ] && exec echo '{"state":"newer"}'`
  const reading = release('1.5.0', script('1.5.0').replace('\n', `\n${newer}\n`))
  expect(message(await upgrade(reading, ...withKey()))).toContain('Release 1.5.0 cannot read the data')
  expect([readFileSync(executable(), 'utf8'), readdirSync(dir.join('bin')), pid()]).toEqual([
    script('1.0.0'),
    ['sightglass'],
    pidBefore,
  ])
})

/** In place of systemd, with a unit of `service install`. */
function writeUnit(): Record<string, string> {
  for (const name of ['units', 'stand-in']) mkdirSync(dir.join(name))
  const start = `ExecStart=${executable()} serve --data-dir=${data()} --listen=127.0.0.1:0`
  writeFileSync(dir.join('units/sightglass.service'), `[Service]\n${start}\n`)
  writeFileSync(
    dir.join('stand-in/systemctl'),
    `#!/bin/sh\n[ "$2" = sightglass.service ] && sh ${dir.path}/"$1"\n`,
  )
  chmodSync(dir.join('stand-in/systemctl'), 0o755)
  return { PATH: `${dir.join('stand-in')}:${process.env['PATH']}` }
}

test('a signed file is installed after a backup, and the service runs it with its data', async () => {
  const pidBefore = pid()
  const upgradeArgs = ['--executable', executable(), '--unit-dir', dir.join('units'), '--json']
  const { code, stdout, stderr } = await cli(
    ['upgrade', release('2.0.0', script('2.0.0')), ...upgradeArgs, ...withKey()],
    { env: writeUnit() },
  )
  expect([code, stderr]).toEqual([0, ''])
  const answer = JSON.parse(stdout)
  expect(answer).toMatchObject({
    version: '2.0.0',
    previous: '1.0.0',
    restarted: true,
    restartNeeded: false,
    migrates: false,
  })
  expect((await cli(['backup', 'verify', answer.backup])).code).toBe(0)
  expect([readFileSync(executable(), 'utf8'), readFileSync(answer.previousExecutable, 'utf8')]).toEqual([
    script('2.0.0'),
    script('1.0.0'),
  ])
  expect([pid() === pidBefore, await events()]).toEqual([false, 2])
})

test('when the server does not become ready, the previous executable runs again with the data', async () => {
  const broken = release('3.0.0', script('3.0.0', 'echo cannot start; exit 1'))
  const startedMs = performance.now()
  const failed = await upgrade(broken, ...withKey(), '--wait', '600')
  expect([failed.code, message(failed)]).toEqual([
    1,
    'Release 3.0.0 did not start: its process ended. Release 2.0.0 runs again.',
  ])
  expect(performance.now() - startedMs).toBeLessThan(300_000)
  expect([readFileSync(executable(), 'utf8'), readdirSync(dir.join('bin')).sort()]).toEqual([
    script('2.0.0'),
    ['sightglass'],
  ])
  expect([(await cli(['ready'], { dataDir: data() })).code, await events()]).toEqual([0, 2])
})

test('a server that runs but is not ready in time is replaced by the previous one too', async () => {
  const slow = release('3.1.0', script('3.1.0', `sleep 300 & trap 'kill $!; exit' TERM; wait`))
  const failed = await upgrade(slow, ...withKey(), '--wait', '3')
  expect([failed.code, message(failed)]).toEqual([
    1,
    expect.stringMatching(
      /^Release 3\.1\.0 did not start: it was not ready within 3 s: .* Release 2\.0\.0 runs again\.$/,
    ),
  ])
  expect([(await cli(['ready'], { dataDir: data() })).code, await events()]).toEqual([0, 2])
})

test('the program of the long run loads', async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'upgrade-releases.ts')], {
    stdout: 'pipe',
  })
  expect([await child.exited, await new Response(child.stdout).text()]).toEqual([
    0,
    expect.stringContaining('--full makes three releases'),
  ])
})

test('without a way to restart, a trusted file is installed and the answer says what to do', async () => {
  const file = release('4.0.0', script('4.0.0'), null)
  const args = ['upgrade', file, '--trust', '--executable', executable(), '--unit-dir', dir.join('none')]
  const { code, stdout } = await cli(args, { dataDir: data() })
  expect([code, stdout]).toEqual([0, expect.stringContaining('the server still runs 2.0.0. Restart it')])
  const managed = await cli(['upgrade', file, '--executable', '/srv/node_modules/x/bin/sightglass'])
  expect([managed.code, managed.stderr]).toEqual([1, expect.stringContaining('belongs to a package manager')])
})
