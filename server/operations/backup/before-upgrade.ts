/** Creates a backup before migrations run, so that an upgrade can be reverted. */
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
 * Null when there is nothing to migrate. Throws when the backup cannot be created, or when `target` is null and the
 * data is older than this release, because only a server start or `migrate up` upgrades. Nothing is changed then.
 */
export async function backUpBeforeUpgrade(
  dataDir: string,
  clock: Clock,
  target: UpgradeBackup | null,
): Promise<MadeBackup | null> {
  if (!existsSync(join(dataDir, 'sightglass.db'))) return null
  // Opening the database reports an unreadable file with a better message.
  const schema = await readSchema(dataDir).catch(() => null)
  if (schema === null || schema.version === 0 || schema.pending.length === 0) return null
  const { version, newest } = schema
  if (target === null) {
    throw new AppError('conflict', `The data has schema ${version}; this release requires ${newest}.`, {
      hint: 'run sightglass migrate up, or start the server: both create a backup and migrate the data',
    })
  }
  await requireFreeFolder(dataDir)
  const { dir, passphrase } = target
  try {
    return await createBackup({ dataDir, dir, passphrase, clock, reason: 'upgrade' })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new AppError(
      'conflict',
      `Schema ${version} was not migrated to ${newest} because no backup could be created: ${why}`,
      {
        hint: 'nothing was changed; the previous release still works with this data',
      },
    )
  }
}
