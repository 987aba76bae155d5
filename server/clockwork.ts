/** Runs scheduled jobs on croner: never overlapping, failures logged and remembered for /readyz. */
import { Cron } from 'croner'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

export interface Job {
  id: string
  schedule: string // cron, seconds field allowed
  run(now: number): Promise<void>
}

export interface Jobs {
  /** Ids of jobs whose last run failed or that missed three of their turns. */
  late(): string[]
  /** Stops the clockwork and waits for what runs. */
  stop(): Promise<void>
}

interface Row {
  job: Job
  cron: Cron
  running: Promise<void> | null
  failed: boolean
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
      lastEndMs: clock.now(),
    }
    row.cron = new Cron(job.schedule, { protect: true, unref: true }, () => runOnce(row, clock, log))
    return row
  })
  return {
    late: () => rows.filter((row) => row.failed || missed(row, clock.now())).map((row) => row.job.id),
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
      log.error('job_failed', {
        job: row.job.id,
        message: error instanceof Error ? error.message : String(error),
      })
    },
  )
  await row.running
  row.running = null
  row.lastEndMs = clock.now()
  log.debug('job_ran', { job: row.job.id, durationMs: Math.round(performance.now() - startedMs) })
}

/** Three periods without an end, judged by the schedule itself. */
function missed(row: Row, now: number): boolean {
  const [first, second] = row.cron.nextRuns(2)
  if (!first || !second) return false
  return now - row.lastEndMs > 3 * (second.getTime() - first.getTime()) + 5_000
}
