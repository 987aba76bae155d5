/** `sightglass migrate`: says what an upgrade would change, or does it, with a backup before. */
import { requireFreeFolder, readSchema } from '../../../db/open.ts'
import { openStore } from '../../../db/open.ts'
import { backUpBeforeUpgrade } from '../../operations/backup/before-upgrade.ts'
import { backupDirOf } from '../../operations/backup/config.ts'
import { isoTime, systemClock } from '../../clock.ts'
import type { Invocation } from '../config.ts'
import { AppError } from '../../errors.ts'
import { minute } from './data-verb.ts'
import { columns, print } from '../print.ts'

/** Exit code 1 for data that a newer release wrote. */
export async function migrateStatus({ values }: Invocation): Promise<number> {
  const { version, newest, applied, pending } = await readSchema(values['data-dir'])
  const state = version > newest ? 'newer' : pending.length > 0 ? 'pending' : 'current'
  const rows = [
    ...applied.map(({ version: number, name, appliedAtMs }) => ({
      number,
      name,
      appliedAt: isoTime(appliedAtMs),
    })),
    ...pending.map(({ version: number, name }) => ({ number, name, appliedAt: null })),
  ]
  if (values.json) {
    const migrations = rows.map(({ number, ...row }) => ({ version: number, ...row }))
    print(JSON.stringify({ state, schema: version, newest, migrations }))
  } else {
    const table = rows.map(({ number, name, appliedAt }) => [
      String(number),
      name,
      appliedAt === null ? 'pending' : minute(appliedAt),
    ])
    print(`${columns(['SCHEMA', 'NAME', 'APPLIED'], table)}\n${stateText(version, newest)}`)
  }
  return state === 'newer' ? 1 : 0
}

function stateText(version: number, newest: number): string {
  if (version > newest) {
    const remedy = 'use the release that wrote it, or a newer one'
    return `The data has schema ${version}, this release knows up to ${newest}: ${remedy}.`
  }
  return version < newest
    ? `The data has schema ${version}; "sightglass migrate up" or the next start brings it to ${newest}.`
    : `The data has schema ${version}, the newest of this release.`
}

/** Refused while a server holds the folder. Doing it again does nothing. */
export async function migrateUp({ values }: Invocation): Promise<number> {
  const dataDir = values['data-dir']
  const { version: before, newest } = await readSchema(dataDir)
  if (before > newest) throw new AppError('conflict', stateText(before, newest))
  await requireFreeFolder(dataDir)
  const wanted = {
    dir: backupDirOf(dataDir, values['backup-dir']),
    passphrase: values['backup-passphrase'],
  }
  const backup = await backUpBeforeUpgrade(dataDir, systemClock, wanted)
  if (backup === null) return say(values.json, { from: before, to: newest, backup: null })
  const store = await openStore({ folder: dataDir, now: systemClock.now() })
  await store.close()
  return say(values.json, { from: before, to: newest, backup: backup.path })
}

function say(json: boolean, answer: { from: number; to: number; backup: string | null }): number {
  const { from, to, backup } = answer
  const text =
    backup === null
      ? `The data has schema ${to} already.`
      : `Brought the data from schema ${from} to ${to}. The backup from before: ${backup}`
  print(json ? JSON.stringify(answer) : text)
  return 0
}
