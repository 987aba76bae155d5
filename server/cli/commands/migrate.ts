/** `sightglass migrate` upgrades the schema of a data folder; `sightglass accept-loss` continues without lost files. */
import { existsSync, readdirSync } from 'node:fs'
import { openDatabaseAdmin } from '../../../db/open.ts'
import { isoTime, systemClock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { backUpBeforeUpgrade } from '../../operations/backup/create.ts'
import { backupDirOf } from '../../operations/backup/backup-folder.ts'
import { command, type Noun } from '../command.ts'
import { backupOptions, keyRingOf, locationOf, sharedDatabaseOf } from '../options.ts'
import type { SharedDatabase } from '../../../db/contract/admin.ts'
import type { KeyRing } from '../../system/key-ring.ts'
import { columns, minute, printAnswer } from '../print.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry } from '../../audit/entry.ts'
import { acceptLosses, openLosses } from '../../audit/evidence.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { openDataFolder, requireData } from '../../runtime/open-data-folder.ts'
import { toggle } from '../option.ts'

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
        const admin = openDatabaseAdmin(locationOf(values))
        const { version, newest, isNewer, applied, pending } = await admin.schema()
        const state = isNewer ? 'newer' : pending.length > 0 ? 'pending' : 'current'
        const migrations = [
          ...applied.map((migration) => ({
            version: migration.version,
            name: migration.name,
            appliedAt: isoTime(migration.appliedAtMs),
          })),
          ...pending.map((migration) => ({
            version: migration.version,
            name: migration.name,
            appliedAt: null,
          })),
        ]
        const answer = { state, schema: version, newest, backups: admin.backups.by, migrations }
        printAnswer(values, answer, () => {
          const rows = migrations.map((migration) => [
            String(migration.version),
            migration.name,
            migration.appliedAt === null ? 'pending' : minute(migration.appliedAt),
          ])
          return `${columns(['SCHEMA', 'NAME', 'APPLIED'], rows)}\n${stateText(version, newest, isNewer)}`
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
        const admin = openDatabaseAdmin(locationOf(values))
        const { version: from, newest: to, isNewer } = await admin.schema()
        if (from > to) throw new AppError('conflict', stateText(from, to, isNewer))
        await admin.requireUnused()
        const target = {
          dir: backupDirOf(dataDir, values['backup-dir']),
          passphrase: values['backup-passphrase'],
        }
        const isCopied = admin.backups.by === 'copy'
        const backup = isCopied
          ? await backUpBeforeUpgrade(dataDir, systemClock, target, keyRingOf(values))
          : null
        if (backup !== null || (!isCopied && from < to)) await admin.migrate(systemClock.now())
        printAnswer(values, { from, to, backup: backup?.path ?? null }, () =>
          backup === null && (isCopied || from === to)
            ? `The data already has schema ${to}.`
            : `Upgraded the data from schema ${from} to ${to}.${backupText(backup)}`,
        )
        return 0
      },
    }),
  ],
}

function backupText(backup: { path: string } | null): string {
  return backup === null ? '' : ` Backup of the old data: ${backup.path}`
}

function stateText(version: number, newest: number, isNewer: boolean): string {
  if (version > newest && !isNewer)
    return `The data has schema ${version} of a newer release, to which this one may write.`
  if (isNewer) {
    const remedy = 'use the release that wrote it, or a newer one'
    return `The data has schema ${version}, but this release supports up to ${newest}: ${remedy}.`
  }
  return version < newest
    ? `The data has schema ${version}; "sightglass migrate up" or the next start upgrades it to ${newest}.`
    : `The data has schema ${version}, the newest of this release.`
}

export const acceptLoss: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'accept-loss',
      summary: 'continue with a data folder that lost files',
      about: [
        'The server does not start when the database, the log, secret.key or audit entries that audit-heads records are missing, when the log is damaged, or when the key ring lacks the key of the database. It starts, and verify and doctor report it, after evidence of the audit trail was missing: audit-heads, audit-checkpoints or audit-signing.key. This command shows what is missing. With --yes it sets aside the files that describe the lost data, records that in the audit trail, and the next start continues.',
        'Restore a backup instead if you have one.',
      ],
      examples: ['sightglass accept-loss', 'sightglass accept-loss --yes'],
      options: { yes: { ...toggle('accept the loss'), flagOnly: true } },
      async run({ values }) {
        const dataDir = values['data-dir']
        const { missing, evidence } = await lossesIn(dataDir, keyRingOf(values), sharedDatabaseOf(values))
        const loss = [missing, evidenceText(evidence)].filter((text) => text !== null).join('; ')
        if (loss === '') {
          printAnswer(values, { dataDir, missing, evidence }, () => `Nothing is missing in ${dataDir}.`)
          return 0
        }
        if (!values.yes)
          throw new AppError('conflict', loss, {
            hint: 'restore a backup if you have one; to continue without the data: sightglass accept-loss --yes',
          })
        const store = await openDataFolder(dataDir, systemClock, {
          acceptLoss: true,
          keyRing: keyRingOf(values),
          shared: sharedDatabaseOf(values),
        })
        try {
          const actor = { orgId: applianceOrgId, actor: 'cli' }
          const act = { action: 'data.loss_accepted', target: 'data folder', metadata: { missing: loss } }
          if (missing !== null) await store.audit.append(auditEntry(actor, act, systemClock.now()))
          const files = openLosses(await store.audit.evidence()) // also those that this opening recorded
          await acceptLosses(store, { dataDir, files, actor: 'cli' }, systemClock.now())
        } finally {
          await store.close()
        }
        printAnswer(values, { dataDir, missing, evidence }, () =>
          missing === null
            ? `Accepted: ${loss}`
            : [
                `Accepted: ${loss}`,
                `Files that describe the lost data are in a folder set-aside-… in ${dataDir}. Start the server.`,
              ].join('\n'),
        )
        return 0
      },
    }),
  ],
}

interface Losses {
  missing: string | null // why the folder does not open
  evidence: string[] // of the audit trail, which a start created anew
}

function evidenceText(evidence: string[]): string | null {
  if (evidence.length === 0) return null
  const names = evidence.join(', ')
  return `evidence of the audit trail was missing (${names}): audit entries deleted before that cannot be detected`
}

/** Other errors, such as `locked`, are thrown. */
async function lossesIn(
  dataDir: string,
  keyRing: KeyRing | null,
  shared: SharedDatabase | null,
): Promise<Losses> {
  // Opening an empty folder would create a database in it.
  const isEmpty = !existsSync(dataDir) || readdirSync(dataDir).length === 0
  if (shared === null && isEmpty) await requireData(dataDir)
  try {
    const store = await openDataFolder(dataDir, systemClock, { keyRing, shared })
    try {
      return { missing: null, evidence: openLosses(await store.audit.evidence()) }
    } finally {
      await store.close()
    }
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'incomplete') throw error
    return { missing: error.message, evidence: [] }
  }
}
