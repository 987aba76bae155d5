/** Runs every check of `doctor`, the cheap ones first. Ends early when the folder has no data. */
import { existsSync } from 'node:fs'
import { StoreError } from '../../../db/contract/errors.ts'
import { openDatabaseAdmin } from '../../../db/open.ts'
import { checkKeyFile, checkNodes, checkOtherTools } from './shared-checks.ts'
import type { Checkup } from '../../../db/contract/operations.ts'
import type { DatabaseAdmin } from '../../../db/contract/admin.ts'
import { isoTime } from '../../clock.ts'
import { version } from '../../system/version.ts'
import { failure, ok, warning, type Check, type Diagnosis } from './check.ts'
import {
  checkAside,
  checkBackups,
  checkClock,
  checkDisk,
  checkEvidenceOfTrail,
  checkFileSystem,
  checkFiles,
  checkFolder,
  checkIntegrity,
  checkKeys,
  checkLimits,
  checkLog,
  checkSchema,
} from './folder-checks.ts'
import { readOwner } from '../backup/owner.ts'
import { evidenceOf } from '../../evidence/evidence.ts'
import { evidenceView } from '../../evidence/view.ts'
import { type Diagnosed, checkOptions, checkProxies, checkReach } from './options.ts'

interface DiagnosisOptions {
  config: Diagnosed
  location: string // of the database
  now: number
  live: Check[] // of the running server
  url: string | null // where it listens; null without one
}

export async function diagnose({ config, location, now, live, url }: DiagnosisOptions): Promise<Diagnosis> {
  const { dataDir, keyFile, backup, hasTls } = config
  const baseFields = { at: isoTime(now), version }
  const admin = openDatabaseAdmin(location)
  const isFolder = admin.backups.by === 'copy'
  if (isFolder && !(await admin.hasData())) {
    const check = failure('folder', `There is no data in ${dataDir}.`, 'set the folder with --data-dir')
    return { ok: false, ...baseFields, checks: [check] }
  }
  const databaseReport = await database(admin, now)
  const checks: (Check | null)[] = [
    ...(existsSync(dataDir)
      ? await folderChecks(config, isFolder ? databaseReport.checkup : null, isFolder)
      : []),
    checkLimits(),
    ...databaseReport.checks,
    checkKeyFile(keyFile),
    databaseReport.checkup === null ? null : await checkEvidence(databaseReport.checkup, config, now),
    admin.backups.by === 'copy'
      ? await checkBackups(backup.dir, now, readOwner({ dataDir, dir: backup.dir }))
      : checkOtherTools(admin.backups),
    checkReach(config, hasTls),
    checkProxies(config, hasTls),
    ...checkOptions(config, url).filter(({ id }) => isFolder || id !== 'backup-schedule'),
    ...live,
  ]
  const allChecks = checks.filter((check) => check !== null)
  return { ok: allChecks.every(({ status }) => status !== 'failure'), ...baseFields, checks: allChecks }
}

/** Checks of the data folder. A node of a shared database keeps little in it. */
async function folderChecks(
  { dataDir, diskFloorBytes }: Diagnosed,
  checkup: Checkup | null,
  isFolder: boolean,
): Promise<(Check | null)[]> {
  return [
    checkFolder(dataDir),
    checkFiles(dataDir),
    isFolder ? await checkFileSystem(dataDir) : null,
    await checkDisk(dataDir, diskFloorBytes, checkup),
    checkAside(dataDir),
  ]
}

async function database(admin: DatabaseAdmin, now: number) {
  try {
    const schema = checkSchema(await admin.schema())
    if (schema.status === 'failure') return { checkup: null, checks: [schema] }
    const checkup = await admin.checkUp(now)
    const checks = [
      schema,
      checkIntegrity(checkup),
      checkLog(checkup),
      checkEvidenceOfTrail(checkup),
      checkClock(checkup, now),
      checkKeys(checkup),
      ...checkup.findings,
      ...(checkup.findings.length > 0 ? [checkNodes(checkup)] : []),
    ]
    return { checkup, checks }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const check = failure('database', `The database cannot be read: ${reason}`, remedyOf(error, admin))
    return { checkup: null, checks: [check] }
  }
}

function remedyOf(error: unknown, { backups }: DatabaseAdmin): string {
  if (error instanceof StoreError && error.kind === 'conflict') return 'complete what was begun, or undo it'
  return backups.by === 'copy'
    ? 'copy the folder, then restore the newest backup'
    : 'check --database, the network, and the log of the database'
}

/** The age of the lists that claims of agents are judged by. */
export async function checkEvidence(
  { evidence }: Pick<Checkup, 'evidence'>,
  { evidenceMaxAgeDays }: Pick<Diagnosed, 'evidenceMaxAgeDays'>,
  now: number,
): Promise<Check> {
  const view = evidenceView(await evidenceOf(evidence), now, evidenceMaxAgeDays)
  const update = 'store a newer pack with "sightglass evidence update FILE"'
  if (view.problem !== null)
    return failure('evidence', `${view.problem} The pack of this release is in force.`, update)
  const old = view.lists.filter((list) => list.old && list.kind === 'networks').length
  const age = `the oldest was last seen ${view.ageDays} days ago`
  if (old === 0)
    return ok('evidence', `${view.networks.toLocaleString('en')} networks prove who agents are; ${age}.`)
  const detail = `${old} address lists are older than ${evidenceMaxAgeDays} days (${age}), so they contradict no claim.`
  return warning('evidence', detail, update)
}

export function unreachable(reason: string): Check {
  return warning('server', `A server holds the folder but does not answer: ${reason}.`, 'see its log')
}
