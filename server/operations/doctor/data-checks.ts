/** Checks of the database, its keys, the clock and the backups. */
import type { Checkup, SchemaState } from '../../../db/contract/backup.ts'
import { listBackups, readLastRun, type LastRun, type Proof } from '../backup/backup-folder.ts'
import { isoTime } from '../../clock.ts'
import { sizeText } from '../../text/text.ts'
import { failure, ok, warning, type Check } from './check.ts'

const dayMs = 86_400_000
const mebibyte = 1024 * 1024

export function checkSchema({ version, newest, pending }: SchemaState): Check {
  if (version > newest) {
    return failure(
      'schema',
      `The data has schema ${version}, but this release supports up to ${newest}.`,
      'use the release that wrote it, or a newer one',
    )
  }
  if (pending.length > 0) {
    return warning(
      'schema',
      `The data has schema ${version}; this release upgrades it to ${newest}.`,
      'run "sightglass migrate up" or start the server',
    )
  }
  return ok('schema', `The data has schema ${version}, the newest of this release.`)
}

export function checkIntegrity({ problems, sqlite, bytes }: Checkup): Check {
  if (problems === null) {
    return ok(
      'database',
      `SQLite ${sqlite}, ${sizeText(bytes)}: too large for a quick check; every backup reads all of it.`,
    )
  }
  if (problems.length === 0) return ok('database', `SQLite ${sqlite}, ${sizeText(bytes)}, intact.`)
  return failure(
    'database',
    `The database is damaged: ${problems.join('; ')}`,
    'copy the folder, then restore the newest backup',
  )
}

export function checkLog({ walBytes }: Checkup): Check {
  const detail = `Write-ahead log: ${sizeText(walBytes)}.`
  if (walBytes > 1024 * mebibyte)
    return failure('wal', detail, 'a read has been open for too long; restart the server')
  if (walBytes > 256 * mebibyte)
    return warning('wal', detail, 'it should shrink within a minute under less load')
  return ok('wal', detail)
}

const skewMs = 5 * 60_000
const releaseYear = 2026

/** A clock that was set back leaves audit entries from the future. */
export function checkClock({ newestAuditAtMs }: Checkup, now: number): Check {
  if (new Date(now).getUTCFullYear() < releaseYear) {
    return failure(
      'clock',
      `The clock is at ${isoTime(now)}, before this release.`,
      'set the clock; sign-ins, keys and webhooks depend on it',
    )
  }
  if (newestAuditAtMs !== null && newestAuditAtMs > now + skewMs) {
    return warning(
      'clock',
      `The newest audit entry is from ${isoTime(newestAuditAtMs)}, but the clock is at ${isoTime(now)}.`,
      'check whether the clock was set back',
    )
  }
  return ok('clock', `Clock: ${isoTime(now)}.`)
}

export function checkKeys({ keys: { live, exposed, endingSoon, idle } }: Checkup): Check {
  if (exposed > 0) {
    return failure(
      'keys',
      `${exposed} of ${live} keys were sent from a browser and count as leaked.`,
      'rotate them in Settings',
    )
  }
  const findings = [
    ...(endingSoon > 0 ? [`${endingSoon} expire within 7 days`] : []),
    ...(idle > 0 ? [`${idle} unused for 90 days`] : []),
  ]
  if (findings.length === 0) return ok('keys', `${live} active keys, none leaked, expiring or unused.`)
  return warning(
    'keys',
    `${live} active keys: ${findings.join(', ')}.`,
    'list them with "sightglass key list", then rotate or revoke them',
  )
}

const staleDays = 8

/** The newest verified backup, and the result of the newest attempt. */
export async function checkBackups(dir: string, now: number): Promise<Check> {
  const backups = await listBackups(dir)
  const proven = backups.find(({ proof }) => proof !== null)
  const last = readLastRun(dir)
  if (last !== null && !last.ok && !isFollowed(last, proven?.proof ?? null)) {
    return failure(
      'backup',
      `The newest backup failed on ${last.at}: ${last.message}`,
      'sightglass backup create',
    )
  }
  const damaged = backups.find(({ problem }) => problem !== null)
  if (damaged !== undefined) {
    return failure('backup', `${damaged.name} is damaged: ${damaged.problem}`, 'delete it and create another')
  }
  if (proven?.proof == null) {
    return warning('backup', `No verified backup in ${dir}.`, 'sightglass backup create')
  }
  const ahead = backups.find(({ manifest }) => Date.parse(manifest?.createdAt ?? '') > now + skewMs)
  if (ahead !== undefined) {
    return warning(
      'backup',
      `${ahead.name} is dated ${ahead.manifest?.createdAt}, after the current time: the clock was wrong.`,
      'create another with "sightglass backup create", then delete this one',
    )
  }
  const { provenAt } = proven.proof
  const days = Math.floor((now - Date.parse(provenAt)) / dayMs)
  const detail = `${proven.name} was verified ${days === 0 ? 'in the last 24 hours' : `${days} ${days === 1 ? 'day' : 'days'} ago`}.`
  return days >= staleDays ? warning('backup', detail, 'sightglass backup create') : ok('backup', detail)
}

/** Whether a backup was verified after the failure: by number if both have one, because the clock may have moved. */
function isFollowed(last: LastRun, proof: Proof | null): boolean {
  if (proof === null) return false
  if (last.sequence !== undefined && proof.sequence !== undefined) return proof.sequence > last.sequence
  return proof.provenAt >= last.at
}
