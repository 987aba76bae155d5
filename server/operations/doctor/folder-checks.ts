/** Checks of the data folder: its disk and permissions, the database, its keys, the clock and the backups. */
import { accessSync, constants, existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { asideFolders } from '../backup/restore.ts'
import { openLosses } from '../../audit/evidence.ts'
import { sizeText } from '../../text/text.ts'
import { failure, ok, warning, type Check } from './check.ts'
import {
  othersText,
  readLastRun,
  sortBackups,
  type BackupView,
  type LastRun,
  type Proof,
} from '../backup/backup-folder.ts'
import { anyOwner } from '../backup/owner.ts'
import { isoTime } from '../../clock.ts'
import type { Checkup, SchemaState } from '../../../db/contract/operations.ts'
import { dayMs, mebibyte } from '../../../db/contract/units.ts'

export function checkFolder(dataDir: string): Check {
  const stat = statSync(dataDir)
  const mode = stat.mode & 0o777
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EROFS')
      return warning(
        'folder',
        `${dataDir} is on a read-only file system: the data can be read and verified, but no server can start.`,
        'mount it read-write before you start a server',
      )
    return failure(
      'folder',
      `This user cannot write to ${dataDir}.`,
      'run as its owner, or change its owner with chown',
    )
  }
  if ((mode & 0o077) !== 0) {
    return failure(
      'folder',
      `Other users can access ${dataDir} (mode ${mode.toString(8)}).`,
      `chmod 700 ${dataDir}`,
    )
  }
  return ok('folder', `Only the owner can access ${dataDir}.`)
}

/** No file in the folder may be accessible to others, whatever the mode of the folder. */
export function checkFiles(dataDir: string): Check {
  const open = readdirSync(dataDir).filter((name) => {
    const stat = statSync(join(dataDir, name), { throwIfNoEntry: false })
    return stat !== undefined && (stat.mode & 0o077) !== 0
  })
  if (open.length === 0) return ok('files', 'Only the owner can access its files.')
  return warning('files', `Other users can access ${open.slice(0, 5).join(', ')}.`, `chmod -R go= ${dataDir}`)
}

const remoteTypes: { readonly [type: number]: string } = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x65735546: 'FUSE',
}
const temporaryTypes: { readonly [type: number]: string } = { 0x01021994: 'tmpfs', 0x794c7630: 'overlayfs' }

/** Locks and shared memory need a local disk, and evidence needs a persistent one. */
export async function checkFileSystem(dataDir: string): Promise<Check> {
  const type = (await statfs(dataDir)).type >>> 0
  const far = remoteTypes[type]
  if (far !== undefined) {
    return failure(
      'file-system',
      `The data is on ${far}, where locks and fsync are not reliable.`,
      'move the data folder to a local disk',
    )
  }
  const temporaryType = temporaryTypes[type]
  if (temporaryType !== undefined) {
    return warning(
      'file-system',
      `The data is on ${temporaryType}: it is lost with the machine or the container.`,
      'move the data folder to a disk or a volume',
    )
  }
  return ok('file-system', `Local file system (type 0x${type.toString(16)}).`)
}

const soonDays = 14
const farDays = 3_650
const forecastEventsMin = 10_000

/** Forecast: events of the last 7 days times the average size of an event on disk. */
export async function checkDisk(
  dataDir: string,
  floorBytes: number,
  checkup: Checkup | null,
): Promise<Check> {
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const space = `${sizeText(free)} free`
  if (free < floorBytes) {
    return failure(
      'disk',
      `${space}, below the minimum of ${sizeText(floorBytes)}: ingest is refused.`,
      'free disk space or shorten retention',
    )
  }
  // With few events the fixed size of the database would distort the forecast.
  if (checkup === null || checkup.eventsLastWeek === 0 || checkup.facts.events < forecastEventsMin) {
    return ok('disk', `${space}.`)
  }
  const bytesPerDay = ((checkup.bytes / checkup.facts.events) * checkup.eventsLastWeek) / 7
  const days = Math.floor((free - floorBytes) / bytesPerDay)
  const pace = `at the rate of the last 7 days (${sizeText(bytesPerDay)} per day)`
  const fillTime = days > farDays ? 'in more than 10 years' : `in ${days} days`
  const forecast = `${space}; ${pace} the disk fills up ${fillTime}.`
  return days < soonDays
    ? warning('disk', forecast, 'add disk space or shorten retention')
    : ok('disk', forecast)
}

/** Data that a restore moved aside uses disk space until somebody deletes it. */
export function checkAside(dataDir: string): Check | null {
  const [newest, ...older] = asideFolders(dataDir)
  if (newest === undefined) return null
  const folders = [newest, ...older]
  const names = folders.length === 1 ? newest : `${newest} and ${older.length} more`
  return warning(
    'replaced-data',
    `A restore moved the previous data aside: ${names}.`,
    'delete it when you no longer need it; until then "sightglass restore --undo" brings it back',
  )
}

const openFilesMin = 1_024

/** Each connection is an open file. */
export function checkLimits(): Check | null {
  if (!existsSync('/proc/self/limits')) return null
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  if (soft === undefined) return null
  return Number(soft) < openFilesMin
    ? warning(
        'limits',
        `The limit of open files is ${soft}.`,
        'raise LimitNOFILE in the unit, or ulimit -n, to at least 1024',
      )
    : ok('limits', `Limit of open files: ${Number(soft).toLocaleString('en')}.`)
}

export function checkSchema({ version, newest, isNewer, pending }: SchemaState): Check {
  if (isNewer) {
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
  if (version > newest)
    return ok('schema', `The data has schema ${version} of a newer release, to which this one may write.`)
  return ok('schema', `The data has schema ${version}, the newest of this release.`)
}

/** Evidence beside the audit chains that a start found missing and created anew. */
export function checkEvidenceOfTrail({ auditEvidence }: Checkup): Check {
  const files = openLosses(auditEvidence)
  if (files.length === 0) return ok('audit-evidence', 'No evidence of the audit trail is missing.')
  return failure(
    'audit-evidence',
    `Evidence of the audit trail was missing: ${files.join(', ')}. Entries deleted before that cannot be detected.`,
    'compare the trail with an export or with the logged checkpoints, then run sightglass accept-loss',
  )
}

export function checkIntegrity({ problems, findings, engine, bytes }: Checkup): Check {
  if (findings.length > 0)
    return ok('database', `${engine}, ${sizeText(bytes)}. "sightglass verify" reads all of it.`)
  if (problems === null) {
    return ok(
      'database',
      `${engine}, ${sizeText(bytes)}: too large for a quick check; every backup reads all of it.`,
    )
  }
  if (problems.length === 0) return ok('database', `${engine}, ${sizeText(bytes)}, intact.`)
  return failure(
    'database',
    `The database is damaged: ${problems.join('; ')}`,
    'copy the folder, then restore the newest backup',
  )
}

export function checkLog({ logBytes }: Checkup): Check | null {
  if (logBytes === null) return null
  const detail = `Write-ahead log: ${sizeText(logBytes)}.`
  if (logBytes > 1024 * mebibyte)
    return failure('wal', detail, 'a read has been open for too long; restart the server')
  if (logBytes > 256 * mebibyte)
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

/** The newest verified backup of this appliance, and the result of the newest attempt. */
export async function checkBackups(dir: string, now: number, owner = anyOwner): Promise<Check> {
  const { own: ownBackups, others: otherCount } = await sortBackups(dir, owner)
  const check = checkOwnBackups(dir, { backups: ownBackups, last: readLastRun(dir, owner), now })
  return otherCount === 0 ? check : { ...check, detail: `${check.detail} ${othersText(otherCount)}` }
}

interface OwnBackups {
  backups: BackupView[]
  last: LastRun | null
  now: number
}

function checkOwnBackups(dir: string, { backups, last, now }: OwnBackups): Check {
  const proven = backups.find(({ proof }) => proof !== null)
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
