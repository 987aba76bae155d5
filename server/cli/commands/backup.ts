/**
 * `sightglass backup` creates, lists and verifies backups; `sightglass restore` replaces the data with one, or undoes
 * that.
 */
import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import {
  backupDirOf,
  othersText,
  sortBackups,
  type BackupView,
} from '../../operations/backup/backup-folder.ts'
import { recordBackup, viewJson } from '../../operations/backup/backups.ts'
import { checkBackup, copiesOf } from '../../operations/backup/check.ts'
import { readOwner } from '../../operations/backup/owner.ts'
import { createBackup } from '../../operations/backup/create.ts'
import { textOf, textOrNull } from '../../runtime/work.ts'
import { sizeText } from '../../text/text.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { dataCommand } from '../data-command.ts'
import { backupOptions, keyRingOf, locationOf } from '../options.ts'
import { openDatabaseAdmin } from '../../../db/open.ts'
import { cell, columns, minute, printAnswer } from '../print.ts'
import { systemClock } from '../../clock.ts'
import { planRestore, restoreBackup, undoRestore, type Restored } from '../../operations/backup/restore.ts'
import { toggle } from '../option.ts'

const { 'backup-dir': backupDir } = backupOptions

export const backup: Noun = {
  group: 'Data',
  commands: [
    dataCommand({
      name: 'backup create',
      summary: 'create and verify a backup, also while a server runs',
      about: [
        'Copies the database at one moment, reads the copy from end to end and compares it with the original.',
        'With SIGHTGLASS_BACKUP_PASSPHRASE (or SIGHTGLASS_BACKUP_PASSPHRASE_FILE) the backup is encrypted and contains the key files. Without a passphrase it is a plain SQLite database and does not contain secret.key: keep a copy of that file elsewhere.',
      ],
      examples: [
        'sightglass backup create',
        'sightglass backup create --backup-dir /mnt/nas/sightglass --json',
      ],
      options: backupOptions,
      access: 'write',
      params: ({ values }) => ({
        dataDir: values['data-dir'],
        dir: values['backup-dir'],
        passphrase: values['backup-passphrase'],
      }),
      // The settings of a running server apply where the command line names none.
      async work({ store, clock, keyRing, location: storeLocation, server }, params) {
        const dataDir = textOf(params, 'dataDir')
        const dir = textOrNull(params, 'dir') ?? server?.backups.dir ?? backupDirOf(dataDir, null)
        const passphrase = textOrNull(params, 'passphrase') ?? server?.backups.passphrase ?? null
        const location = server?.backups.location ?? storeLocation ?? dataDir
        const ring = server?.backups.keyRing ?? keyRing?.() ?? null
        const newBackup = await createBackup({
          dataDir,
          location,
          dir,
          reason: 'manual',
          passphrase,
          keyRing: ring,
          clock,
        })
        await recordBackup(store, newBackup, 'cli', clock.now())
        const { path, name, bytes, sha256, events, manifest } = newBackup
        const { createdAt, schema, encryption } = manifest
        return { path, name, bytes, sha256, events, createdAt, schema, encrypted: encryption !== null }
      },
      print: ({ path, bytes, events, sha256 }) =>
        [
          `Created and verified ${cell(path)}`,
          `${cell(events)} events, ${sizeText(Number(bytes))}, SHA-256 ${cell(sha256)}`,
        ].join('\n'),
    }),
    command({
      name: 'backup list',
      summary: 'list the backups, newest first',
      examples: ['sightglass backup list'],
      options: { 'backup-dir': backupDir },
      async run({ values }) {
        const dir = backupDirOf(values['data-dir'], values['backup-dir'])
        const { own: views, others: otherCount } = await sortBackups(
          dir,
          readOwner({ dataDir: values['data-dir'], dir }),
        )
        const backups = views.map((view) => {
          const { checked: _unknownHere, ...json } = viewJson(view, null)
          return { path: view.path, ...json }
        })
        printAnswer(values, { dir, backups, others: otherCount }, () => {
          const listText = views.length === 0 ? `No backups of this appliance in ${dir}.` : list(views)
          return otherCount === 0 ? listText : `${listText}\n${othersText(otherCount)}`
        })
        return 0
      },
    }),
    command({
      name: 'backup verify',
      summary: 'verify a backup: every byte, event count and audit chain',
      arguments: 'PATH',
      about: ['Changes nothing and needs no data folder. Exit code 1 when the backup is damaged.'],
      examples: [
        'sightglass backup verify sightglass-data/backups/sightglass-2026-06-23T031700Z-scheduled.backup',
      ],
      options: backupOptions,
      async run({ words: [backupPath], values }) {
        if (backupPath === undefined)
          throw new UsageError(
            '"sightglass backup verify" needs the path of a backup',
            'sightglass backup list',
          )
        const verdict = await checkBackup(resolve(backupPath), values['backup-passphrase'])
        const { ok, path, bytes, sha256, opened, problems, manifest } = verdict
        const { createdAt, schema, events, version, encryption } = manifest
        const manifestFields = { createdAt, schema, events, version }
        const answer = {
          ok,
          path,
          bytes,
          sha256,
          opened,
          encrypted: encryption !== null,
          ...manifestFields,
          problems,
        }
        printAnswer(values, answer, () => verdictText(verdict))
        return ok ? 0 : 1
      },
    }),
  ],
}

function list(views: BackupView[]): string {
  const rows = views.map(({ name, bytes, manifest, proof, problem }) => [
    name,
    manifest === null ? '' : minute(manifest.createdAt),
    sizeText(bytes),
    manifest === null ? '' : String(manifest.events),
    problem ?? (proof === null ? 'not verified' : `verified ${minute(proof.provenAt)}`),
  ])
  return columns(['NAME', 'CREATED', 'SIZE', 'EVENTS', 'STATE'], rows)
}

function verdictText({
  ok,
  path,
  opened,
  problems,
  manifest,
}: Awaited<ReturnType<typeof checkBackup>>): string {
  if (!ok) return [`${path} is damaged:`, ...problems].join('\n')
  const { createdAt, schema, events, version, encryption } = manifest
  const depth = opened
    ? `Every byte, ${events} events and every audit chain are intact.`
    : 'Every byte is intact. Set SIGHTGLASS_BACKUP_PASSPHRASE to check the contents too.'
  const plain = encryption === null ? '\nNote: the backup is not encrypted, so its origin is not proven.' : ''
  return `${path}\nCreated ${minute(createdAt)} by ${version}, schema ${schema}. ${depth}${plain}`
}

const options = {
  'dry-run': { ...toggle('show what would happen and change nothing'), flagOnly: true },
  yes: { ...toggle('replace existing data'), flagOnly: true },
  undo: { ...toggle('bring back the data that the newest restore replaced'), flagOnly: true },
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
        'Verifies the backup first, and refuses while a server uses the folder. Existing data is moved aside, which needs --yes; --undo brings it back. The audit trail records both.',
        'When a backup passphrase is configured, an unencrypted backup needs --allow-plain.',
        'On the command line, --key-file is a copy of the secret.key that belongs to an unencrypted backup.',
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
  copiesOf(openDatabaseAdmin(locationOf(values)))
  const dataDir = values['data-dir']
  const { broughtBack, replaced } = await undoRestore(dataDir, systemClock)
  printAnswer(values, { dataDir, broughtBack, replaced }, () =>
    [
      'The data from before the restore is in place again.',
      ...(replaced === null ? [] : [`The restored data is in ${replaced}.`]),
    ].join('\n'),
  )
  return 0
}

async function restoreFrom({ words: [backupPath], values, settings }: RestoreInvocation): Promise<number> {
  if (backupPath === undefined)
    throw new UsageError('"sightglass restore" needs the path of a backup', 'sightglass backup list')
  copiesOf(openDatabaseAdmin(locationOf(values)))
  const dataDir = values['data-dir']
  const isFlag = settings.some(({ name, source }) => name === 'key-file' && source === 'flag')
  const request = {
    dataDir,
    path: resolve(backupPath),
    passphrase: values['backup-passphrase'],
    // A configured key ring stays outside of the folder; a file on the command line is copied into it.
    ...(isFlag ? { keyFile: values['key-file'] } : { keyFile: null, keyRing: keyRingOf(values) }),
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
