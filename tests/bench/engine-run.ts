/** One engine under the load of `postgres.bench.ts`: batches, single events, several nodes, a history and its reads. */
import type { Appliance } from '../support/binary.ts'
import { load, quantile } from '../support/load.ts'
import { fixedTraffic, rareVendor } from './fixed-traffic.ts'
import { keyOf, path, storedEvents } from './loads.ts'
import { processorSeconds, watchStolen } from './report.ts'

const dayMs = 86_400_000
const batchOf = 100
const connections = 16
/** Enough connections that a node always has events to work on while it waits for a commit. */
const fullConnections = 64
const singleConnections = 32
/** The numbers of single events, beyond those of all batches. */
const firstSingle = 3_000_000_000
const catchUpMaxMs = 120_000
/** Shorter than 30 days by what a run may take: the count of what is stored covers the 30 days before it. */
const historyMs = 30 * dayMs - 7_200_000

/** What differs between the engines. */
export interface Engine {
  start(node: number): Promise<Appliance>
  /** Arrivals that wait for due work; 0 when commits do it. */
  behind(): Promise<number>
  /** Processor time of a database's own processes. */
  serverSeconds(): number
  /** Bytes by table. */
  sizes(): Promise<Map<string, number>>
  stop(): Promise<void>
}

export interface RunOptions {
  seconds: number // of each load
  warmUpSeconds: number
  historyEvents: number
  rounds: number // of each read
}

export interface LoadFound {
  name: string
  perSecond: number
  p50Ms: number
  p99Ms: number
  refused: number
  /** Processor time per event. */
  nodeUs: number
  serverUs: number
  stolenPercent: number | null
  /** Arrivals that waited for due work when the load ended, and how long that took. */
  behind: number
  catchUpSeconds: number
}

export interface Read {
  what: string
  p50Ms: number
  p99Ms: number
}

export interface EngineRun {
  loads: LoadFound[]
  historyPerSecond: number
  reads: Read[]
  bytes: { table: string; perEvent: number }[]
  acknowledged: number
  stored: number
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0)

/** `nodes`: how many send at once in each further load. */
export async function runEngine(engine: Engine, nodes: number[], options: RunOptions): Promise<EngineRun> {
  const { seconds, warmUpSeconds, historyEvents, rounds } = options
  const started: Appliance[] = [await engine.start(1)]
  const [first] = started as [Appliance]
  const ingest = await keyOf(first, 'ingest')
  const secret = await keyOf(first, 'secret')
  const history = fixedTraffic(path, ingest, historyEvents, historyMs)
  const single = fixedTraffic(path, ingest, 0, 0, 1)
  let batch = historyEvents / batchOf
  let one = firstSingle
  const batches: Sent = { each: batchOf, connections, next: () => history.request(batch++) }
  const singles: Sent = { each: 1, connections: singleConnections, next: () => single.request(one++) }
  const loads: LoadFound[] = []
  let acknowledged = 0
  const run = async (name: string, sentLoad: Sent, to: number, forSeconds: number) => {
    const servers = started.slice(0, to)
    // Each of several nodes gets a share of the load, so it compiles its code later.
    acknowledged += (await send(sentLoad, servers, warmUpSeconds * to)).events
    await caughtUp(engine)
    const { events, found: result } = await measured(engine, name, sentLoad, servers, forSeconds)
    acknowledged += events
    loads.push(result)
  }
  await run('batches of 100, one node', batches, 1, seconds)
  await run('single events, one node', singles, 1, seconds / 2)
  for (const count of nodes) {
    while (started.length < count) started.push(await engine.start(started.length + 1))
    for (const connectionCount of [connections, fullConnections])
      await run(
        `batches of 100, ${count} nodes, ${connectionCount} connections each`,
        { ...batches, connections: connectionCount },
        count,
        seconds,
      )
  }
  let old = 0
  const next = () => (old < historyEvents / batchOf ? history.request(old++) : null)
  const filled = await send({ each: batchOf, connections, next }, [first], Infinity)
  acknowledged += filled.events
  await caughtUp(engine)
  const stored = await storedEvents(first, secret)
  const bytes = Array.from(await engine.sizes(), ([name, size]) => ({ table: name, perEvent: size / stored }))
  const reads = await readAll(first, secret, rounds)
  await Promise.all(started.map((server) => server.stop()))
  await engine.stop()
  return {
    loads,
    historyPerSecond: filled.perSecond,
    reads,
    acknowledged,
    stored,
    bytes: bytes.sort((a, b) => b.perEvent - a.perEvent),
  }
}

interface Sent {
  each: number
  connections: number // to each server
  next(): Uint8Array | null
}

async function send(
  { each: batchSize, connections: connectionCount, next }: Sent,
  to: readonly Appliance[],
  seconds: number,
) {
  const results = await Promise.all(
    to.map(({ url }) => load({ url, connections: connectionCount, seconds, next })),
  )
  const events = sum(results.map(({ requests }) => requests)) * batchSize
  const tookSeconds = Math.max(...results.map((result) => result.seconds))
  return { results, events, perSecond: Math.round(events / tookSeconds) }
}

async function measured(
  engine: Engine,
  name: string,
  sentLoad: Sent,
  to: readonly Appliance[],
  seconds: number,
): Promise<{ events: number; found: LoadFound }> {
  const stolen = watchStolen()
  const readUsage = () => [sum(to.map(({ pid }) => processorSeconds(pid))), engine.serverSeconds()] as const
  const [nodesBefore, serverBefore] = readUsage()
  const { results, events, perSecond } = await send(sentLoad, to, seconds)
  const [nodesAfter, serverAfter] = readUsage()
  const result = {
    name,
    perSecond,
    stolenPercent: stolen.end(),
    behind: await engine.behind(),
    p50Ms: Math.max(...results.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
    refused: sum(results.map(({ refused }) => refused)),
    nodeUs: ((nodesAfter - nodesBefore) / events) * 1e6,
    serverUs: ((serverAfter - serverBefore) / events) * 1e6,
    catchUpSeconds: await caughtUp(engine),
  }
  return { events, found: result }
}

/** Returns the seconds that it took. */
async function caughtUp(engine: Engine): Promise<number> {
  const startedMs = performance.now()
  while ((await engine.behind()) > 0 && performance.now() - startedMs < catchUpMaxMs) await Bun.sleep(50)
  return (performance.now() - startedMs) / 1_000
}

/** Of contract §6: each filter alone, and some together. */
const filters: [what: string, query: string][] = [
  ['no filter', ''],
  ['type, 1 in 6', 'type=tool.executed'],
  ['type prefix', 'type=tool.*'],
  ['class', 'agentClass=dom'],
  ['vendor, common', 'vendor=GPTBot'],
  ['vendor, 1 in 10,000', `vendor=${rareVendor}`],
  ['name missing', 'name='],
  ['purpose, unknown', 'purpose=nothing'],
  ['trust', 'trust=detected'],
  ['outcome, 1 in 11', 'outcome=blocked'],
  ['site', 'siteId=shop-acme'],
  ['session', 'sessionId=ses_000000000007'],
  ['session, unknown', 'sessionId=nobody'],
  ['tool', 'tool=cart.3'],
  ['protocol', 'protocol=web-bot-auth'],
  ['decision', 'decision=deny'],
  ['subject', 'subject=user-7'],
  ['outcome and type', 'type=authz.*&outcome=blocked'],
  ['pair that never meets', `vendor=${rareVendor}&sessionId=nobody`],
]

async function readAll(server: Appliance, key: string, rounds: number): Promise<Read[]> {
  const middleMs = Date.now() - 15 * dayMs
  const middle = new Date(middleMs).toISOString()
  const hourLater = new Date(middleMs + 3_600_000).toISOString()
  const page = '/v1/traces?limit=200&'
  const questions: [what: string, url: string][] = [
    ...filters.map(([filterName, query]): [string, string] => [`page of 200: ${filterName}`, page + query]),
    ['page of 200: 15 days ago', `${page}until=${middle}`],
    ['page of 200: text of an hour', `${page}since=${middle}&until=${hourLater}&q=products%2F7`],
    ['sessions, page of 50', '/v1/sessions'],
    ['metrics of 30 days', '/v1/metrics'],
  ]
  const reads: Read[] = []
  for (const [question, url] of questions) {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) {
      const startedMs = performance.now()
      const response = await fetch(server.url + url, { headers: { authorization: `Bearer ${key}` } })
      await response.arrayBuffer()
      if (response.status !== 200) throw new Error(`${url}: ${response.status}`)
      times.push(performance.now() - startedMs)
    }
    reads.push({ what: question, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) })
  }
  return reads
}
