/** Runs jobs side by side for `npm test`: the longest first, as many as the cores can run. */
import { cpus } from 'node:os'

export interface Job {
  path: string
  /** Recorded duration. */
  seconds: number
  /** Cores in use: 0.1 for a job that mostly waits, more than 1 for a job with busy children. */
  load: number
  /** What it needs is there when all of these resolve. */
  needs?: readonly Promise<unknown>[]
}

export interface Capacity {
  /** Maximum sum of the loads of jobs that run at the same time, while no core is idle. */
  load: number
  jobs: number
  /** While cores are idle, one more job starts at a time, up to this number. */
  jobsMax?: number
  /** Resolves after a moment with the number of cores that were idle during it. */
  idleCores?: () => Promise<number>
}

/** Loads are averages: jobs that all wait at the same time leave the cores idle, and then one more job starts. */
const idleCoresMin = 0.5

/** Resolves when all jobs have run. One whose load exceeds the capacity runs while no other does. */
export async function runPool<T extends Job>(
  jobs: T[],
  capacity: Capacity,
  run: (job: T) => Promise<void>,
): Promise<void> {
  const queue = jobs.toSorted((a, b) => b.seconds - a.seconds)
  const running = new Map<T, Promise<void>>()
  const pendingNeeds = new Map<Promise<unknown>, Promise<unknown>>()
  for (const need of jobs.flatMap((job) => job.needs ?? []))
    pendingNeeds.set(
      need,
      need.finally(() => pendingNeeds.delete(need)),
    )
  const isReady = ({ needs = [] }: T): boolean => !needs.some((need) => pendingNeeds.has(need))
  const startNext = (limit: Capacity): boolean => {
    const job = nextJob(queue, isReady, running, limit)
    if (job === null) return false
    queue.splice(queue.indexOf(job), 1)
    running.set(
      job,
      run(job).finally(() => running.delete(job)),
    )
    return true
  }
  let look: Promise<void> | null = null
  while (queue.length > 0 || running.size > 0) {
    while (startNext(capacity));
    if (queue.length > 0)
      look ??=
        capacity.idleCores?.().then((idle) => {
          look = null
          if (idle >= idleCoresMin) startNext({ load: Infinity, jobs: capacity.jobsMax ?? capacity.jobs })
        }) ?? null
    await Promise.race([...running.values(), ...pendingNeeds.values(), ...(look === null ? [] : [look])])
  }
}

/** Cores of this machine that were idle during the next second. A core that waits for a disk is not. */
export async function idleCores(): Promise<number> {
  const idleMsBefore = idleMs()
  const startMs = performance.now()
  await new Promise((resolve) => setTimeout(resolve, 1_000).unref())
  return (idleMs() - idleMsBefore) / (performance.now() - startMs)
}

function idleMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.idle, 0)
}

function nextJob<T extends Job>(
  queue: T[],
  isReady: (job: T) => boolean,
  running: Map<T, unknown>,
  capacity: Capacity,
): T | null {
  const able = queue.filter(isReady)
  if (running.size === 0) return able[0] ?? null
  if (running.size >= capacity.jobs) return null
  const remainingLoad = [...running.keys()].reduce((sum, job) => sum - job.load, capacity.load)
  const fitting = able.filter((job) => job.load <= remainingLoad)
  // Jobs that mostly wait leave room for those that keep the cores busy meanwhile: about one core for each place.
  const placesLeft = capacity.jobs - running.size - 1
  return fitting.find((job) => remainingLoad - job.load <= placesLeft + 0.5) ?? fitting[0] ?? null
}
