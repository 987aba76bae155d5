/** The order in which test files run, and which run side by side. */
import { expect, test } from 'bun:test'
import { type Capacity, type Job, runPool } from './test-pool.ts'

const job = (path: string, seconds: number, load: number): Job => ({
  path,
  seconds,
  load,
})

/** Runs jobs by hand: `running` lists the active ones, `end` finishes one. */
function stage(jobs: Job[], capacity: Capacity) {
  const ends = new Map<string, () => void>()
  const whole = runPool(jobs, capacity, ({ path }) => {
    const ended = Promise.withResolvers<void>()
    ends.set(path, ended.resolve)
    return ended.promise
  })
  return {
    whole,
    running: () => [...ends.keys()],
    async end(path: string) {
      ends.get(path)!()
      ends.delete(path)
      await Bun.sleep(0)
    },
  }
}

test('the longest jobs start first, as many as the cores can run', async () => {
  const { running, end, whole } = stage(
    [job('short', 1, 0.5), job('long', 9, 1), job('middle', 5, 1), job('waits', 2, 0.1)],
    { load: 2, jobs: 9 },
  )
  expect(running()).toEqual(['long', 'middle'])
  await end('middle')
  expect(running()).toEqual(['long', 'waits', 'short'])
  for (const path of running()) await end(path)
  await whole
})

test('while cores are idle one more job starts at each look, up to a number of its own', async () => {
  const looks: PromiseWithResolvers<number>[] = []
  const idleCores = () => {
    looks.push(Promise.withResolvers<number>())
    return looks.at(-1)!.promise
  }
  const { running, end, whole } = stage(
    ['a', 'b', 'c', 'd'].map((path) => job(path, 1, 1)),
    { load: 1, jobs: 2, jobsMax: 3, idleCores },
  )
  const look = async (cores: number) => {
    looks.at(-1)!.resolve(cores)
    await Bun.sleep(0)
    return running()
  }
  expect(running()).toEqual(['a'])
  expect(await look(0.1)).toEqual(['a'])
  expect(await look(1.6)).toEqual(['a', 'b'])
  expect(await look(0.9)).toEqual(['a', 'b', 'c'])
  expect(await look(2)).toEqual(['a', 'b', 'c'])
  expect(looks.length).toBe(5)
  await end('a')
  expect(running()).toEqual(['b', 'c'])
  expect(await look(0.7)).toEqual(['b', 'c', 'd'])
  for (const path of running()) await end(path)
  await whole
})

test('never more jobs than allowed, however small their load', async () => {
  const { running, end, whole } = stage(
    ['a', 'b', 'c'].map((path) => job(path, 1, 0)),
    { load: 2, jobs: 2 },
  )
  expect(running()).toEqual(['a', 'b'])
  await end('a')
  expect(running()).toEqual(['b', 'c'])
  for (const path of running()) await end(path)
  await whole
})

test('jobs that wait do not take all places while others could compute', async () => {
  const waiting = ['a', 'b', 'c', 'd'].map((path) => job(path, 9, 0.1))
  const { running, end, whole } = stage([...waiting, job('busy', 2, 0.8), job('also', 1, 0.8)], {
    load: 2,
    jobs: 4,
  })
  expect(running()).toEqual(['a', 'b', 'busy', 'also'])
  for (const path of ['a', 'b']) await end(path)
  expect(running()).toEqual(['busy', 'also', 'c', 'd'])
  for (const path of running()) await end(path)
  await whole
})

test('a job with more load than the capacity still runs, while no other does', async () => {
  const { running, end, whole } = stage([job('huge', 3, 5), job('small', 1, 0.1)], { load: 2, jobs: 9 })
  for (const path of ['huge', 'small']) {
    expect(running()).toEqual([path])
    await end(path)
  }
  await whole
})

test('a job waits for what it needs while others run', async () => {
  const install = Promise.withResolvers<void>()
  const { running, end, whole } = stage(
    [
      { ...job('browser', 9, 1), needs: [install.promise] },
      job('unit', 1, 1),
      { ...job('ready', 3, 1), needs: [Promise.resolve()] },
    ],
    { load: 1, jobs: 9 },
  )
  expect(running()).toEqual(['unit'])
  await end('unit')
  expect(running()).toEqual(['ready'])
  await end('ready')
  expect(running()).toEqual([])
  install.resolve()
  await Bun.sleep(0)
  expect(running()).toEqual(['browser'])
  await end('browser')
  await whole
})

test('a job that throws ends the run with its error', async () => {
  const failing = runPool([job('a', 1, 1)], { load: 1, jobs: 1 }, () => Promise.reject(new Error('broken')))
  expect(await failing.catch(String)).toBe('Error: broken')
})
