/** Runs scheduled jobs: never overlapping, with failures logged and reported to /readyz. */
import { Cron } from 'croner'
import { elapsedMs, type Clock } from '../clock.ts'
import type { Log } from '../log.ts'

export interface Job {
  id: string
  schedule: string // cron, seconds field allowed
  /** A run in steps throws at its next step once `ending` is aborted; the next run continues. */
  run(now: number, ending: AbortSignal): Promise<void>
}

export interface JobReport {
  id: string
  runs: number
  failures: number
  lastMs: number // duration of the last run
  lastEndMs: number // end of the last run; before the first run: start of the scheduler
  late: boolean
}

export interface Jobs {
  /** Ids of jobs whose last run failed or that missed three runs. */
  late(): string[]
  report(): JobReport[]
  /** Stops the scheduler, aborts running jobs, and waits for them. */
  stop(): Promise<void>
}

interface Row {
  job: Job
  cron: Cron
  dueMs: number // Infinity: the pattern has no next run
  running: Promise<void> | null
  failed: boolean
  runs: number
  failures: number
  lastMs: number
  lastEndMs: number
  endedMs: number // the same in `elapsedMs`, independent of clock jumps
}

/** Calls back after `ms`, unless the returned function cancels it. */
export type Waker = (afterMs: number, wake: () => void) => () => void

const systemWaker: Waker = (afterMs, wake) => {
  const timer = setTimeout(wake, afterMs)
  timer.unref() // a waiting job must not keep the process alive
  return () => clearTimeout(timer)
}

/** The longest wait of a timer, so that a changed clock is noticed within this time. */
const sleepMsMax = 5_000
/** A smaller step back is a correction, not a jump. */
const stepBackMs = 1_000

/**
 * Starts every job. A run that is still active skips the job's next run. Croner computes due times, in UTC; the timers
 * are ours, because croner's own lose a run when the clock is set forward.
 */
export function startJobs(jobs: Job[], clock: Clock, log: Log, waker: Waker = systemWaker): Jobs {
  let lastNowMs = clock.now()
  const ending = new AbortController()
  const rows = jobs.map((job): Row => {
    const cron = new Cron(job.schedule, { paused: true, utcOffset: 0 })
    const idleState = { running: null, failed: false, runs: 0, failures: 0, lastMs: 0 }
    const ended = { lastEndMs: lastNowMs, endedMs: elapsedMs(clock) }
    return { job, cron, dueMs: nextRunMs(cron, lastNowMs), ...idleState, ...ended }
  })

  function check(): void {
    const now = clock.now()
    const wasSetBack = now < lastNowMs - stepBackMs
    lastNowMs = now
    for (const row of rows) {
      if (row.dueMs > now && !wasSetBack) continue
      if (row.dueMs <= now && row.running === null) void runOnce(row, clock, log, ending.signal)
      row.dueMs = nextRunMs(row.cron, now)
    }
    const nextMs = Math.min(...rows.map(({ dueMs }) => dueMs), now + sleepMsMax)
    cancel = waker(Math.max(1, nextMs - clock.now()), check)
  }
  let cancel = waker(1, check)

  return {
    late: () => rows.filter((row) => isLate(row, clock)).map((row) => row.job.id),
    report: () =>
      rows.map((row) => ({
        id: row.job.id,
        runs: row.runs,
        failures: row.failures,
        lastMs: row.lastMs,
        lastEndMs: row.lastEndMs,
        late: isLate(row, clock),
      })),
    async stop() {
      cancel()
      ending.abort()
      await Promise.allSettled(rows.map((row) => row.running))
    },
  }
}

function nextRunMs(cron: Cron, afterMs: number): number {
  return cron.nextRun(new Date(afterMs))?.getTime() ?? Infinity
}

async function runOnce(row: Row, clock: Clock, log: Log, ending: AbortSignal): Promise<void> {
  const startedMs = performance.now()
  const work = async () => row.job.run(clock.now(), ending)
  row.running = work().then(
    () => void (row.failed = false),
    (error: unknown) => {
      if (ending.aborted) return
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
  row.endedMs = elapsedMs(clock)
  row.runs++
  row.lastMs = performance.now() - startedMs
  log.debug('job_ran', { job: row.job.id, durationMs: Math.round(row.lastMs) })
}

function isLate(row: Row, clock: Clock): boolean {
  return row.failed || missed(row, clock)
}

/** Whether three scheduled runs were missed. */
function missed(row: Row, clock: Clock): boolean {
  const [first, second] = row.cron.nextRuns(2, new Date(clock.now()))
  if (!first || !second) return false
  return elapsedMs(clock) - row.endedMs > 3 * (second.getTime() - first.getTime()) + 5_000
}
