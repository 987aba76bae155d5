/** The schedule of every job. */
import type { Store } from '../db/contract/store.ts'
import { trimAll, writeCheckpoints } from './audit/checkpoints.ts'
import type { SigningKey } from './audit/signing.ts'
import type { Backups } from './operations/backup/backups.ts'
import type { DiskWatch, FsyncProbe } from './operations/health/disk.ts'
import type { MemoryWatch } from './operations/health/memory.ts'
import type { ClockGuard } from './system/clock-guard.ts'
import type { Job } from './system/scheduler.ts'
import type { IngestCounts } from './ingest/counts.ts'
import type { LastUses } from './identity/keys/keys.ts'
import { limits } from './limits.ts'
import { deleteDueOrgs } from './identity/organizations/organizations.ts'
import type { Log } from './log.ts'
import { expireAll, type RetentionRule } from './operations/retention/expire-all.ts'
import type { Recount } from './operations/retention/recount.ts'
import type { Webhooks } from './webhooks/start.ts'

interface JobServices {
  dataDir: string
  log: Log
  auditKey: SigningKey
  store: Store
  lastUses: LastUses
  ingestCounts: IngestCounts
  disk: DiskWatch
  fsyncProbe: FsyncProbe
  memory: MemoryWatch
  webhooks: Webhooks
  dispatchCron: string
  backups: Backups
  backupCron: string | null
  retention: RetentionRule
  recount: Recount
  clockGuard: Pick<ClockGuard, 'hold'>
}

/** Jobs with `deletes` pause while the clock is not trusted. */
type TableJob = Job & { deletes?: true }

export function jobTable(services: JobServices): Job[] {
  const { store, lastUses, disk, webhooks, dispatchCron, dataDir, log, auditKey } = services
  const { backups, backupCron } = services
  const backup: TableJob[] =
    backupCron === null
      ? []
      : [{ id: 'backup', schedule: backupCron, run: async () => backups.startScheduled() }]
  const table: TableJob[] = [
    ...backup,
    { id: 'disk-watch', schedule: '*/2 * * * * *', run: () => disk.check() },
    { id: 'fsync-probe', schedule: '*/10 * * * * *', run: () => services.fsyncProbe.check() },
    { id: 'memory-watch', schedule: '* * * * * *', run: async () => services.memory.check() },
    { id: 'ingest-counts', schedule: '*/2 * * * * *', run: () => services.ingestCounts.flush() },
    { id: 'key-last-use', schedule: '30 * * * * *', run: () => lastUses.flush() },
    {
      id: 'sign-in-prune',
      deletes: true,
      schedule: '0 17 * * * *',
      run: async (now) =>
        void (await store.signIns.prune({
          now,
          idleMs: limits.signInIdleMs,
          networksBeforeMs: now - limits.knownNetworkMs,
        })),
    },
    {
      id: 'audit-checkpoint',
      schedule: '0 7 3 * * *',
      run: async (now) => void (await writeCheckpoints({ store, key: auditKey, dataDir, log }, now)),
    },
    {
      id: 'audit-retention',
      deletes: true,
      schedule: '0 13 3 * * *',
      run: (now, ending) =>
        trimAll({ store, key: auditKey, dataDir, rule: services.retention, log }, now, ending),
    },
    {
      id: 'org-deletion',
      deletes: true,
      schedule: '0 11 * * * *',
      run: (now, ending) => deleteDueOrgs({ store }, log, now, ending),
    },
    {
      id: 'invitation-prune',
      deletes: true,
      schedule: '0 19 4 * * *',
      run: async (now) => void (await store.invitations.prune({ now })),
    },
    { id: 'rollup-recount', schedule: '0 2 * * * *', run: services.recount.run },
    {
      id: 'retention',
      deletes: true,
      schedule: '0 */10 * * * *',
      run: (now, ending) => expireAll({ store, rule: services.retention, log }, now, ending),
    },
    { id: 'webhook-dispatch', schedule: dispatchCron, run: webhooks.run },
    { id: 'webhook-prune', schedule: '0 23 * * * *', run: webhooks.prune, deletes: true },
  ]
  return table.map(({ deletes, run, ...job }) => ({
    ...job,
    run: async (now, ending) => {
      if (deletes && services.clockGuard.hold() !== null) return
      await run(now, ending)
    },
  }))
}
