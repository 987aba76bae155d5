/** A running backup, or one that a crash interrupted, is no damaged backup in the list or in doctor. */
import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { listBackups, makeBackupFolder, makePartial } from '../../server/operations/backup/backup-folder.ts'
import { cli, startAppliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'
import { folderTest } from '../support/engine.ts'

test('the list omits work in progress, and nothing else', async () => {
  using folder = tempDir('half-made')
  makeBackupFolder(folder.path)
  makePartial(folder.path, 'sightglass-2026-11-21T011010Z-manual.backup')
  mkdirSync(join(folder.path, 'not-a-backup.backup'))
  expect((await listBackups(folder.path)).map(({ name }) => name)).toEqual(['not-a-backup.backup'])
})

folderTest(
  'doctor reports a missing backup, not a damaged one',
  async () => {
    using folder = tempDir('half-made')
    const dataDir = join(folder.path, 'data')
    const appliance = await startAppliance({ dataDir })
    await appliance.stop()
    makeBackupFolder(join(dataDir, 'backups'))
    makePartial(join(dataDir, 'backups'), 'sightglass-2026-11-21T011010Z-manual.backup')
    const { code, stdout } = await cli(['doctor', '--json'], { dataDir })
    const { checks } = JSON.parse(stdout) as { checks: { id: string; status: string }[] }
    expect([code, checks.find(({ id }) => id === 'backup')?.status]).toEqual([0, 'warning'])
  },
  90_000,
)
