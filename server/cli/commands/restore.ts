/** `sightglass restore`: proves a backup and puts it in the place of a data folder's database, or takes that back. */
import { resolve } from 'node:path'
import { planRestore, restoreBackup, undoRestore, type Restored } from '../../operations/backup/restore.ts'
import { systemClock } from '../../clock.ts'
import type { Invocation } from '../config.ts'
import { UsageError } from '../../errors.ts'
import { minute } from './data-verb.ts'
import { print } from '../print.ts'

export async function restore({ words, values }: Invocation): Promise<number> {
  const [given] = words
  const dataDir = values['data-dir']
  if (values.undo) {
    if (given !== undefined)
      throw new UsageError('--undo takes no backup: it brings back what was there before')
    const { broughtBack, replaced } = await undoRestore(dataDir, systemClock)
    const answer = { dataDir, broughtBack, replaced }
    const aside = replaced === null ? '' : `\nWhat the restore had put there is in ${replaced}.`
    print(values.json ? JSON.stringify(answer) : `Brought back what was there before the restore.${aside}`)
    return 0
  }
  if (given === undefined)
    throw new UsageError('"sightglass restore" needs the path of a backup', 'sightglass backup list')
  const wanted = {
    dataDir,
    path: resolve(given),
    passphrase: values['backup-passphrase'],
    keyFile: values['key-file'],
    allowPlain: values['allow-plain'],
    clock: systemClock,
  }
  const dryRun = values['dry-run']
  const restored = dryRun
    ? await planRestore(wanted)
    : await restoreBackup({ ...wanted, overwrite: values.yes })
  print(
    values.json
      ? JSON.stringify({ dryRun, path: wanted.path, dataDir, ...restored })
      : restoredText(restored, dataDir, dryRun),
  )
  return 0
}

function restoredText(
  { createdAt, schema, events, replaced, warnings }: Restored,
  dataDir: string,
  dryRun: boolean,
): string {
  const lines = [
    `${dryRun ? 'Would restore' : 'Restored'} the backup of ${minute(createdAt)} (schema ${schema}, ${events} events) into ${dataDir}.`,
  ]
  if (replaced !== null) {
    const held = replaced.events === null ? '' : ` (${replaced.events} events)`
    lines.push(
      dryRun
        ? `What is there now${held} would move to ${replaced.path}.`
        : `What was there${held} is in ${replaced.path}; "sightglass restore --undo" brings it back.`,
    )
  }
  if (dryRun) lines.push('Nothing was changed.')
  return [...lines, ...warnings.map((warning) => `Note: ${warning}`)].join('\n')
}
