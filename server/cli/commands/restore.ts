/** `sightglass restore`: replaces the data with a verified backup, or undoes that. */
import { resolve } from 'node:path'
import { systemClock } from '../../clock.ts'
import { UsageError } from '../../errors.ts'
import { planRestore, restoreBackup, undoRestore, type Restored } from '../../operations/backup/restore.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { toggle } from '../option.ts'
import { folderPath } from '../option-values.ts'
import { backupOptions } from '../options.ts'
import { minute, printAnswer } from '../print.ts'

const options = {
  'dry-run': { ...toggle('show what would happen and change nothing'), flagOnly: true },
  yes: { ...toggle('replace existing data'), flagOnly: true },
  undo: { ...toggle('bring back the data that the newest restore replaced'), flagOnly: true },
  'key-file': {
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'copy of the secret.key that belongs to an unencrypted backup',
    flagOnly: true,
  },
  'allow-plain': {
    ...toggle('restore an unencrypted backup although a passphrase is configured'),
    flagOnly: true,
  },
  'backup-passphrase': backupOptions['backup-passphrase'],
} as const

export const restore: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'restore',
      summary: 'replace the data with a backup, or undo that',
      usage: 'PATH [--dry-run] [--yes] [--key-file FILE] [--allow-plain] | restore --undo',
      argumentsMax: 1,
      about: [
        'Verifies the backup first, and refuses while a server holds the folder. Existing data is moved aside, which needs --yes; --undo brings it back. The audit trail records both.',
        'When a backup passphrase is configured, an unencrypted backup needs --allow-plain.',
      ],
      examples: [
        'sightglass restore nightly.backup --dry-run',
        'sightglass restore nightly.backup --data-dir ./other-data',
        'sightglass restore --undo',
      ],
      options,
      run: (invocation) => (invocation.values.undo ? undo(invocation) : restoreFrom(invocation)),
    }),
  ],
}

type RestoreInvocation = Invocation<typeof options>

async function undo({ words, values }: RestoreInvocation): Promise<number> {
  if (words.length > 0)
    throw new UsageError('--undo needs no backup; it restores the replaced data', 'sightglass help restore')
  const dataDir = values['data-dir']
  const { broughtBack, replaced } = await undoRestore(dataDir, systemClock)
  printAnswer(values, { dataDir, broughtBack, replaced }, () =>
    [
      'The data from before the restore is back.',
      ...(replaced === null ? [] : [`The restored data is in ${replaced}.`]),
    ].join('\n'),
  )
  return 0
}

async function restoreFrom({ words: [given], values }: RestoreInvocation): Promise<number> {
  if (given === undefined)
    throw new UsageError('"sightglass restore" needs the path of a backup', 'sightglass backup list')
  const dataDir = values['data-dir']
  const request = {
    dataDir,
    path: resolve(given),
    passphrase: values['backup-passphrase'],
    keyFile: values['key-file'],
    allowPlain: values['allow-plain'],
    clock: systemClock,
  }
  const dryRun = values['dry-run']
  const restored = dryRun
    ? await planRestore(request)
    : await restoreBackup({ ...request, overwrite: values.yes })
  printAnswer(values, { dryRun, path: request.path, dataDir, ...restored }, () =>
    restoredText(restored, dataDir, dryRun),
  )
  return 0
}

function restoredText(
  { createdAt, schema, events, replaced, warnings }: Restored,
  dataDir: string,
  dryRun: boolean,
): string {
  const backup = `the backup of ${minute(createdAt)} (schema ${schema}, ${events} events) to ${dataDir}`
  const lines = [`${dryRun ? 'Would restore' : 'Restored'} ${backup}.`]
  if (replaced !== null) {
    const size = replaced.events === null ? '' : ` (${replaced.events} events)`
    lines.push(
      dryRun
        ? `Would move the existing data${size} to ${replaced.path}.`
        : `The replaced data${size} is in ${replaced.path}; "sightglass restore --undo" brings it back.`,
    )
  }
  if (dryRun) lines.push('Dry run: nothing was changed.')
  return [...lines, ...warnings.map((warning) => `Note: ${warning}`)].join('\n')
}
