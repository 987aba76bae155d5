/** What the executable does over HTTP: first answer, idle memory, durable ingest; each beside its floor in this run. */
import { startAppliance } from '../support/binary.ts'
import { ingestRequest, load, type LoadResult } from '../support/load.ts'
import { tempDir } from '../support/temp-dir.ts'
import { types, userAgent } from './engine-events.ts'
import { bareAppend, startParseOnly } from './floors.ts'
import { machine, recordTable, residentMiB, table, watchStolen } from './report.ts'

export interface HttpBench {
  firstAnswerMs: number // median of the starts
  idleMiB: number
  single: Measured
  singleOfMany: Measured
  batch: Measured
}

type Rate = Pick<LoadResult, 'requests' | 'seconds' | 'p50Ms' | 'p99Ms'>

interface Measured {
  ours: Rate
  stolenPercent: number | null // of the cores' time meanwhile, by the host
  parseOnly: Rate
  eventsEach: number
  bareAppendsPerSecond: number // of one request's events, each with its fsync
}

const path = '/v1/sdk/events'

const rounds = 5

let nextId = 0
function eventText(): string {
  const id = nextId++
  const kind = id % 6
  return JSON.stringify({
    id: `trc_${crypto.randomUUID()}`,
    siteId: 'shop-acme',
    sessionId: `ses_${Math.floor(id / 20)}`,
    occurredAt: new Date(Date.now() - (id % 3_600_000)).toISOString(),
    type: types[kind],
    outcome: id % 11 ? 'success' : 'blocked',
    ...(kind === 3 ? { tool: 'cart.add' } : {}),
    durationMs: (id * 13) % 900,
    agent: {
      class: 'crawler',
      trust: 'detected',
      confidence: 0.93,
      vendor: 'GPTBot',
      userAgent,
    },
    metadata: { page: `/products/${id % 50}`, protocol: 'web-bot-auth' },
  })
}

const bodyOf = (count: number) => `{"events":[${Array.from({ length: count }, eventText).join(',')}]}`

/** `seconds` for each load; `starts` for the time to the first answer. */
async function httpBench({ seconds, starts }: { seconds: number; starts: number }): Promise<HttpBench> {
  const firstAnswerMs = await firstAnswer(starts)
  await using appliance = await startAppliance()
  await Bun.sleep(1_000)
  const idleMiB = residentMiB(appliance.pid)
  const keyExit = await appliance.cli(
    'key',
    'create',
    '--org',
    'default',
    '--kind',
    'ingest',
    '--label',
    'bench',
    '--json',
  )
  const { key } = JSON.parse(keyExit.stdout) as { key: string }
  const single = await measure(appliance.url, key, { eventsEach: 1, connections: 32, seconds })
  const singleOfMany = await measure(appliance.url, key, { eventsEach: 1, connections: 128, seconds })
  const batch = await measure(appliance.url, key, { eventsEach: 100, connections: 16, seconds })
  return { firstAnswerMs, idleMiB, single, singleOfMany, batch }
}

async function measure(
  url: string,
  key: string,
  { eventsEach, connections, seconds }: { eventsEach: number; connections: number; seconds: number },
): Promise<Measured> {
  using dir = tempDir('bench')
  const bareAppendsPerSecond = bareAppend(dir.join('floor'), bodyOf(eventsEach), 300)
  const parseOnly = await startParseOnly()
  // Requests are made beforehand, so that the generator costs little while the server works.
  const createRequests = (count: number) =>
    Array.from({ length: count }, () => ingestRequest(path, key, bodyOf(eventsEach)))
  const floorRequests = createRequests(200)
  let turn = 0
  const nextOfFloor = () => floorRequests[turn++ % 200]!
  // A fresh process interprets its code before it compiles it: the rate that stays is what counts.
  const warmUpSeconds = seconds / 5
  const requests = createRequests(
    Math.ceil(((seconds + warmUpSeconds) * 40_000) / (eventsEach === 1 ? 1 : 30)),
  )
  const next = () => requests.pop() ?? null
  await load({ url, connections, seconds: warmUpSeconds, next })
  // In turns, because the machine of another moment is another machine.
  const ourResults: LoadResult[] = []
  const floor: LoadResult[] = []
  const stolen = watchStolen()
  for (let round = 0; round < rounds; round++) {
    const floorSeconds = seconds / rounds / 2
    floor.push(await load({ url: parseOnly.url, connections, seconds: floorSeconds, next: nextOfFloor }))
    ourResults.push(await load({ url, connections, seconds: seconds / rounds, next }))
  }
  const stolenPercent = stolen.end()
  await parseOnly.stop()
  return {
    ours: inAll(ourResults),
    parseOnly: inAll(floor),
    stolenPercent,
    eventsEach,
    bareAppendsPerSecond,
  }
}

/** The rate of all rounds together, and the median of their times. */
function inAll(results: LoadResult[]): Rate {
  const sum = (key: 'requests' | 'seconds') => results.reduce((total, result) => total + result[key], 0)
  const median = (key: 'p50Ms' | 'p99Ms') =>
    results.map((result) => result[key]).toSorted((a, b) => a - b)[results.length >> 1]!
  return {
    requests: sum('requests'),
    seconds: sum('seconds'),
    p50Ms: median('p50Ms'),
    p99Ms: median('p99Ms'),
  }
}

async function firstAnswer(starts: number): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < starts; i++) {
    const startedMs = performance.now()
    await using appliance = await startAppliance()
    await fetch(`${appliance.url}/healthz`)
    times.push(performance.now() - startedMs)
  }
  return times.sort((a, b) => a - b)[times.length >> 1]!
}

function httpTable(result: HttpBench): string {
  const row = (
    name: string,
    { ours: ourRate, stolenPercent, parseOnly, eventsEach, bareAppendsPerSecond }: Measured,
  ) => [
    name,
    Math.round(ourRate.requests / ourRate.seconds),
    Math.round((ourRate.requests * eventsEach) / ourRate.seconds),
    ourRate.p50Ms.toFixed(1),
    ourRate.p99Ms.toFixed(1),
    stolenPercent ?? '',
    Math.round((parseOnly.requests * eventsEach) / parseOnly.seconds),
    Math.round(bareAppendsPerSecond * eventsEach),
  ]
  const head = [
    'durable ingest',
    'requests/s',
    'events/s',
    'p50 ms',
    'p99 ms',
    'taken by the host %',
    'parse-only events/s',
    'bare append events/s',
  ]
  return [
    `first answer ${result.firstAnswerMs.toFixed(0)} ms, idle ${result.idleMiB.toFixed(0)} MiB`,
    table(head, [
      row('single, 32 connections', result.single),
      row('single, 128 connections', result.singleOfMany),
      row('batches of 100, 16 connections', result.batch),
    ]),
  ].join('\n\n')
}

if (import.meta.main) {
  const short = process.argv.includes('--short')
  const text = httpTable(await httpBench(short ? { seconds: 3, starts: 5 } : { seconds: 15, starts: 11 }))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (!short) recordTable('HTTP', text)
}
