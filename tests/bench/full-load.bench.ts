/** The executable at full load over a filled store: rate, memory, reads, resends, overload, unusual values. */
import { startAppliance, type Appliance } from '../support/binary.ts'
import { ingestRequest, load, quantile, type LoadResult } from '../support/load.ts'
import { batchEvents, fixedTraffic, rareVendor } from './fixed-traffic.ts'
import { connections, keyOf, path, runner, storedEvents, type Runner } from './loads.ts'
import { probeRefusals } from './refusal-probe.ts'
import { machine, recordTable, residentMiB, table, watchMemory, watchStolen, type Memory } from './report.ts'

const dayMs = 86_400_000

export interface FullLoad {
  events: number
  fill: {
    perSecond: number[]
    p99Ms: number // of the last tenth, like memory
    memory: Memory
    refused: number
  }
  reads: Read[]
  resends: { freshPerSecond: number; oldPerSecond: number; freshP99Ms: number } // p99 beside old ones
  overload: Overload
  hostile: { events: number; refused: number; grewMiB: number; metricsKiB: number }
  /** Steal time in percent in each phase: fill, reads, resends, overload. */
  stolenPercents: (number | null)[]
  acknowledged: number
  stored: number
}

/** A page with the default limit (50) and one with 200 events. */
interface Read {
  what: string
  page: { p50Ms: number; p99Ms: number }
  page200: { p50Ms: number; p99Ms: number } | null // null: not a page
}

interface Overload {
  offeredPerSecond: number
  takenPerSecond: number
  refused: number
  probed: { events: number; refusedP99Ms: number } // by a separate process (refusal-probe.ts)
  firstHalf: Memory
  secondHalf: Memory
}

/** `seconds` for each measurement after the fill. An overload takes a second to open 2,000 connections. */
export async function fullLoadBench(
  events: number,
  seconds: number,
  overload = { seconds: Math.max(1, seconds), connections: 2_000 },
): Promise<FullLoad> {
  const args = ['--rate-limit-ingest', 'off', '--rate-limit-gateway', 'off']
  const server = await startAppliance({ args })
  try {
    const ingest = await keyOf(server, 'ingest')
    const secret = await keyOf(server, 'secret')
    const traffic = fixedTraffic(path, ingest, events, 20 * dayMs)
    const run = runner(server, traffic)
    const stolenPercents: (number | null)[] = []
    const phase = async <T>(work: () => Promise<T>): Promise<T> => {
      const stolen = watchStolen()
      const result = await work()
      stolenPercents.push(stolen.end())
      return result
    }
    const fill = await phase(() => filled(server, run, events))
    const reads = await phase(() => readsMeanwhile(server, secret, run, seconds))
    const resends = await phase(() => resent(run, events, seconds))
    const overloading = { ...overload, takenPerSecond: resends.freshPerSecond }
    const refused = await phase(() => overloaded(server, ingest, run, overloading))
    const acknowledged = run.acknowledged() + refused.probed.events
    const counts = { acknowledged, stored: await storedEvents(server, secret) }
    const hostile = await hostileValues(server, ingest, secret, Math.min(events, 300_000))
    return { events, fill, reads, resends, overload: refused, hostile, stolenPercents, ...counts }
  } finally {
    await server.stop()
  }
}

async function filled(server: Appliance, run: Runner, events: number): Promise<FullLoad['fill']> {
  const perSecond: number[] = []
  let p99Ms = 0
  let memory: Memory = { medianMiB: 0, mostMiB: 0 }
  let refused = 0
  for (let tenth = 0; tenth < 10; tenth++) {
    const watch = watchMemory(server.pid)
    const part = await run.fresh({ batches: events / batchEvents / 10, seconds: 600 })
    memory = watch.end()
    refused += part.refused
    perSecond.push(rate(part))
    p99Ms = part.p99Ms
  }
  return { perSecond, p99Ms, memory, refused }
}

const rate = ({ requests, seconds }: LoadResult): number => Math.round((requests * batchEvents) / seconds)

async function readsMeanwhile(
  server: Appliance,
  key: string,
  run: Runner,
  seconds: number,
): Promise<FullLoad['reads']> {
  const filters: [string, string][] = [
    ['a page', ''],
    ['… of a type', '&type=tool.executed'],
    ['… of an outcome', '&outcome=blocked'],
    ['… of a common vendor', '&vendor=GPTBot'],
    ['… of a vendor, one in ten thousand', `&vendor=${rareVendor}`],
    ['… of a session', `&sessionId=ses_${'0'.repeat(10)}50`],
    ['… of a pair that never meets', `&vendor=${rareVendor}&tool=cart.3`],
  ]
  const questions = filters.flatMap(([, filter]) =>
    [50, 200].map((limit) => `/v1/traces?limit=${limit}${filter}`),
  )
  const took = new Map([...questions, '/v1/metrics'].map((question) => [question, [] as number[]]))
  let ended = false
  const reading = (async () => {
    const headers = { authorization: `Bearer ${key}` }
    while (!ended) {
      for (const [question, times] of took) {
        const startedMs = performance.now()
        const response = await fetch(server.url + question, { headers })
        await response.arrayBuffer()
        if (response.status !== 200) throw new Error(`${question}: ${response.status}`)
        times.push(performance.now() - startedMs)
      }
    }
  })()
  await run.fresh({ seconds: seconds * 3 })
  ended = true
  await reading
  const quantiles = (question: string) => {
    const times = took.get(question) ?? []
    return { p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) }
  }
  const pages = filters.map(([filterName], index): Read => {
    const page = quantiles(questions[index * 2]!)
    const page200 = quantiles(questions[index * 2 + 1]!)
    return { what: filterName, page, page200 }
  })
  return [...pages, { what: 'metrics of 30 days', page: quantiles('/v1/metrics'), page200: null }]
}

/** Batches from the whole store, in an order unrelated to that of their first arrival. */
function* scattered(batches: number, from: number): Generator<number> {
  for (let n = from; ; n++) yield (n * 7_919) % batches
}

async function resent(run: Runner, events: number, seconds: number): Promise<FullLoad['resends']> {
  const batches = events / batchEvents
  const fresh = await run.fresh({ seconds })
  const old = await run.old(scattered(batches, 1), seconds, connections)
  const [beside] = await Promise.all([
    run.fresh({ seconds }),
    run.old(scattered(batches, batches / 2), seconds, 4),
  ])
  return { freshPerSecond: rate(fresh), oldPerSecond: rate(old), freshP99Ms: beside.p99Ms }
}

/** Sends five times the rate that was accepted before, on many connections, and resends rejected events. */
async function overloaded(
  server: Appliance,
  key: string,
  run: Runner,
  { takenPerSecond, ...loadBounds }: { takenPerSecond: number; seconds: number; connections: number },
): Promise<Overload> {
  const { seconds } = loadBounds
  const options = { ...loadBounds, requestsPerSecond: (takenPerSecond / batchEvents) * 5 }
  const halves: { memory: Memory; result: LoadResult }[] = []
  const probed: Overload['probed'] = { events: 0, refusedP99Ms: 0 }
  for (let half = 0; half < 2; half++) {
    const watch = watchMemory(server.pid)
    // Not while thousands of connections open, which is not measured here.
    const probing = Bun.sleep(seconds * 250).then(() => probeRefusals(server.url, key, seconds * 0.75))
    const loads = [run.fresh(options), probing] as const
    const [result, probe] = await Promise.all(loads)
    halves.push({ memory: watch.end(), result })
    probed.events += probe.requests * batchEvents
    probed.refusedP99Ms = Math.max(probed.refusedP99Ms, probe.refusedP99Ms)
  }
  const [first, second] = halves
  const { requests, refused } = second!.result
  return {
    offeredPerSecond: Math.round(((requests + refused) * batchEvents) / second!.result.seconds),
    takenPerSecond: rate(second!.result),
    refused,
    probed,
    firstHalf: first!.memory,
    secondHalf: second!.memory,
  }
}

const plain = () => ({
  siteId: 'shop-acme',
  occurredAt: new Date().toISOString(),
  type: 'tool.executed',
  outcome: 'success',
})

function eventsRequest(key: string, count: number, event: (n: number) => object): Uint8Array {
  return ingestRequest(
    path,
    key,
    JSON.stringify({ events: Array.from({ length: count }, (_, n) => event(n)) }),
  )
}

/** With more types, the organization's events are rejected and nothing is measured. */
const typesTaken = 4_000

/** Every vendor, site, session, tool and page is unique, with the maximum number of types. */
async function hostileValues(
  server: Appliance,
  key: string,
  secret: string,
  events: number,
): Promise<FullLoad['hostile']> {
  const mibBefore = residentMiB(server.pid)
  const event = (n: number) => ({
    ...plain(),
    id: `odd_${n}`,
    siteId: `site-${n}`,
    sessionId: `ses-${n}`,
    type: `t${n % typesTaken}.x`,
    tool: `tool${n}`,
    agent: { class: `c${n}`, vendor: `v${n}` },
    metadata: { page: `/p/${n}`, subject: `u${n}` },
  })
  let sentCount = 0
  const next = () => {
    if (sentCount >= events) return null
    const first = (sentCount += batchEvents) - batchEvents
    return eventsRequest(key, batchEvents, (n) => event(first + n))
  }
  const { refused } = await load({ url: server.url, connections, seconds: 300, next })
  const response = await fetch(`${server.url}/v1/metrics`, { headers: { authorization: `Bearer ${secret}` } })
  const metricsKiB = Math.round((await response.arrayBuffer()).byteLength / 1_024)
  return { events, refused, grewMiB: Math.round(residentMiB(server.pid) - mibBefore), metricsKiB }
}

export function fullLoadTables(result: FullLoad): string {
  const { events, fill, reads, resends, overload, hostile, stolenPercents, acknowledged, stored } = result
  const shown = (n: number) => n.toLocaleString('en-US')
  const ms = (n: number) => Math.round(n * 10) / 10
  const ratio = (resends.oldPerSecond / resends.freshPerSecond).toFixed(2)
  return `${shown(events)} events in batches of ${batchEvents}, ${connections} connections, made on the same cores

${table(
  ['full load', ''],
  [
    ['events/s, by tenths', fill.perSecond.map((rate) => `${Math.round(rate / 1_000)}k`).join(' ')],
    ['taken by the host: filling, reads, resends, five times that; %', stolenPercents.join(', ')],
    ['p99 of the last tenth, ms', ms(fill.p99Ms)],
    ['refused while the disk stood still, and sent again', fill.refused],
    ['resident in the last tenth: median, most, MiB', memoryText(fill.memory)],
    ['resends of old scattered batches, events/s', resends.oldPerSecond],
    ['fresh ones right before, events/s', resends.freshPerSecond],
    ['ratio', ratio],
    ['p99 of fresh ones beside a client that resends, ms', ms(resends.freshP99Ms)],
    ['five times that: offered, events/s', overload.offeredPerSecond],
    ['… taken, events/s', overload.takenPerSecond],
    ['… refused requests, sent again', overload.refused],
    ['… p99 of a refusal, seen by another process, ms', ms(overload.probed.refusedP99Ms)],
    ['… resident in the first half: median, most, MiB', memoryText(overload.firstHalf)],
    ['… in the second', memoryText(overload.secondHalf)],
    [`${shown(hostile.events)} events of which none shares a value: memory, MiB`, hostile.grewMiB],
    ['of their requests refused', hostile.refused],
    ['metrics answer then, KiB', hostile.metricsKiB],
    ['acknowledged', acknowledged],
    ['stored', stored],
  ],
)}

${table(
  ['during full ingest', 'p50 ms', 'p99 ms', 'of 200: p50', 'p99'],
  reads.map(({ what: pageName, page, page200 }) => [
    pageName,
    ms(page.p50Ms),
    ms(page.p99Ms),
    ...(page200 === null ? ['', ''] : [ms(page200.p50Ms), ms(page200.p99Ms)]),
  ]),
)}`
}

const memoryText = ({ medianMiB, mostMiB }: Memory): string => `${medianMiB}, ${mostMiB}`

if (import.meta.main) {
  const isFull = process.argv.includes('--full')
  const text = fullLoadTables(await fullLoadBench(isFull ? 10_000_000 : 300_000, isFull ? 10 : 4))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (isFull) recordTable('Full load', text)
}
