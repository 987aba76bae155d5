/** The schedule of every job, and which of several nodes runs it. */
import type { Store } from '../db/contract/store.ts'
import type { JobLease, NewNode } from '../db/contract/nodes.ts'
import { StoreError } from '../db/contract/errors.ts'
import { trimAll, writeCheckpoints } from './audit/checkpoints.ts'
import type { SigningKey } from './audit/signing.ts'
import type { Backups } from './operations/backup/backups.ts'
import type { DiskWatch, FsyncProbe } from './operations/health/disk.ts'
import type { MemoryWatch } from './operations/health/memory.ts'
import type { ClockGuard } from './system/clock-guard.ts'
import type { Job } from './system/scheduler.ts'
import type { IngestCounts } from './ingest/counts.ts'
import type { LastUses } from './identity/keys/keys.ts'
import type { Clock } from './clock.ts'
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
  clock: Clock
  clockGuard: Pick<ClockGuard, 'hold'>
  /** Null: no other node shares the database, as with a data folder, so no job is claimed. */
  node: NewNode | null
}

interface TableJob extends Omit<Job, 'run'> {
  /** Pauses while the clock is not trusted. */
  deletes?: true
  run(now: number, ending: AbortSignal, lease?: JobLease): Promise<void>
}

export function jobTable(services: JobServices): Job[] {
  const claimedJobs = applianceJobs(services).map(({ run, ...job }): TableJob => {
    return {
      ...job,
      run: (now, ending) => claimed(services, job.id, ending, (signal, lease) => run(now, signal, lease)),
    }
  })
  return [...nodeJobs(services), ...claimedJobs].map(({ deletes, run, ...job }) => ({
    ...job,
    run: async (now, ending) => {
      if (deletes && services.clockGuard.hold() !== null) return
      await run(now, ending)
    },
  }))
}

/** Jobs of every node, because they look after its process, its disk or what it has in memory. */
function nodeJobs(services: JobServices): TableJob[] {
  const { backupCron, webhooks } = services
  const backup = { id: 'backup', run: async () => services.backups.startScheduled() }
  const alerts = (work: () => Promise<void>) =>
    claimed(services, 'webhook-alerts', new AbortController().signal, work)
  return [
    ...(backupCron === null ? [] : [{ ...backup, schedule: backupCron }]),
    { id: 'disk-watch', schedule: '*/2 * * * * *', run: () => services.disk.check() },
    { id: 'fsync-probe', schedule: '*/10 * * * * *', run: () => services.fsyncProbe.check() },
    { id: 'memory-watch', schedule: '* * * * * *', run: async () => services.memory.check() },
    { id: 'ingest-counts', schedule: '*/2 * * * * *', run: () => services.ingestCounts.flush() },
    { id: 'key-last-use', schedule: '30 * * * * *', run: () => services.lastUses.flush() },
    { id: 'webhook-dispatch', schedule: services.dispatchCron, run: (now) => webhooks.run(now, alerts) },
    ...heartbeat(services),
  ]
}

/** Jobs of the whole appliance: one node at a time runs them. */
function applianceJobs(services: JobServices): TableJob[] {
  const { store, webhooks, dataDir, log, auditKey, retention } = services
  return [
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
      run: (now, ending) => trimAll({ store, key: auditKey, dataDir, rule: retention, log }, now, ending),
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
      run: (now, ending) => expireAll({ store, rule: retention, log }, now, ending),
    },
    { id: 'webhook-prune', schedule: '0 23 * * * *', run: webhooks.prune, deletes: true },
  ]
}

const leaseMs = 60_000
const renewEveryMs = 15_000

/** Nodes run the same schedule with clocks that differ; one that is late by less must not run the job again. */
const quietMs = 60_000

/** Runs a job if no other node has it. The run is aborted when its lease is lost. */
async function claimed(
  { store: { jobs }, node, clock, log }: Pick<JobServices, 'store' | 'node' | 'clock' | 'log'>,
  job: string,
  ending: AbortSignal,
  run: (ending: AbortSignal, lease?: JobLease) => Promise<void>,
): Promise<void> {
  if (node === null) return run(ending)
  const lease = await jobs.claim({ job, node: node.name, leaseMs, now: clock.now() })
  if (lease === null) return
  const lost = new AbortController()
  let renewedMs = performance.now()
  const renew = async () => {
    const startedMs = performance.now()
    const isHeld = await jobs.renew({ ...lease, leaseMs, now: clock.now() }).catch(() => null)
    if (isHeld === true) renewedMs = startedMs
    if (isHeld !== false && performance.now() - renewedMs < leaseMs) return
    log.warn('job_lease_lost', { job, node: node.name })
    lost.abort(new StoreError('conflict', `the lease of the job ${job} is lost`))
  }
  const timer = setInterval(() => void renew(), renewEveryMs)
  try {
    await run(AbortSignal.any([ending, lost.signal]), lease)
  } finally {
    clearInterval(timer)
    // A lease that is not released ends by itself.
    await jobs.release({ ...lease, quietMs, now: clock.now() }).catch(() => undefined)
  }
}

/** Clocks that differ by more make leases and schedules of nodes hard to follow. */
const skewMaxMs = 5_000

/** Says every 5 s that this node runs. Other nodes and `doctor` see it in the list of nodes. */
function heartbeat({ store: { nodes }, node, clock, log }: JobServices): TableJob[] {
  if (node === null) return []
  const { name } = node
  let wasOff = false
  const beat = async (): Promise<void> => {
    const { storeMs } = await nodes.heartbeat({ name, now: clock.now() })
    const aheadMs = clock.now() - storeMs
    const isOff = Math.abs(aheadMs) > skewMaxMs
    if (isOff && !wasOff) log.warn('clock_differs_from_database', { node: name, aheadMs })
    wasOff = isOff
  }
  const run = async (): Promise<void> => {
    try {
      await beat()
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'not_found') throw error
      await nodes.register({ node, now: clock.now() })
    }
  }
  return [{ id: 'node-heartbeat', schedule: '*/5 * * * * *', run }]
}
