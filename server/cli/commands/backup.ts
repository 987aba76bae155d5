/** `sightglass backup`: creates, lists and verifies backups. */
import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { backupDirOf, listBackups } from '../../operations/backup/backup-folder.ts'
import { recordBackup, viewJson } from '../../operations/backup/backups.ts'
import { checkBackup } from '../../operations/backup/check.ts'
import { createBackup } from '../../operations/backup/create.ts'
import { textOf, textOrNull } from '../../runtime/work.ts'
import { sizeText } from '../../text/text.ts'
import { command, type Noun } from '../command.ts'
import { dataCommand } from '../data-command.ts'
import { backupOptions } from '../options.ts'
import { cell, columns, minute, printAnswer } from '../print.ts'

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
      async work({ store, clock, server }, params) {
        const dataDir = textOf(params, 'dataDir')
        const dir = textOrNull(params, 'dir') ?? server?.backups.dir ?? backupDirOf(dataDir, null)
        const passphrase = textOrNull(params, 'passphrase') ?? server?.backups.passphrase ?? null
        const made = await createBackup({ dataDir, dir, reason: 'manual', passphrase, clock })
        await recordBackup(store, made, 'cli', clock.now())
        const { path, name, bytes, sha256, events, manifest } = made
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
        const views = await listBackups(dir)
        const backups = views.map((view) => {
          const { checked: _unknownHere, ...json } = viewJson(view, null)
          return { path: view.path, ...json }
        })
        printAnswer(values, { dir, backups }, () =>
          views.length === 0 ? `No backups in ${dir}.` : list(views),
        )
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
      async run({ words: [given], values }) {
        if (given === undefined)
          throw new UsageError(
            '"sightglass backup verify" needs the path of a backup',
            'sightglass backup list',
          )
        const verdict = await checkBackup(resolve(given), values['backup-passphrase'])
        const { ok, path, bytes, sha256, opened, problems, manifest } = verdict
        const { createdAt, schema, events, version, encryption } = manifest
        const about = { createdAt, schema, events, version }
        const answer = { ok, path, bytes, sha256, opened, encrypted: encryption !== null, ...about, problems }
        printAnswer(values, answer, () => verdictText(verdict))
        return ok ? 0 : 1
      },
    }),
  ],
}

function list(views: Awaited<ReturnType<typeof listBackups>>): string {
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
