/**
 * `sightglass upgrade` of a server whose data is in PostgreSQL: nothing is backed up, and the previous executable runs
 * again unless the new release has migrated the database for good.
 */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { nodeOptions } from '../../server/system/environment.ts'
import { cleanEnv, cli, type Exit } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { asAccount, database, program, start, type TestDatabase } from '../support/postgres.ts'
import { nextRelease, script, writeRelease } from '../support/releases.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(180_000)

const dir = tempDir('upgrade-postgres')
let nextBinary = ''
const pids: string[] = []

beforeAll(async () => {
  nextBinary = await nextRelease()
})
afterEach(() => {
  for (const file of pids.filter((pidFile) => existsSync(pidFile))) {
    try {
      process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
})
afterAll(() => dir.remove())

interface Installed {
  made: TestDatabase
  executable: string
  run(...args: string[]): Promise<Exit>
  upgrade(version: string, text: string): Promise<Exit>
  start(): Promise<void>
  /** As many as were stored, by a server that is ready. */
  events(): Promise<number>
}

/** A ready server with three events. */
async function install(name: string): Promise<Installed> {
  const testDatabase = await database('migrated')
  const path = (fileName: string) => dir.join(name, fileName)
  for (const folder of ['bin', 'data']) mkdirSync(path(folder), { recursive: true })
  const executable = path('bin/sightglass')
  writeFileSync(executable, script('1.0.0'))
  chmodSync(executable, 0o755)
  const env = { SIGHTGLASS_DATABASE: testDatabase.url, SIGHTGLASS_KEY_RING: '11'.repeat(32) }
  const exported = Object.entries({ ...env, ...nodeOptions }).map(
    ([key, value]) => `export ${key}='${value}'\n`,
  )
  const serve = `${executable} serve --listen 127.0.0.1:0 --data-dir ${path('data')} --upgrade-wait off`
  const background = `${serve} >> ${path('log')} 2>&1 < /dev/null & echo $! > ${path('pid')}\n`
  writeFileSync(path('start'), `${exported.join('')}${background}`)
  writeFileSync(path('stop'), `kill "$(cat ${path('pid')})" || true\n`)
  pids.push(path('pid'))
  const run = (...args: string[]) => cli(args, { dataDir: path('data'), env, timeoutMs: 150_000 })
  const startServer = async () => {
    await Bun.spawn(['sh', path('start')], { env: cleanEnv() }).exited
    await until(async () => (await run('ready')).code === 0, 60_000)
  }
  writeFileSync(path('events'), ['a', 'b', 'c'].map((id) => `${JSON.stringify(event(id))}\n`).join(''))
  expect(await run('import', path('events'))).toMatchObject({ code: 0 })
  await startServer()
  return {
    made: testDatabase,
    executable,
    run,
    start: startServer,
    upgrade(version, text) {
      const file = writeRelease(dir.join(name, version), version, text, null)
      const control = ['--stop', `sh ${path('stop')}`, '--start', `sh ${path('start')}`, '--wait', '600']
      const upgradeArgs = ['--executable', executable, '--unit-dir', path('none'), '--trust']
      return run('upgrade', file, ...upgradeArgs, ...control)
    },
    async events() {
      expect((await run('ready')).code).toBe(0)
      return (await run('export', 'traces')).stdout.match(/"id":/g)?.length ?? 0
    },
  }
}

/** A release that ends after it has migrated the database. `olderNodes`: what those without its migration may do. */
function migrating(version: string, olderNodes: 'write' | 'end'): string {
  const serve = `shift; ${nextBinary} migrate up --data-dir "$4" && echo migrated; exit 1`
  const text = script(version, serve, nextBinary)
  return text.replace('\n', `\nexport NEXT_OLDER_NODES=${olderNodes}\n`)
}

test('an upgrade says that nothing is backed up, and goes back when the release does not start', async () => {
  const { upgrade, executable, events, made: testDatabase } = await install('plain')
  const upgradeResult = await upgrade('2.0.0', script('2.0.0'))
  expect([upgradeResult.code, upgradeResult.stderr]).toEqual([0, ''])
  expect(upgradeResult.stdout).toContain(
    'No backup was made: the database is backed up with its own tools. A migration cannot be undone without one.',
  )
  expect(upgradeResult.stdout).toContain('Upgraded from 1.0.0 to 2.0.0; the server is ready.')
  const broken = await upgrade('3.0.0', script('3.0.0', 'echo cannot start; exit 1'))
  expect([broken.code, broken.stderr]).toEqual([
    1,
    expect.stringContaining('Release 3.0.0 did not start: its process ended. Release 2.0.0 runs again.'),
  ])
  expect([readFileSync(executable, 'utf8'), await events()]).toEqual([script('2.0.0'), 3])
  const schema = () =>
    testDatabase.cluster.sql('SELECT max(version) FROM sightglass.schema_migration', testDatabase.name)
  const schemaBefore = Number(await schema())
  const tolerated = await upgrade('4.0.0', migrating('4.0.0', 'write'))
  expect([tolerated.code, tolerated.stderr]).toEqual([
    1,
    expect.stringContaining('Release 2.0.0 runs again.'),
  ])
  expect([Number(await schema()), await events()]).toEqual([schemaBefore + 1, 3])
})

/** A program of PostgreSQL, as an operator runs it. */
async function tool(name: string, ...args: string[]): Promise<void> {
  const child = start(asAccount([program(name), ...args]))
  expect([name, await child.exited, child.stderr()]).toEqual([name, 0, ''])
}

test('a migration that ends the old release is not undone; the backup of the operator is', async () => {
  const {
    upgrade,
    executable,
    events,
    made: testDatabase,
    run,
    start: startServer,
  } = await install('migrated')
  const dumps = dir.join('dumps')
  mkdirSync(dumps)
  for (const [folder, mode] of [
    [dir.path, 0o755],
    [dumps, 0o777],
  ] as const)
    chmodSync(folder, mode)
  const dump = `${dumps}/sightglass.dump`
  await tool('pg_dump', '--format=custom', `--file=${dump}`, testDatabase.url)
  const failed = await upgrade('4.0.0', migrating('4.0.0', 'end'))
  expect([failed.code, failed.stderr]).toEqual([
    1,
    expect.stringContaining(
      'The new release migrated the database, and the previous one, which is installed again, cannot read it. No server runs.',
    ),
  ])
  expect(failed.stderr).toContain('restore the backup of the database that you made, then start the server')
  expect([readFileSync(executable, 'utf8'), (await run('ready')).code]).toEqual([script('1.0.0'), 1])
  expect((await run('migrate', 'status')).stdout).toContain('use the release that wrote it, or a newer one')
  await testDatabase.cluster.sql('DROP SCHEMA sightglass CASCADE', testDatabase.name)
  await tool('pg_restore', `--dbname=${testDatabase.url}`, dump)
  await startServer()
  expect(await events()).toBe(3)
})
