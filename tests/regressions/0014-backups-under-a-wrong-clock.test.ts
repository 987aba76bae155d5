/** Backups dated by a wrong clock displace no later ones, and the remains of a killed backup are deleted. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  listBackups,
  makePartial,
  pruneBackups,
  writeLastRun,
} from '../../server/operations/backup/backup-folder.ts'
import { createBackup } from '../../server/operations/backup/create.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { checkBackups } from '../../server/operations/doctor/folder-checks.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

const day = 24 * 3_600_000

test('of backups made under three clocks the newest by creation stay, and doctor reports the wrong date', async () => {
  using temp = tempDir('backup-clock')
  const dataDir = temp.join('data')
  const dir = temp.join('backups')
  let now = Date.UTC(2026, 10, 1, 3, 17)
  const clock = { now: () => (now += 1_000) }
  const store = await openDataFolder(dataDir, clock)
  await store.close()
  const scheduled = async () => {
    const backup = await createBackup({ dataDir, dir, reason: 'scheduled', passphrase: null, clock })
    await pruneBackups(dir, 2, backup.name)
    return backup.name
  }
  await scheduled()
  now += 400 * day
  const ahead = await scheduled()
  now -= 400 * day
  expect(await checkBackups(dir, now)).toMatchObject({ status: 'warning' })
  expect((await checkBackups(dir, now)).detail).toContain(ahead)
  const second = await scheduled()
  now -= 400 * day
  const behind = await scheduled()
  expect((await listBackups(dir)).map(({ name }) => name)).toEqual([behind, second])
  now += 400 * day
  expect((await listBackups(dir)).map(({ name }) => name)).toEqual([behind, second])
  // A failure that a wrong clock dated long ago is still the newest attempt.
  writeLastRun(dir, { at: '2020-01-01T00:00:00.000Z', ok: false, name: null, message: 'no', sequence: 4 })
  expect(await checkBackups(dir, now)).toMatchObject({ status: 'failure' })
  await scheduled()
  expect(await checkBackups(dir, now)).toMatchObject({ status: 'ok' })
})

test('remains of a killed backup are deleted before free space is checked; work of another process stays', async () => {
  using temp = tempDir('backup-leftover')
  const dir = temp.join('data', 'backups')
  mkdirSync(join(dir, '.partial-killed'), { recursive: true })
  writeFileSync(join(dir, '.partial-killed', 'sightglass.db'), 'x')
  const working = Bun.spawn([process.execPath, '-e', workInPartial(dir)], { stdout: 'pipe' })
  await working.stdout.getReader().read()
  writeFileSync(temp.join('data', 'sightglass.db'), '')
  truncateSync(temp.join('data', 'sightglass.db'), 2 ** 42) // no disk has space for it
  const options = { dataDir: temp.join('data'), dir, reason: 'manual', passphrase: null } as const
  const refused = await createBackup({ ...options, clock: { now: () => Date.now() } }).catch(String)
  expect(refused).toContain('bytes')
  expect(existsSync(join(dir, '.partial-killed'))).toBe(false)
  expect(existsSync(join(dir, '.partial-working'))).toBe(true)
  working.kill('SIGKILL')
  await working.exited
  await createBackup({ ...options, clock: { now: () => Date.now() } }).catch(() => {})
  expect(existsSync(join(dir, '.partial-working'))).toBe(false)
})

/** A process that holds a folder for work in progress until it is killed. */
function workInPartial(dir: string): string {
  const module = join(import.meta.dir, '../../server/operations/backup/backup-folder.ts')
  return `import(${JSON.stringify(module)}).then(({ makePartial }) => {
    globalThis.held = makePartial(${JSON.stringify(dir)}, 'working')
    console.log('ready')
    setInterval(() => {}, 1_000)
  })`
}

test('two partial folders never share a name', () => {
  using temp = tempDir('backup-leftover')
  mkdirSync(temp.join('backups'))
  makePartial(temp.join('backups'), 'one')
  expect(() => makePartial(temp.join('backups'), 'one')).toThrow('EEXIST')
})
