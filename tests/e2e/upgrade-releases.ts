/**
 * `bun tests/e2e/upgrade-releases.ts --full`: makes three releases, of which two have one migration more and one of
 * those cannot start, and upgrades a server to each while it receives events. Needs root. Without --full it says what
 * it would do.
 */
import { generateKeyPairSync } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { root } from '../../scripts/build.ts'
import { version } from '../../server/system/version.ts'
import { event } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'
import { change, copySources, expectEqual, ownTarget, release, succeed } from './packages-actions.ts'

const dir = tempDir('upgrade')
const account = 7400
/** A link to a folder in one that only root may enter, as systemd has it for a service with a dynamic account. */
const executable = dir.join('bin/sightglass')
const data = dir.join('state/sightglass')
const folder = dir.join('state/private/sightglass')
const versions = { newer: '9.0.0', broken: '9.1.0' }

/** Sources with one migration more; those of the broken release end after they have migrated the data. */
function sourcesOf(name: keyof typeof versions): string {
  const folder = copySources(dir.join(`${name}-sources`), versions[name])
  const migrations = join(folder, 'db/sqlite/migrations/migrations.ts')
  const last = [...readFileSync(migrations, 'utf8').matchAll(/^ {2}\{ version: (\d+),.*\n\]/gm)].at(-1)!
  const sql = 'CREATE TABLE next_release (x TEXT) STRICT'
  const added = `  { version: ${Number(last[1]) + 1}, name: 'next_release', sql: '${sql}' },\n]`
  change(migrations, last[0], `${last[0].slice(0, -1)}${added}`)
  if (name === 'broken')
    change(join(folder, 'server/runtime/serve.ts'), '  clockGuard.run()\n', "  throw new Error('broken')\n")
  return folder
}

const cli = (...args: string[]): Promise<string> => succeed([executable, ...args, '--data-dir', data])

/** A server with an account of its own, and its folder where it can enter it. */
function writeControl(): void {
  const serve = `${executable} serve --listen unix:${data}/http.sock --data-dir ${data}`
  const drop = `setpriv --reuid=${account} --regid=${account} --clear-groups`
  const mounts = [
    `mount --bind ${folder} ${dir.join('spare')}`,
    `mount -t tmpfs -o mode=0755 tmpfs ${dir.join('state/private')}`,
    `mkdir ${folder} && mount --bind ${dir.join('spare')} ${folder}`,
    `exec ${drop} ${serve}`,
  ]
  const inside = `unshare --mount sh -c '${mounts.join(' && ')}' >> ${dir.join('log')} 2>&1 < /dev/null`
  writeFileSync(dir.join('start'), `${inside} & echo $! > ${dir.join('pid')}\n`)
  writeFileSync(dir.join('stop'), `kill "$(cat ${dir.join('pid')})" || true\n`)
}

interface Writer {
  acknowledged: Set<string>
  stop(): Promise<void>
}

/** Sends one event after another, also while no server answers. */
function writeEvents(key: string): Writer {
  const acknowledged = new Set<string>()
  let ended = false
  const work = (async () => {
    for (let count = 0; !ended; count++) {
      const id = `live_${count}`
      const request = fetch('http://localhost/v1/sdk/events', {
        unix: `${data}/http.sock`,
        method: 'POST',
        body: JSON.stringify({ events: [event(id)] }),
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      })
      if (
        await request.then(
          ({ status }) => status === 202,
          () => false,
        )
      )
        acknowledged.add(id)
      await Bun.sleep(5)
    }
  })()
  return {
    acknowledged,
    async stop() {
      ended = true
      await work
    },
  }
}

async function expectData({ acknowledged }: Writer, phase: string): Promise<void> {
  const idsBefore = [...acknowledged]
  const stored = new Set(
    (await cli('export', 'traces')).match(/"live_\d+"/g)?.map((id) => JSON.parse(id) as string),
  )
  const lost = idsBefore.filter((id) => !stored.has(id))
  expectEqual(`acknowledged events ${phase}`, [idsBefore.length > 100, lost], [true, []])
  const foreign = readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path).uid !== account)
  expectEqual(`files of another account ${phase}`, foreign, [])
  const verified = JSON.parse(await cli('verify', '--json')) as { ok: boolean }
  expectEqual(`verified ${phase}`, verified.ok, true)
}

async function upgrade(name: string, targetVersion: string): Promise<{ code: number; message: string }> {
  const file = join(dir.join(name), `sightglass-${targetVersion}-${ownTarget}.gz`)
  const control = ['--stop', `sh ${dir.join('stop')}`, '--start', `sh ${dir.join('start')}`, '--wait', '20']
  const args = [
    'upgrade',
    file,
    '--key',
    dir.join(name, 'sightglass-release.pub'),
    '--unit-dir',
    dir.join('none'),
  ]
  const startedMs = performance.now()
  const child = Bun.spawnSync([executable, ...args, ...control, '--data-dir', data])
  const message = `${child.stdout.toString()}${child.stderr.toString()}`.trim()
  console.log(
    `    ${message.replaceAll('\n', '\n    ')} (${((performance.now() - startedMs) / 1_000).toFixed(1)} s)`,
  )
  return { code: child.exitCode, message }
}

const schema = async () => (JSON.parse(await cli('migrate', 'status', '--json')) as { schema: number }).schema
const running = async () => (JSON.parse(await cli('version', '--json')) as { version: string }).version

async function main(): Promise<void> {
  const { privateKey } = generateKeyPairSync('ed25519')
  writeFileSync(dir.join('key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const options = ['--packages', 'none', '--key', dir.join('key.pem')]
  await release(root, dir.join('older'), ...options)
  for (const name of ['newer', 'broken'] as const) await release(sourcesOf(name), dir.join(name), ...options)
  chmodSync(dir.path, 0o755)
  for (const name of ['bin', 'state', 'state/private', 'spare']) mkdirSync(dir.join(name))
  mkdirSync(folder, { mode: 0o700 })
  chownSync(folder, account, account)
  chmodSync(dir.join('state/private'), 0o700)
  symlinkSync('private/sightglass', data)
  writeFileSync(dir.join('log'), '')
  writeFileSync(
    executable,
    Bun.gunzipSync(readFileSync(dir.join('older', `sightglass-${version}-${ownTarget}.gz`))),
  )
  chmodSync(executable, 0o755)
  writeControl()
  await succeed(['sh', dir.join('start')])
  while (Bun.spawnSync([executable, 'ready', '--data-dir', data]).exitCode !== 0) await Bun.sleep(100)
  const { key } = JSON.parse(await cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')) as {
    key: string
  }
  const first = await schema()
  const writer = writeEvents(key)
  try {
    while (writer.acknowledged.size < 200) await Bun.sleep(20)
    const failed = await upgrade('broken', versions.broken)
    expectEqual(
      'a release that cannot start',
      [failed.code, await running(), await schema()],
      [1, version, first],
    )
    expectEqual(
      'its migration is undone',
      failed.message.includes('with the data of before the migration'),
      true,
    )
    await expectData(writer, 'after going back')
    const upgradeResult = await upgrade('newer', versions.newer)
    expectEqual(
      'the next release',
      [upgradeResult.code, await running(), await schema()],
      [0, versions.newer, first + 1],
    )
    await expectData(writer, 'after the upgrade')
    const back = await upgrade('older', version)
    expectEqual('an older release', [back.code, await running()], [1, versions.newer])
    expectEqual(
      'is refused',
      back.message.includes('cannot read the data, which a newer release wrote'),
      true,
    )
    await expectData(writer, 'after the refusal')
  } finally {
    await writer.stop()
    await succeed(['sh', dir.join('stop')])
  }
  dir.remove()
}

if (process.argv.includes('--full')) await main()
else console.log('--full makes three releases and upgrades a server to each while it receives events')
