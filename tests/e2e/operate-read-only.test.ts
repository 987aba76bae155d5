/** Read-only verbs change nothing: alone, after a crash, beside a server and on a read-only mount. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { cli, startAppliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { until } from '../support/until.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000)

const looking: string[][] = [
  ['verify'],
  ['doctor'],
  ['org', 'list'],
  ['account', 'list'],
  ['key', 'list', '--org', 'default'],
  ['site', 'list', '--org', 'default'],
  ['webhook', 'list', '--org', 'default'],
  ['webhook', 'endpoints', '--org', 'default'],
  ['backup', 'list'],
  ['migrate', 'status'],
]

/** Name, bytes and time of every file. */
function stateOf(folder: string, leaveOut: RegExp = /^$/): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !leaveOut.test(entry.name))
    .map((entry) => {
      const path = `${entry.parentPath}/${entry.name}`
      const { mtimeMs, size, mode } = statSync(path)
      const bytes = entry.isFile() ? Bun.hash(readFileSync(path)).toString(16) : ''
      return `${path.slice(folder.length)} ${mode} ${size} ${entry.name === 'control.sock' ? '' : mtimeMs} ${bytes}`
    })
    .toSorted()
}

/** A folder with data, as a clean end or a crash leaves it. */
async function lived(dataDir: string, end: 'stop' | 'kill'): Promise<void> {
  const appliance = await startAppliance({ dataDir })
  const keyExit = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')
  const { key } = JSON.parse(keyExit.stdout) as { key: string }
  const events = Array.from({ length: 50 }, (_, n) => event(`e${n}`))
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  await fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body: JSON.stringify({ events }) })
  await appliance[end]()
}

async function lookAtAll(dataDir: string): Promise<void> {
  for (const verb of looking) {
    const { code, stdout, stderr } = await cli(verb, { dataDir })
    expect([verb.join(' '), code, stderr]).toEqual([verb.join(' '), 0, ''])
    if (verb[0] === 'verify') expect(stdout).toContain('50 events, intact')
    if (verb[0] === 'key') expect(stdout).toContain('ingest')
  }
}

for (const end of ['stop', 'kill'] as const)
  test(`after a ${end} nothing in the folder changes`, async () => {
    using dir = tempDir('look')
    await lived(dir.join('data'), end)
    const stateBefore = stateOf(dir.join('data'))
    await lookAtAll(dir.join('data'))
    expect(stateOf(dir.join('data'))).toEqual(stateBefore)
  })

for (const end of ['stop', 'kill'] as const)
  test(`on a read-only mount everything works after a ${end}`, async () => {
    using dir = tempDir('mount')
    await lived(dir.join('data'), end)
    const mount = dir.join('mount')
    mkdirSync(mount)
    const bound = spawnSync('mount', ['--bind', dir.join('data'), mount]).status === 0
    const isReadOnly = bound && spawnSync('mount', ['-o', 'remount,ro,bind', mount]).status === 0
    try {
      if (!isReadOnly) return console.log('skipped: this user may not mount a folder read-only')
      await lookAtAll(mount)
      const refused = await cli(['org', 'create', '--name', 'B'], { dataDir: mount })
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('mounted read-only')])
    } finally {
      if (bound) spawnSync('umount', ['-l', mount])
    }
  })

test('read-only verbs beside a running server change no file of the database, lock or evidence', async () => {
  using dir = tempDir('beside')
  const dataDir = dir.join('data')
  await lived(dataDir, 'stop')
  await using _appliance = await startAppliance({ dataDir })
  // Its own writes of the start; the log is emptied in the first idle second, which is later on a busy machine.
  await until(() => statSync(`${dataDir}/sightglass.db-wal`).size === 0, 30_000)
  await Bun.sleep(500)
  const ownFiles = /^(clock.*|reserve)$/
  const stateBefore = stateOf(dataDir, ownFiles)
  await lookAtAll(dataDir)
  expect(stateOf(dataDir, ownFiles)).toEqual(stateBefore)
})
