/** Logs that are imported again: killed, grown, copied, read twice at once, or with the first line of another log. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { writeFileSync } from 'node:fs'
import {
  browser,
  failure,
  gptBot,
  importLogs,
  line,
  newMemory,
  type Memory,
  plainOptions,
  storeIn,
} from '../../tests/support/access-logs.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import type { AccessLines } from '../../db/contract/store.ts'
import { importRun, planLogs, type LogStore } from './import-logs.ts'
import { runs } from '../../tests/support/runs.ts'

setDefaultTimeout(30_000)

/** Every request that a log has, by what a store must know of it after any imports. */
function totals({ lines }: Memory): number[] {
  const sum = (readCount: (access: AccessLines) => number) =>
    lines.reduce((total, access) => total + readCount(access), 0)
  const agents = (access: AccessLines) => access.requests.filter((bytes) => bytes !== null).length
  const countOthers = (access: AccessLines) =>
    access.counts.reduce((total, { requests }) => total + requests, 0)
  return [sum(({ sums }) => sums.lines), sum(agents), sum(countOthers), sum(({ sums }) => sums.bad)]
}

const mixed = (count: number, from = 0): string =>
  Array.from({ length: count }, (_, n) => {
    const path = n % 5 === 0 ? '/a.css' : `/${from + n}`
    return line({
      second: from + n,
      path,
      userAgent: n % 3 === 0 ? gptBot : n % 3 === 1 ? browser : 'curl/8',
    })
  }).join('')

test('a log that grew, was killed in between or is read twice at once is stored once, people too', async () => {
  using temp = tempDir('access')
  const path = temp.join('a.log')
  const whole = mixed(36_000)
  const memory = newMemory()
  writeFileSync(path, whole)
  await importLogs([path], {}, memory)
  expect(memory.lines.length).toBeGreaterThan(2) // batches
  const [lines, agents, otherRequests] = totals(memory)
  expect([lines, agents]).toEqual([36_000, 12_000])

  // Killed after each of its batches, and then repeated.
  const killed = newMemory()
  const store = storeIn(killed)
  for (let callsLeft = 1; killed.positions.size === 0 || callsLeft < 4; callsLeft++) {
    let calls = 0
    const dying: LogStore = {
      ...store,
      append: (events, access) =>
        calls++ < callsLeft ? store.append(events, access) : Promise.reject(new Error('killed')),
    }
    const { logs } = await planLogs([path], 'auto')
    const ended = await failure(importRun(plainOptions, dying).read(logs[0]!))
    expect(ended).toMatch(/killed|it succeeded/)
  }
  const resumed = await importLogs([path], {}, killed)
  expect(totals(killed)).toEqual([lines!, agents!, otherRequests!, 0])
  expect(resumed.sums.lines).toBe(36_000)
  expect(killed.ids.size).toBe(memory.ids.size)

  const shared = newMemory()
  const { logs } = await planLogs([path], 'auto')
  const one = importRun(plainOptions, storeIn(shared))
  const two = importRun(plainOptions, storeIn(shared))
  await Promise.all([one.read(logs[0]!), two.read(logs[0]!)])
  expect(totals(shared)).toEqual([lines!, agents!, otherRequests!, 0])
  expect([one.sums.stored + two.sums.stored, one.sums.lines, two.sums.people]).toEqual([
    12_000,
    36_000,
    one.sums.people,
  ])
  for (const { stored, deduped, people, excluded, bad, lines: lineCount } of [one.sums, two.sums])
    expect(stored + deduped + people + excluded + bad).toBe(lineCount)
})

test('two imports of one log with other batches and delays store each line once', async () => {
  using temp = tempDir('access')
  const path = temp.join('a.log')
  writeFileSync(path, mixed(9_000))
  const alone = newMemory()
  await importLogs([path], {}, alone)
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(fc.integer({ min: 20, max: 900 }), fc.integer({ min: 20, max: 900 })),
      fc.infiniteStream(fc.integer({ min: 0, max: 3 })),
      async (sizes, delays) => {
        const shared = newMemory()
        const { logs } = await planLogs([path], 'auto')
        const runs = sizes.map((eventsMax) => {
          const store = storeIn(shared)
          return importRun(plainOptions, {
            ...store,
            eventsMax,
            async append(events, access) {
              for (let turns = delays.next().value as number; turns > 0; turns--) await Bun.sleep(0)
              const answer = await store.append(events, access)
              for (let turns = delays.next().value as number; turns > 0; turns--) await Bun.sleep(0)
              return answer
            },
          })
        })
        await Promise.all(runs.map((run) => run.read(logs[0]!)))
        expect(totals(shared)).toEqual(totals(alone))
        expect(shared.ids).toEqual(alone.ids)
        expect(runs.reduce((sum, { sums }) => sum + sums.stored, 0)).toBe(3_000)
        for (const { sums } of runs) expect(sums.stored + sums.deduped).toBe(3_000)
      },
    ),
    { numRuns: runs(20) },
  )
})

test('another log with the same first line is another log; an older copy is not', async () => {
  using temp = tempDir('access')
  const memory = newMemory()
  const first = line({ path: '/first' })
  writeFileSync(temp.join('a.log'), first + mixed(100))
  writeFileSync(temp.join('twin.log'), first + mixed(100, 5_000))
  writeFileSync(temp.join('twin.gz'), Bun.gzipSync(first + mixed(200, 7_000)))
  writeFileSync(temp.join('copy.log'), first + mixed(50))
  const stored = async (name: string) => (await importLogs([temp.join(name)], {}, memory)).sums.stored
  expect([await stored('a.log'), await stored('twin.log'), await stored('twin.gz')]).toEqual([35, 35, 68])
  expect([await stored('copy.log'), await stored('twin.log'), await stored('twin.gz')]).toEqual([0, 0, 0])
  expect(totals(memory)[0]).toBe(101 + 101 + 201)
  const ids = [...memory.positions.keys()].map((source) => source.slice(64))
  expect(ids).toEqual(['', ':2', ':3'])
})

test('a line without its end is stored when it is complete', async () => {
  using temp = tempDir('access')
  const path = temp.join('a.log')
  const memory = newMemory()
  const half = line({ second: 7, path: '/half' })
  writeFileSync(path, mixed(10) + half.slice(0, 50))
  expect((await importLogs([path], {}, memory)).sums).toMatchObject({ lines: 11, bad: 1 })
  expect(totals(memory)).toEqual([10, 4, 6, 0])
  writeFileSync(path, mixed(10) + half.slice(0, -1)) // a request, but its line may go on
  expect((await importLogs([path], {}, memory)).sums).toMatchObject({ stored: 1, bad: 0 })
  writeFileSync(path, `${mixed(10)}${half}${mixed(3, 20)}`)
  expect((await importLogs([path], {}, memory)).sums).toMatchObject({ lines: 14, stored: 1, deduped: 5 })
  expect(totals(memory)).toEqual([14, 6, 8, 0])
  writeFileSync(path, `${mixed(10)}${half}${mixed(3, 20)}${half.slice(0, -1)}`)
  await importLogs([path], {}, memory)
  writeFileSync(path, `${mixed(10)}${half}${mixed(3, 20)}${half.slice(0, -1)} "more"\n`)
  expect((await importLogs([path], {}, memory)).sums.badLines).toEqual([
    { path, line: 15, message: 'was imported before it was complete' },
  ])
})

test('logs that were joined after each was imported are not stored again', async () => {
  using temp = tempDir('joined')
  const first = mixed(5)
  const second = mixed(5, 100)
  const third = mixed(5, 200)
  const path = (name: string, text: string): string => {
    const file = temp.join(name)
    writeFileSync(file, text)
    return file
  }
  const memory = newMemory()
  await importLogs([path('a', first), path('b', second)], {}, memory)
  const totalsBefore = totals(memory)
  for (const joined of [first + second, second + first, first + second + third]) {
    const { problems } = await importLogs([path('joined', joined)], {}, memory)
    expect(problems).toMatchObject([{ message: expect.stringContaining('continues with another log') }])
    expect(totals(memory)).toEqual(totalsBefore)
  }
  // No other log begins with the lines that this one gained.
  const { problems } = await importLogs([path('a', first + third)], {}, memory)
  expect(problems).toEqual([])
  expect(totals(memory)[0]).toBe(totalsBefore[0]! + 5)
})
