/** The schedule of every job, and which of several nodes runs it. */
import type { Store } from '../db/contract/store.ts'
import type { JobLease, NodeReport, NodeRole } from '../db/contract/nodes.ts'
import { StoreError, passesBy } from '../db/contract/errors.ts'
import { trimAll, writeCheckpoints, type TrailServices } from './audit/checkpoints.ts'
import type { Backups } from './operations/backup/backups.ts'
import { makeOverviewWarmer } from './counts/changes.ts'
import type { DiskWatch, FsyncProbe } from './system/disk.ts'
import type { MemoryWatch } from './operations/health/memory.ts'
import type { ClockGuard } from './system/clock-guard.ts'
import type { SharedNode } from './system/shared-node.ts'
import type { Job } from './system/scheduler.ts'
import type { IngestCounts } from './ingest/counts.ts'
import type { LastUses } from './identity/keys/keys.ts'
import { limits } from './limits.ts'
import { throttlePrune } from './identity/sign-in/throttle.ts'
import { deleteDueOrgs } from './identity/organizations/organizations.ts'
import type { Log } from './log.ts'
import { expireAll } from './operations/retention/expire-all.ts'
import type { RetentionRule } from './system/retention-rule.ts'
import type { OpenFiles } from './parquet/open-files.ts'
import type { ScheduledReports } from './reports/scheduled.ts'
import type { RobotsFiles } from './robots/watched-files.ts'
import type { Recount } from './operations/retention/recount.ts'
import type { ShareOpens } from './sharing/links.ts'
import type { Webhooks } from './webhooks/start.ts'

export interface JobServices {
  log: Log
  trail: TrailServices
  store: Store
  lastUses: LastUses
  shareOpens: ShareOpens
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
  /** Null: no other node shares the database, as with a data folder, so no job is claimed. */
  node: SharedNode | null
  /** Nodes that ingest or serve leave the jobs of the appliance and the webhooks to others. Default: all. */
  role?: NodeRole
  leaseMs?: number // of a job; tests use a shorter one
  /** What this node publishes about itself. */
  report(): Omit<NodeReport, 'aheadMs'>
  /** Logs failures of the background work of this node. */
  watchUpkeep(): void
  /** Null: no robots.txt is watched. */
  robotsFiles?: RobotsFiles | null
  /** Null: no Parquet files are written. */
  openFiles?: OpenFiles | null
  scheduledReports?: ScheduledReports
}

interface TableJob extends Omit<Job, 'run'> {
  /** Pauses while the clock is not trusted. */
  deletes?: true
  run(now: number, ending: AbortSignal, lease?: JobLease): Promise<void>
}

export function jobTable(services: JobServices): Job[] {
  const shared = runsJobs(services.role) ? applianceJobs(services) : []
  const claimedJobs = shared.map(({ run, ...job }): TableJob => {
    return {
      ...job,
      run: (now, ending) => claimed(services, job.id, ending, (signal, lease) => run(now, signal, lease)),
    }
  })
  const { node } = services
  return [...nodeJobs(services), ...claimedJobs].map(({ deletes, run, ...job }) => ({
    ...job,
    run: (now, ending) =>
      untilAvailable(services.log, job.id, ending, async () => {
        if (deletes && services.clockGuard.hold() !== null) return
        // By the database's clock: a node whose own clock is ahead would delete too early.
        await run(node?.clock.now() ?? now, ending)
      }),
  }))
}

export function runsJobs(role: NodeRole = 'all'): boolean {
  return role === 'all' || role === 'jobs'
}

function showsDashboard(role: NodeRole = 'all'): boolean {
  return role === 'all' || role === 'web'
}

const retryMs = 1_000

/**
 * Runs a job again while the database does not answer. Otherwise one outage would skip the day's only run of a job, and
 * the node would report a late job until its next run.
 */
async function untilAvailable(
  log: Log,
  job: string,
  ending: AbortSignal,
  run: () => Promise<void>,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await run()
    } catch (error) {
      if (!passesBy(error)) throw error
      if (tries === 0) log.warn('job_waits_for_database', { job, message: error.message })
      await Bun.sleep(retryMs)
      ending.throwIfAborted()
    }
  }
}

/** Jobs of every node, because they look after its process, its disk or what it has in memory. */
function nodeJobs(services: JobServices): TableJob[] {
  const { backupCron, webhooks, node } = services
  const backup = { id: 'backup', run: async () => services.backups.startScheduled() }
  const alerts = (work: (lease?: JobLease) => Promise<void>) =>
    claimed(services, 'webhook-alerts', new AbortController().signal, (_ending, lease) => work(lease))
  const dispatch: TableJob = {
    id: 'webhook-dispatch',
    schedule: services.dispatchCron,
    run: (now) => webhooks.run(now, alerts),
  }
  const { robotsFiles, openFiles, scheduledReports } = services
  const reports: TableJob = {
    id: 'reports',
    schedule: '* * * * * *',
    deletes: true, // by a wrong clock a period would seem complete
    async run(now, ending) {
      if (!scheduledReports?.isDue(now)) return
      await claimed(services, 'reports', ending, (signal) => scheduledReports.run(now, signal))
    },
  }
  return [
    ...(robotsFiles
      ? [
          {
            id: 'robots-files',
            schedule: '*/5 * * * * *',
            run: (_now: number, ending: AbortSignal) => robotsFiles.check(ending),
          },
        ]
      : []),
    // After the day has ended, and soon after retention, which runs every ten minutes.
    ...(openFiles && runsJobs(services.role)
      ? [{ id: 'open-files', schedule: '0 35 * * * *', run: openFiles.run }]
      : []),
    ...(backupCron === null ? [] : [{ ...backup, schedule: backupCron }]),
    { id: 'disk-watch', schedule: '*/2 * * * * *', run: () => services.disk.check() },
    { id: 'fsync-probe', schedule: '*/10 * * * * *', run: () => services.fsyncProbe.check() },
    { id: 'memory-watch', schedule: '* * * * * *', run: async () => services.memory.check() },
    { id: 'ingest-counts', schedule: '*/2 * * * * *', run: () => services.ingestCounts.flush() },
    { id: 'share-opens', schedule: '45 * * * * *', run: () => services.shareOpens.flush() },
    { id: 'key-last-use', schedule: '30 * * * * *', run: () => services.lastUses.flush() },
    ...(showsDashboard(services.role)
      ? [{ id: 'overview-warm', schedule: '*/5 * * * * *', run: makeOverviewWarmer(services).run }]
      : []),
    ...(runsJobs(services.role) ? [dispatch, reports] : []),
    ...(node === null ? [] : sharedNodeJobs(services, node)),
  ]
}

function sharedNodeJobs({ report, watchUpkeep }: JobServices, node: SharedNode): TableJob[] {
  return [
    { id: 'node-heartbeat', schedule: '*/5 * * * * *', run: () => node.beat(report()) },
    { id: 'upkeep-watch', schedule: '*/2 * * * * *', run: async () => watchUpkeep() },
  ]
}

/** Jobs of the whole appliance: one node at a time runs them. */
function applianceJobs(services: JobServices): TableJob[] {
  const { store, webhooks, log, trail, retention } = services
  return [
    {
      id: 'sign-in-prune',
      deletes: true,
      schedule: '0 17 * * * *',
      run: async (now) => {
        const networksBeforeMs = now - limits.knownNetworkMs
        await store.signIns.prune({ now, idleMs: limits.signInIdleMs, networksBeforeMs })
        await store.throttle.prune(throttlePrune(now))
      },
    },
    {
      id: 'audit-checkpoint',
      schedule: '0 7 3 * * *',
      run: async (now) => void (await writeCheckpoints(trail, now)),
    },
    {
      id: 'audit-retention',
      deletes: true,
      schedule: '0 13 3 * * *',
      run: (now, ending) => trimAll({ ...trail, store, rule: retention }, now, ending),
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
    {
      id: 'signature-prune',
      deletes: true,
      schedule: '0 29 * * * *',
      run: async (now, ending) => {
        while (!ending.aborted && (await store.signatures.prune({ now })) > 0);
      },
    },
    { id: 'webhook-prune', schedule: '0 23 * * * *', run: webhooks.prune, deletes: true },
  ]
}

const leaseMsDefault = 60_000

/** Nodes run the same schedule with clocks that differ; one that is late by less must not run the job again. */
const quietMs = 60_000

/** Runs a job if no other node has it. The run is aborted when its lease is lost. */
async function claimed(
  { store, node, log, leaseMs = leaseMsDefault }: Pick<JobServices, 'store' | 'node' | 'log' | 'leaseMs'>,
  job: string,
  ending: AbortSignal,
  run: (ending: AbortSignal, lease?: JobLease) => Promise<void>,
): Promise<void> {
  if (node === null) return run(ending)
  const { jobs } = store
  const { clock } = node
  const lease = await jobs.claim({ job, node: node.name, leaseMs, now: clock.now() })
  if (lease === null) return
  const lost = new AbortController()
  let renewedMs = performance.now()
  const renew = async () => {
    const startedMs = performance.now()
    const isHeld = await jobs.renew({ ...lease, leaseMs, now: clock.now() }).catch(() => null)
    if (isHeld === true) renewedMs = startedMs
    if (isHeld !== false && performance.now() - renewedMs < leaseMs) return
    clearInterval(timer)
    log.warn('job_lease_lost', { job, node: node.name })
    lost.abort(new StoreError('conflict', `the lease of the job ${job} is lost`))
  }
  const timer = setInterval(() => void renew(), leaseMs / 4)
  try {
    await run(AbortSignal.any([ending, lost.signal]), lease)
  } finally {
    clearInterval(timer)
    // A lease that is not released ends by itself.
    await jobs.release({ ...lease, quietMs, now: clock.now() }).catch(() => undefined)
  }
}
