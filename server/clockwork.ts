/** Runs scheduled jobs on croner: never overlapping, failures logged and remembered for /readyz. */
import { Cron } from 'croner'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

export interface Job {
  id: string
  schedule: string // cron, seconds field allowed
  run(now: number): Promise<void>
}

export interface JobReport {
  id: string
  runs: number
  failures: number
  lastMs: number // how long the last run took
  lastEndMs: number // when it ended; before the first run: when the clockwork started
  late: boolean
}

export interface Jobs {
  /** Ids of jobs whose last run failed or that missed three of their turns. */
  late(): string[]
  report(): JobReport[]
  /** Stops the clockwork and waits for what runs. */
  stop(): Promise<void>
}

interface Row {
  job: Job
  cron: Cron
  running: Promise<void> | null
  failed: boolean
  runs: number
  failures: number
  lastMs: number
  lastEndMs: number
}

/** Starts every job. A run that is still going when its next turn comes keeps that turn from starting. */
export function startJobs(jobs: Job[], clock: Clock, log: Log): Jobs {
  const rows = jobs.map((job): Row => {
    const row: Row = {
      job,
      cron: null as unknown as Cron,
      running: null,
      failed: false,
      runs: 0,
      failures: 0,
      lastMs: 0,
      lastEndMs: clock.now(),
    }
    row.cron = new Cron(job.schedule, { protect: true, unref: true }, () => runOnce(row, clock, log))
    return row
  })
  return {
    late: () => rows.filter((row) => isLate(row, clock.now())).map((row) => row.job.id),
    report: () =>
      rows.map((row) => ({
        id: row.job.id,
        runs: row.runs,
        failures: row.failures,
        lastMs: row.lastMs,
        lastEndMs: row.lastEndMs,
        late: isLate(row, clock.now()),
      })),
    async stop() {
      for (const row of rows) row.cron.stop()
      await Promise.allSettled(rows.map((row) => row.running))
    },
  }
}

async function runOnce(row: Row, clock: Clock, log: Log): Promise<void> {
  const startedMs = performance.now()
  row.running = row.job.run(clock.now()).then(
    () => void (row.failed = false),
    (error: unknown) => {
      row.failed = true
      row.failures++
      log.error('job_failed', {
        job: row.job.id,
        message: error instanceof Error ? error.message : String(error),
      })
    },
  )
  await row.running
  row.running = null
  row.lastEndMs = clock.now()
  row.runs++
  row.lastMs = performance.now() - startedMs
  log.debug('job_ran', { job: row.job.id, durationMs: Math.round(row.lastMs) })
}

function isLate(row: Row, now: number): boolean {
  return row.failed || missed(row, now)
}

/** Three periods without an end, judged by the schedule itself. */
function missed(row: Row, now: number): boolean {
  const [first, second] = row.cron.nextRuns(2)
  if (!first || !second) return false
  return now - row.lastEndMs > 3 * (second.getTime() - first.getTime()) + 5_000
}
