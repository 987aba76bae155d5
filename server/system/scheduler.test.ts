/** Scheduled jobs never overlap themselves, and a failure is reported until the next success. */
import { expect, test } from 'bun:test'
import { until } from '../../tests/support/until.ts'
import { startJobs } from './scheduler.ts'
import { silent } from '../../tests/support/silent-log.ts'

const everySecond = '* * * * * *'

test('a run that is still active skips the next run', async () => {
  let running = 0
  let runningMax = 0
  let runs = 0
  const run = async () => {
    runningMax = Math.max(runningMax, ++running)
    await Bun.sleep(1_500)
    running--
    runs++
  }
  const jobs = startJobs([{ id: 'slow', schedule: everySecond, run }], { now: () => Date.now() }, silent)
  await until(() => runs >= 2)
  await jobs.stop()
  expect([runningMax, running]).toEqual([1, 0])
}, 15_000)

test('a failing job is reported until it succeeds and does not stop others', async () => {
  let healthy = false
  let otherRuns = 0
  const jobs = startJobs(
    [
      {
        id: 'failing',
        schedule: everySecond,
        run: () => (healthy ? Promise.resolve() : Promise.reject(new Error('no'))),
      },
      { id: 'other', schedule: everySecond, run: async () => void otherRuns++ },
    ],
    { now: () => Date.now() },
    silent,
  )
  await until(() => jobs.late().includes('failing') && otherRuns > 0)
  expect(jobs.late()).toEqual(['failing'])
  healthy = true
  await until(() => jobs.late().length === 0)
  await jobs.stop()
}, 15_000)

test('a stop aborts running jobs, which is not a failure', async () => {
  let failures = 0
  let started = false
  let isEndingSeen = false
  const log = { ...silent, error: () => void failures++ }
  const run = async (_now: number, ending: AbortSignal) => {
    started = true
    while (!ending.aborted) await Bun.sleep(5)
    isEndingSeen = true
    ending.throwIfAborted()
  }
  const clock = { now: () => Date.now() }
  const jobs = startJobs([{ id: 'endless', schedule: everySecond, run }], clock, log)
  await until(() => started)
  expect(isEndingSeen).toBe(false)
  await jobs.stop()
  expect([isEndingSeen, failures, jobs.report()[0]!.failures]).toEqual([true, 0, 0])
}, 15_000)

test('a job that misses its runs is reported, by the given clock', async () => {
  let now = Date.now()
  const jobs = startJobs(
    [{ id: 'hourly', schedule: '0 0 1 1 *', run: async () => {} }],
    { now: () => now },
    silent,
  )
  expect(jobs.late()).toEqual([])
  now += 4 * 366 * 24 * 3_600_000
  expect(jobs.late()).toEqual(['hourly'])
  await jobs.stop()
})
