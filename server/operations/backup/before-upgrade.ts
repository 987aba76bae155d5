/** Makes a backup before migrations run, so that an upgrade can always be taken back. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readSchema, requireFreeFolder } from '../../../db/open.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../clock.ts'
import { createBackup, type MadeBackup } from './create.ts'

export interface UpgradeBackup {
  dir: string
  passphrase: string | null
}

/**
 * Null when there is nothing to migrate. Throws when the backup cannot be made, or when `wanted` is null and the data
 * is older than this release: only who starts the appliance or asks for it upgrades. Nothing was changed then.
 */
export async function backUpBeforeUpgrade(
  dataDir: string,
  clock: Clock,
  wanted: UpgradeBackup | null,
): Promise<MadeBackup | null> {
  if (!existsSync(join(dataDir, 'sightglass.db'))) return null
  // What cannot be read at all is refused by the opening itself, with the better words.
  const schema = await readSchema(dataDir).catch(() => null)
  if (schema === null || schema.version === 0 || schema.pending.length === 0) return null
  const { version, newest } = schema
  if (wanted === null) {
    throw new AppError('conflict', `The data has schema ${version}, this release works with ${newest}.`, {
      hint: 'sightglass migrate up, or start the server: both make a backup and bring the data up',
    })
  }
  await requireFreeFolder(dataDir)
  const { dir, passphrase } = wanted
  try {
    return await createBackup({ dataDir, dir, passphrase, clock, reason: 'upgrade' })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new AppError(
      'conflict',
      `Schema ${version} was not brought to ${newest}, for no backup could be made: ${why}`,
      {
        hint: 'nothing was changed; the release that wrote the data goes on working',
      },
    )
  }
}
