/** `sightglass backup`: `create` runs where the data folder is held; `list` and `verify` only read. */
import { resolve } from 'node:path'
import type { Json } from '../../../db/contract/store.ts'
import { listBackups } from '../../operations/backup/backup-folder.ts'
import { recordBackup } from '../../operations/backup/backups.ts'
import { checkBackup } from '../../operations/backup/check.ts'
import { backupDirOf } from '../../operations/backup/config.ts'
import { createBackup } from '../../operations/backup/create.ts'
import { viewJson } from '../../operations/backup/view.ts'
import type { Invocation } from '../config.ts'
import { UsageError } from '../../errors.ts'
import { cell, minute, type DataVerb } from './data-verb.ts'
import { textOf, textOrNull, type Params } from '../../runtime/params.ts'
import { columns, print } from '../print.ts'
import { sizeText } from '../../text/text.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export const backupCreateVerb: DataVerb = {
  writes: true,
  makesFolder: false, // without data there is nothing to back up
  params: ({ values }) => ({
    dataDir: values['data-dir'],
    dir: values['backup-dir'],
    passphrase: values['backup-passphrase'],
  }),
  text: ({ path, bytes, events, sha256 }) =>
    `Made and proven: ${cell(path)}\n${cell(events)} events, ${sizeText(Number(bytes))}, SHA-256 ${cell(sha256)}`,
}

/** A server's own settings stand in for what the command line does not say. */
export async function createBackupNow({ store, clock, backups }: VerbContext, params: Params): Promise<Json> {
  const dataDir = textOf(params, 'dataDir')
  const dir = textOrNull(params, 'dir') ?? backups?.dir ?? backupDirOf(dataDir, null)
  const passphrase = textOrNull(params, 'passphrase') ?? backups?.passphrase ?? null
  const made = await createBackup({ dataDir, dir, reason: 'manual', passphrase, clock })
  await recordBackup(store, made, 'cli', clock.now())
  const { path, name, bytes, sha256, events, manifest } = made
  const { createdAt, schema, encryption } = manifest
  return { path, name, bytes, sha256, events, createdAt, schema, encrypted: encryption !== null }
}

export async function backupList({ values }: Invocation): Promise<number> {
  const dir = backupDirOf(values['data-dir'], values['backup-dir'])
  const views = await listBackups(dir)
  if (values.json) {
    const backups = views.map((view) => {
      const { checked: _unknownHere, ...json } = viewJson(view, null)
      return { path: view.path, ...json }
    })
    print(JSON.stringify({ dir, backups }))
    return 0
  }
  const rows = views.map(({ name, bytes, manifest, proof, problem }) => [
    name,
    manifest === null ? '' : minute(manifest.createdAt),
    sizeText(bytes),
    manifest === null ? '' : String(manifest.events),
    problem ?? (proof === null ? 'not proven here' : `proven ${minute(proof.provenAt)}`),
  ])
  print(
    rows.length === 0 ? `No backups in ${dir}.` : columns(['NAME', 'MADE', 'SIZE', 'EVENTS', 'STATE'], rows),
  )
  return 0
}

/** Exit code 1 when anything is not as it was written. */
export async function backupVerify({ words, values }: Invocation): Promise<number> {
  const [given] = words
  if (given === undefined) throw new UsageError('"sightglass backup verify" needs the path of a backup')
  const verdict = await checkBackup(resolve(given), values['backup-passphrase'])
  const { ok, path, bytes, sha256, opened, problems, manifest } = verdict
  const { createdAt, schema, events, version } = manifest
  const encrypted = manifest.encryption !== null
  if (values.json) {
    print(
      JSON.stringify({
        ok,
        path,
        bytes,
        sha256,
        opened,
        encrypted,
        createdAt,
        schema,
        events,
        version,
        problems,
      }),
    )
  } else if (!ok) print([`${path} is NOT sound:`, ...problems].join('\n'))
  else {
    const depth = opened
      ? `Sound: every byte, ${events} events, every audit chain.`
      : 'Every byte is as it was written; to open it, set SIGHTGLASS_BACKUP_PASSPHRASE.'
    const plain = encrypted ? '' : '\nNote: it is not encrypted, so nothing proves who made it.'
    print(`${path}\nMade ${minute(createdAt)} by ${version}, schema ${schema}. ${depth}${plain}`)
  }
  return ok ? 0 : 1
}
