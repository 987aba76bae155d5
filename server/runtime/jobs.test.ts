/** A day of every job under a fast clock: each runs as often as scheduled, on time, and never overlaps itself. */
import { expect, test } from 'bun:test'
import { StoreError } from '../../db/contract/errors.ts'
import type { JobLease, NodeRole } from '../../db/contract/nodes.ts'
import { openTwoStores } from '../../tests/store/sqlite-nodes.ts'
import { fastClock } from '../../tests/support/fast-clock.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { unending } from '../../tests/support/unending.ts'
import { until } from '../../tests/support/until.ts'
import { systemClock } from '../clock.ts'
import { startNode } from '../system/shared-node.ts'
import { startJobs, type Job } from '../system/scheduler.ts'
import { jobTable } from '../jobs.ts'
import { silent } from '../../tests/support/silent-log.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const midnight = Date.UTC(2026, 10, 21)

/** How often in a day, said here once more so that a job's schedule does not change unseen. */
const timesADay: { [job: string]: number } = {
  backup: 1,
  'disk-watch': 43_200,
  'fsync-probe': 8_640,
  'memory-watch': 86_400,
  'ingest-counts': 43_200,
  'key-last-use': 1_440,
  'share-opens': 1_440,
  'sign-in-prune': 24,
  'audit-checkpoint': 1,
  'audit-retention': 1,
  'org-deletion': 24,
  'invitation-prune': 1,
  'rollup-recount': 24,
  'open-files': 24,
  retention: 144,
  'webhook-dispatch': 1_440,
  reports: 86_400,
  'webhook-prune': 24,
  'signature-prune': 24,
  'robots-files': 17_280,
  'overview-warm': 17_280,
}

/** The schedules of the real table. Its services are never called, because every run is replaced. */
function realJobs(role: NodeRole = 'all'): { id: string; schedule: string }[] {
  const emptyProxy = new Proxy({}, { get: () => () => undefined })
  const crons = { dispatchCron: '* * * * *', backupCron: '17 3 * * *', node: null, role }
  const parts = new Proxy(crons, {
    get: (target, name) => (name in target ? Reflect.get(target, name) : emptyProxy),
  })
  return jobTable(parts as unknown as Parameters<typeof jobTable>[0])
}

test('nodes that ingest or serve look after themselves only', () => {
  const nodeJobs = [
    'robots-files',
    'backup',
    'disk-watch',
    'fsync-probe',
    'memory-watch',
    'ingest-counts',
    'share-opens',
    'key-last-use',
  ]
  const idsOf = (role: NodeRole) => realJobs(role).map(({ id }) => id)
  expect([idsOf('ingest'), idsOf('web')]).toEqual([nodeJobs, [...nodeJobs, 'overview-warm']])
  expect(idsOf('jobs')).toEqual(idsOf('all').filter((id) => id !== 'overview-warm'))
})

test('due times are in UTC in every time zone of the machine', async () => {
  const zone = process.env.TZ
  process.env.TZ = 'America/New_York'
  try {
    const clock = fastClock(midnight)
    const starts: string[] = []
    const run = async (now: number) => void starts.push(new Date(now).toISOString())
    const jobs = startJobs([{ id: 'nightly', schedule: '17 3 * * *', run }], clock, silent, clock.waker)
    await clock.run(dayMs)
    await jobs.stop()
    expect(starts).toEqual(['2026-11-21T03:17:00.000Z'])
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
})

test('all jobs run on schedule for 24 hours with timers that fire up to 80 ms late', async () => {
  let seed = 0
  const clock = fastClock(midnight - 500, () => (seed = (seed * 31 + 17) % 81))
  const runs = new Map<string, { times: number; now: number; most: number; off: number }>()
  const counted = realJobs().map(({ id, schedule }): Job => {
    const runCount = { times: 0, now: 0, most: 0, off: 0 }
    runs.set(id, runCount)
    return {
      id,
      schedule,
      async run(now) {
        runCount.times++
        runCount.most = Math.max(runCount.most, ++runCount.now)
        runCount.off = Math.max(runCount.off, now % 1_000)
        await clock.passes(40)
        runCount.now--
      },
    }
  })
  const jobs = startJobs(counted, clock, silent, clock.waker)
  await clock.run(dayMs)
  expect(jobs.late()).toEqual([])
  for (const job of Object.keys(timesADay))
    expect([job, runs.get(job)?.times]).toEqual([job, timesADay[job]!])
  expect([...runs.keys()].sort()).toEqual(Object.keys(timesADay).sort())
  for (const [job, { most: parallelMax, off }] of runs)
    expect([job, parallelMax, off <= 81]).toEqual([job, 1, true])
  const stopping = jobs.stop()
  await clock.run(1_000)
  await stopping
}, 30_000)

test('a long run skips its own missed runs and does not delay other jobs', async () => {
  const clock = fastClock(midnight)
  const runTimes: { [job: string]: number[] } = { slow: [], quick: [] }
  const job = (id: string, schedule: string, takesMs: number): Job => ({
    id,
    schedule,
    async run(now) {
      runTimes[id]!.push((now - midnight) / 60_000)
      await clock.passes(takesMs)
    },
  })
  const jobs = startJobs(
    [job('slow', '*/10 * * * *', 25 * 60_000), job('quick', '* * * * *', 10)],
    clock,
    silent,
    clock.waker,
  )
  await clock.run(hourMs + 1)
  expect(runTimes['slow']).toEqual([10, 40])
  expect(runTimes['quick']).toHaveLength(60)
  const stopping = jobs.stop()
  await clock.run(hourMs)
  await stopping
})

test('a clock set forward runs due jobs once; set back, no job waits for the repeated hour', async () => {
  const clock = fastClock(midnight)
  const times = { hourly: 0, each: 0 }
  const jobs = startJobs(
    [
      { id: 'hourly', schedule: '0 30 * * * *', run: async () => void times.hourly++ },
      { id: 'each', schedule: '* * * * * *', run: async () => void times.each++ },
    ],
    clock,
    silent,
    clock.waker,
  )
  await clock.run(10_000)
  clock.set(midnight + 5 * hourMs)
  await clock.run(6_000)
  expect(times.hourly).toBe(1)
  const countBefore = times.each
  clock.set(midnight)
  await clock.run(10_000)
  expect(times.each - countBefore).toBeGreaterThanOrEqual(8)
  expect(jobs.late()).toEqual([])
  await clock.run(hourMs)
  expect(times.hourly).toBe(2)
  await jobs.stop()
})

const healthy = { queuedBytes: 0, queuedMs: 0, viewMs: 0, isEnding: false, problem: null }

/** The job tables of two nodes on one database, whose services record what they ran. */
async function twoNodes(folder: string) {
  const stores = await openTwoStores(folder)
  const ran: string[] = []
  const warnings: unknown[] = []
  const log = { ...silent, warn: (name: string) => void warnings.push(name) }
  const gate = { open: () => Promise.resolve() } // a re-count ends when it opens
  const tables = stores.map(async (store, n) => {
    const nodeFacts = { name: `node-${n}`, version: '1', role: 'all' as const }
    const services = {
      store,
      log,
      clockGuard: { hold: () => null },
      leaseMs: 400,
      dispatchCron: '* * * * *',
      backupCron: null,
      retention: { days: null, bytes: null, auditDays: null },
      node: await startNode({ store, node: nodeFacts, clock: systemClock, log }),
      report: () => healthy,
      watchUpkeep: () => {},
      disk: { check: async () => void ran.push(`disk ${n}`) },
      recount: {
        async run(_now: number, ending: AbortSignal, lease: JobLease) {
          ran.push(`recount ${n}`)
          await gate.open()
          ran.push(`lease ${lease.lease}${ending.aborted ? ' lost' : ''}`)
        },
      },
      webhooks: {
        async run(_now: number, alerts: (work: () => Promise<void>) => Promise<void>) {
          ran.push(`dispatch ${n}`)
          await alerts(async () => void ran.push(`alerts ${n}`))
        },
      },
    }
    const table = jobTable(services as unknown as Parameters<typeof jobTable>[0])
    return (id: string, ending = unending) => table.find((job) => job.id === id)!.run(Date.now(), ending)
  })
  const [first, second] = await Promise.all(tables)
  const [store] = stores
  return {
    first: first!,
    second: second!,
    store,
    ran,
    warnings,
    gate,
    done: () => ran.splice(0),
    close: () => Promise.all(stores.map((sqlStore) => sqlStore.close())),
  }
}

const recount = { job: 'rollup-recount', leaseMs: 1 }

test('of two nodes one runs the jobs of the appliance, the other takes over, and both look after themselves', async () => {
  using dir = tempDir('nodes')
  const { first, second, store, ran, gate, done: takeRuns, close } = await twoNodes(dir.path)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate.open = () => promise
  const running = first('rollup-recount')
  await until(() => ran.length > 0)
  await second('rollup-recount') // the first has it
  resolve()
  await running
  expect(takeRuns()).toEqual(['recount 0', 'lease 1'])
  await second('rollup-recount') // released, but for the same time of day
  expect(takeRuns()).toEqual([])
  // The first ended a minute ago without a release. On a busy machine the nodes' clocks may differ by milliseconds.
  await store.jobs.claim({ ...recount, node: 'node-0', now: Date.now() - 60_000 })
  await second('rollup-recount')
  expect(takeRuns()).toEqual(['recount 1', 'lease 3'])

  await Promise.all([first('webhook-dispatch'), second('webhook-dispatch')])
  expect(ran.filter((ranJob) => ranJob.startsWith('dispatch')).toSorted()).toEqual([
    'dispatch 0',
    'dispatch 1',
  ])
  expect(takeRuns().filter((ranJob) => ranJob.startsWith('alerts')).length).toBe(1)
  await Promise.all([first('disk-watch'), second('disk-watch')])
  expect(takeRuns().toSorted()).toEqual(['disk 0', 'disk 1'])
  await first('node-heartbeat')
  await second('node-heartbeat')
  expect((await store.nodes.list({ now: Date.now() })).map(({ name }) => name)).toEqual(['node-0', 'node-1'])
  await close()
})

test('a run keeps its lease for as long as it takes, and is aborted when the lease is lost', async () => {
  using dir = tempDir('nodes')
  const { second, store, ran, warnings, gate, done: takeRuns, close } = await twoNodes(dir.path)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate.open = () => promise
  const losing = second('rollup-recount')
  await until(() => ran.length > 0)
  await Bun.sleep(600) // longer than the lease
  expect(await store.jobs.claim({ ...recount, node: 'x', now: Date.now() })).toBeNull()
  expect(await store.jobs.claim({ ...recount, node: 'node-1', now: Date.now() })).not.toBeNull()
  await until(() => warnings.length > 0)
  resolve()
  await losing
  expect(takeRuns()).toEqual(['recount 1', 'lease 1 lost'])
  expect(warnings).toEqual(['job_lease_lost'])
  await close()
})

test('a job waits for a database that does not answer, and ends with the server', async () => {
  using dir = tempDir('nodes')
  const { first, ran, warnings, gate, done: takeRuns, close } = await twoNodes(dir.path)
  const away = () => Promise.reject(new StoreError('unavailable', 'connection refused'))
  gate.open = away
  const running = first('rollup-recount')
  await until(() => ran.length === 1)
  gate.open = () => Promise.resolve()
  await running
  expect(takeRuns()).toEqual(['recount 0', 'recount 0', 'lease 2'])
  expect(warnings).toEqual(['job_waits_for_database'])
  gate.open = away
  const ending = new AbortController()
  const stopped = first('rollup-recount', ending.signal)
  await until(() => ran.length === 1)
  ending.abort(new Error('stopping'))
  expect(await stopped.catch((error: Error) => error.message)).toBe('stopping')
  await close()
})
