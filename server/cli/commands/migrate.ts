/** `sightglass migrate`: shows the schema of the data, or upgrades it after a backup. */
import { openStore, readSchema, requireFreeFolder } from '../../../db/open.ts'
import { isoTime, systemClock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { backUpBeforeUpgrade } from '../../operations/backup/create.ts'
import { backupDirOf } from '../../operations/backup/backup-folder.ts'
import { command, type Noun } from '../command.ts'
import { backupOptions } from '../options.ts'
import { columns, minute, printAnswer } from '../print.ts'

export const migrate: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'migrate status',
      summary: 'show the schema of the data and pending upgrades',
      about: ['Changes nothing; a server may run. Exit code 1 for data of a newer release.'],
      examples: ['sightglass migrate status --json'],
      options: {},
      async run({ values }) {
        const { version, newest, applied, pending } = await readSchema(values['data-dir'])
        const state = version > newest ? 'newer' : pending.length > 0 ? 'pending' : 'current'
        const migrations = [
          ...applied.map((each) => ({
            version: each.version,
            name: each.name,
            appliedAt: isoTime(each.appliedAtMs),
          })),
          ...pending.map((each) => ({ version: each.version, name: each.name, appliedAt: null })),
        ]
        printAnswer(values, { state, schema: version, newest, migrations }, () => {
          const rows = migrations.map((each) => [
            String(each.version),
            each.name,
            each.appliedAt === null ? 'pending' : minute(each.appliedAt),
          ])
          return `${columns(['SCHEMA', 'NAME', 'APPLIED'], rows)}\n${stateText(version, newest)}`
        })
        return state === 'newer' ? 1 : 0
      },
    }),
    command({
      name: 'migrate up',
      summary: 'upgrade the data to the schema of this release, after a backup',
      about: ['serve does the same when it starts. All changes are one transaction.'],
      examples: ['sightglass migrate up'],
      options: backupOptions,
      async run({ values }) {
        const dataDir = values['data-dir']
        const { version: from, newest: to } = await readSchema(dataDir)
        if (from > to) throw new AppError('conflict', stateText(from, to))
        await requireFreeFolder(dataDir)
        const backup = await backUpBeforeUpgrade(dataDir, systemClock, {
          dir: backupDirOf(dataDir, values['backup-dir']),
          passphrase: values['backup-passphrase'],
        })
        if (backup !== null) await (await openStore({ folder: dataDir, now: systemClock.now() })).close()
        printAnswer(values, { from, to, backup: backup?.path ?? null }, () =>
          backup === null
            ? `The data already has schema ${to}.`
            : `Upgraded the data from schema ${from} to ${to}. Backup of the old data: ${backup.path}`,
        )
        return 0
      },
    }),
  ],
}

function stateText(version: number, newest: number): string {
  if (version > newest) {
    const remedy = 'use the release that wrote it, or a newer one'
    return `The data has schema ${version}, but this release supports up to ${newest}: ${remedy}.`
  }
  return version < newest
    ? `The data has schema ${version}; "sightglass migrate up" or the next start upgrades it to ${newest}.`
    : `The data has schema ${version}, the newest of this release.`
}
