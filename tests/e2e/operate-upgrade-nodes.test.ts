/** `sightglass upgrade` of a node on PostgreSQL, with small executables that start the real one. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { binaryPath, cleanEnv, cli, type Exit } from '../support/binary.ts'
import { database, type TestDatabase } from '../support/postgres.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

let dir: TempDir
let db: TestDatabase

const executable = () => dir.join('bin/sightglass')
const dataDir = () => dir.join('data')
const pid = () => readFileSync(dir.join('pid'), 'utf8').trim()

/** An executable of another version. `serve` replaces how its server starts. */
function script(version: string, serve = `exec ${binaryPath} "$@"`, migrate = ''): string {
  const versionLine = `[ "$1" = version ] && exec echo '{"version":"${version}"}'`
  const lines = ['#!/bin/sh', versionLine, migrate, `[ "$1" != serve ] && exec ${binaryPath} "$@"`, serve, '']
  return lines.join('\n')
}

/** What `migrate status` of the older release answers once a file says that the newer one has migrated the database. */
const statusAfter = () =>
  `[ "$1" = migrate ] && [ -f ${dir.join('migrated')} ] && exec echo '{"state":"newer","backups":"tools"}'`

function release(version: string, text: string): string {
  const name = `sightglass-${version}-linux-x64.gz`
  const folder = dir.join(`release-${version}`)
  mkdirSync(folder, { recursive: true })
  const bytes = Bun.gzipSync(Buffer.from(text))
  writeFileSync(`${folder}/${name}`, bytes)
  writeFileSync(`${folder}/SHA256SUMS`, `${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`)
  return `${folder}/${name}`
}

beforeAll(async () => {
  dir = tempDir('upgrade')
  db = await database()
  for (const name of ['bin', 'data']) mkdirSync(dir.join(name))
  writeFileSync(executable(), script('1.0.0'))
  chmodSync(executable(), 0o755)
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const env = `SIGHTGLASS_DATABASE=${db.url} SIGHTGLASS_KEY_FILE=${dir.join('keys')}`
  const serve = `${env} ${executable()} serve --listen 127.0.0.1:0 --data-dir ${dataDir()} --node-name one`
  writeFileSync(
    dir.join('start'),
    `${serve} >> ${dir.join('log')} 2>&1 < /dev/null & echo $! > ${dir.join('pid')}\n`,
  )
  writeFileSync(dir.join('stop'), `kill "$(cat ${dir.join('pid')})" || true\n`)
  // A variable of the test run would end the server with the shell that starts it.
  await Bun.spawn(['sh', dir.join('start')], { env: cleanEnv() }).exited
  const isReady = async () => (await cli(['ready'], { dataDir: dataDir() })).code === 0
  await until(isReady).catch((error: Error) => {
    throw new Error(`${error.message}: ${readFileSync(dir.join('log'), 'utf8')}`)
  })
})
afterAll(async () => {
  await Bun.spawn(['sh', '-c', `kill -9 ${pid()} 2>/dev/null; true`]).exited
  await db.drop()
  dir.remove()
})

/** Only the server has the address of the database, as a unit of systemd with an environment file has. */
const upgrade = (file: string, ...args: string[]): Promise<Exit> => {
  const control = ['--stop', `sh ${dir.join('stop')}`, '--start', `sh ${dir.join('start')}`, '--trust']
  const upgradeArgs = ['--executable', executable(), '--unit-dir', dir.join('none'), '--json']
  return cli(['upgrade', file, ...upgradeArgs, ...control, ...args], {
    dataDir: dataDir(),
    timeoutMs: 50_000,
  })
}

test('a node gets another executable without a backup, which its operators make', async () => {
  const pidBefore = pid()
  const { code, stdout, stderr } = await upgrade(release('2.0.0', script('2.0.0')))
  expect([code, stderr]).toEqual([0, ''])
  expect(JSON.parse(stdout)).toMatchObject({
    version: '2.0.0',
    previous: '1.0.0',
    backup: null,
    migrates: false,
    restarted: true,
  })
  expect([readFileSync(executable(), 'utf8'), pid() === pidBefore]).toEqual([script('2.0.0'), false])
})

const message = ({ stderr }: Exit) => (JSON.parse(stderr) as { message: string }).message

test('when the new executable does not start, the previous one serves the database again', async () => {
  const failed = await upgrade(release('3.0.0', script('3.0.0', 'exit 1')), '--wait', '10')
  expect([failed.code, message(failed)]).toEqual([
    1,
    expect.stringMatching(/^Release 3\.0\.0 did not start: .* Release 2\.0\.0 runs again\.$/),
  ])
  expect(readFileSync(executable(), 'utf8')).toBe(script('2.0.0'))
  expect((await cli(['ready'], { dataDir: dataDir() })).code).toBe(0)
})

test('when it has migrated the database for good, the operator is told what to restore', async () => {
  const older = script('3.1.0', undefined, statusAfter())
  expect((await upgrade(release('3.1.0', older))).code).toBe(0)
  const newer = script('3.2.0', `touch ${dir.join('migrated')}; exit 1`)
  const failed = await upgrade(release('3.2.0', newer), '--wait', '1')
  expect([failed.code, message(failed)]).toEqual([
    1,
    'The new release migrated the database, and the previous one, which is installed again, cannot read it. No server runs.',
  ])
  expect(failed.stderr).toContain('restore the backup of the database that you made')
  expect(readFileSync(executable(), 'utf8')).toBe(older)
})
