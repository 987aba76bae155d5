/**
 * Backups of a running server: scheduled or on request, one at a time in the background, and how responses show them.
 */
import { openDatabaseAdmin } from '../../../db/open.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import {
  newestSequence,
  ownBackupPath,
  pruneBackups,
  readLastRun,
  removeBackup,
  sortBackups,
  writeLastRun,
  type BackupConfig,
  type BackupView,
  type LastRun,
} from './backup-folder.ts'
import { checkBackup } from './check.ts'
import { createBackup, type MadeBackup } from './create.ts'
import { readOwner } from './owner.ts'
import { Cron } from 'croner'
import type { Store } from '../../../db/contract/store.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'
import type { Log } from '../../log.ts'
import type { KeyRing } from '../../system/key-ring.ts'
import type { BackupReason } from './manifest.ts'

export interface Backups {
  /** Starts a backup in the background; throws `conflict` while another runs. */
  start(reason: BackupReason, actor: string): void
  /** The scheduled backup; skipped while another runs. */
  startScheduled(): void
  list(): Promise<BackupsJson>
  /** Starts verifying a backup in the background; the result appears in the list. */
  check(name: string): Promise<void>
  remove(name: string, actor: string): Promise<void>
  /** The path of a backup to download; the audit entry is written before the first byte. */
  handOut(name: string, actor: string): Promise<string>
  /** Waits for the running work, at most `ms`. */
  settle(timeoutMs: number): Promise<void>
}

interface BackupServices {
  config: BackupConfig
  dataDir: string
  keyRing?: KeyRing | null
  /** Of the database; by default the data folder. */
  location?: string
  store: Pick<Store, 'audit'>
  clock: Clock
  clockGuard: Pick<ClockGuard, 'hold'>
  log: Log
}

export function makeBackups(services: BackupServices): Backups {
  const { config, store, clock } = services
  const { backups: databaseBackups } = openDatabaseAdmin(services.location ?? services.dataDir)
  const { dir } = config
  const owner = () => readOwner({ dataDir: services.dataDir, dir })
  let running: { startedAt: string; reason: BackupReason; work: Promise<void> } | null = null
  let lastRun: LastRun | null = null
  let checking: { name: string; work: Promise<void> } | null = null
  const checked = new Map<string, Checked>()

  function start(reason: BackupReason, actor: string): void {
    if (running !== null) throw new AppError('conflict', 'A backup is already running.')
    const work = runOnce(services, reason, actor)
      .then((ended) => void (lastRun = ended))
      .finally(() => (running = null))
    running = { startedAt: isoTime(clock.now()), reason, work }
  }

  return {
    start,
    startScheduled() {
      if (running === null) start('scheduled', 'system')
    },
    async list() {
      // Before the folder is read, so that the list has what an ended run has made.
      const state = {
        running: running && { startedAt: running.startedAt, reason: running.reason },
        checking: checking?.name ?? null,
        lastRun: lastRun ?? readLastRun(dir, owner()),
      }
      const { own: ownBackups, others: otherCount } = await sortBackups(dir, owner())
      return {
        backups: ownBackups.map((view) => viewJson(view, checked.get(view.name) ?? null)),
        others: otherCount,
        schedule: scheduleView(config),
        ...state,
        elsewhere: databaseBackups.by === 'tools' ? databaseBackups.backUp : null,
      }
    },
    async check(name) {
      const path = await ownBackupPath(dir, name, owner())
      if (checking !== null) throw new AppError('conflict', 'Another verification is already running.')
      const work = prove(services, path)
        .then((result) => void checked.set(name, result))
        .finally(() => (checking = null))
      checking = { name, work }
    },
    async remove(name, actor) {
      const path = await ownBackupPath(dir, name, owner())
      await store.audit.append(
        auditEntry(operating(actor), { action: 'backup.deleted', target: name }, clock.now()),
      )
      await removeBackup(path)
      checked.delete(name)
    },
    async handOut(name, actor) {
      const path = await ownBackupPath(dir, name, owner())
      await store.audit.append(
        auditEntry(operating(actor), { action: 'backup.downloaded', target: name }, clock.now()),
      )
      return path
    },
    async settle(timeoutMs) {
      const work = Promise.allSettled([running?.work, checking?.work])
      await Promise.race([work, Bun.sleep(timeoutMs)])
    },
  }
}

/** Never rejects: the result is stored beside the backups and logged. */
async function runOnce(
  { config, dataDir, location = dataDir, keyRing = null, store, clock, clockGuard, log }: BackupServices,
  reason: BackupReason,
  actor: string,
): Promise<LastRun> {
  const { dir, passphrase, keep } = config
  const startMs = performance.now()
  try {
    const backup = await createBackup({ dataDir, location, dir, reason, passphrase, keyRing, clock })
    await recordBackup(store, backup, actor, clock.now())
    const owner = readOwner({ dataDir, dir })
    if (reason === 'scheduled' && clockGuard.hold() === null)
      await pruneBackups(dir, keep, backup.name, owner)
    const { name, bytes, sha256, events } = backup
    const durationMs = Math.round(performance.now() - startMs)
    log.info('backup_made', { name, bytes, sha256, events, durationMs })
    const last = { at: isoTime(clock.now()), ok: true, name, message: 'created and verified' }
    writeLastRun(dir, last, owner)
    return last
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    log.error('backup_failed', { reason, message })
    const owner = readOwner({ dataDir, dir })
    const sequence = await newestSequence(dir, owner).catch(() => 0)
    const last = { at: isoTime(clock.now()), ok: false, name: null, message, sequence }
    try {
      writeLastRun(dir, last, owner)
    } catch {
      // Already logged; the disk may be the cause.
    }
    return last
  }
}

async function prove({ config, clock }: BackupServices, path: string): Promise<Checked> {
  const checkedAt = isoTime(clock.now())
  try {
    const { ok, problems } = await checkBackup(path, config.passphrase)
    return { at: checkedAt, ok, problems }
  } catch (error) {
    return { at: checkedAt, ok: false, problems: [error instanceof Error ? error.message : String(error)] }
  }
}

/** Acts on the whole appliance belong to no organization (contract §8). */
function operating(actor: string): Actor {
  return { orgId: applianceOrgId, actor }
}

export async function recordBackup(
  store: Pick<Store, 'audit'>,
  { name, path, bytes, sha256, events, manifest }: MadeBackup,
  actor: string,
  now: number,
): Promise<void> {
  const encrypted = manifest.encryption !== null
  const metadata = { bytes, sha256, events, reason: manifest.reason, encrypted }
  try {
    await store.audit.append(
      auditEntry(operating(actor), { action: 'backup.created', target: name, metadata }, now),
    )
  } catch (error) {
    await removeBackup(path) // only after its audit entry
    throw error
  }
}

interface Checked {
  at: string
  ok: boolean
  problems: string[]
}

export interface BackupJson {
  name: string
  bytes: number
  createdAt: string | null // null, like the fields below, when the file is corrupt
  reason: string | null
  version: string | null
  schema: number | null
  events: number | null
  encrypted: boolean | null
  problem: string | null
  sha256: string | null // at creation
  provenAt: string | null
  checked: Checked | null // since the server started
}

export interface BackupsJson {
  backups: BackupJson[]
  /** Backups in the folder of other appliances, or that cannot be proven to be of this one. They are left alone. */
  others: number
  schedule: { cron: string | null; keep: number; encrypted: boolean; nextAt: string | null }
  running: { startedAt: string; reason: string } | null
  checking: string | null
  lastRun: LastRun | null
  /** What to run for a backup when other tools make it; null when this server does. */
  elsewhere: string | null
}

export function viewJson(
  { name, bytes, manifest, problem, proof }: BackupView,
  checked: Checked | null,
): BackupJson {
  return {
    name,
    bytes,
    createdAt: manifest?.createdAt ?? null,
    reason: manifest?.reason ?? null,
    version: manifest?.version ?? null,
    schema: manifest?.schema ?? null,
    events: manifest?.events ?? null,
    encrypted: manifest === null ? null : manifest.encryption !== null,
    problem,
    sha256: proof?.sha256 ?? null,
    provenAt: proof?.provenAt ?? null,
    checked,
  }
}

function scheduleView({ cron, keep, passphrase }: BackupConfig): BackupsJson['schedule'] {
  const next = cron === null ? null : new Cron(cron, { paused: true }).nextRun()
  return { cron, keep, encrypted: passphrase !== null, nextAt: next?.toISOString() ?? null }
}
