/**
 * Hours of mixed traffic with faults on the executable, run by hand: `bun tests/soak/soak.ts --minutes 120`. Nothing
 * that was acknowledged may be missing at the end, and no series of the process, the disk and the answers may rise.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../../scripts/build.ts'
import { machine, table } from '../bench/report.ts'
import { anySeed, seeded, type Seeded } from '../crash/seeded.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { fakeTime } from '../crash/nodes/fleet.ts'
import { tempDir } from '../support/temp-dir.ts'
import { soakChart } from './chart.ts'
import { latencies, type Latencies, processValues, type Sample, type Trend, trendsOf } from './measure.ts'
import { batchSizes, owner, signIn, soakId, startTraffic, type Target, type Traffic } from './traffic.ts'

const usage = `bun tests/soak/soak.ts [option …]
--minutes N          how long; 120 when not said
--clock fast|real    fast: a day in 27 minutes, with libfaketime; real when not said
--rate N             events a second; 1,000 when not said
--seed N             repeats the choices of a run
--out FOLDER         of the picture and the samples; out/soak when not said`

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '120' },
    clock: { type: 'string', default: 'real' },
    rate: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    help: { type: 'boolean' },
    out: { type: 'string', default: join(root, 'out', 'soak') },
  },
})

const isFast = options.clock === 'fast'

const sampleEveryMs = 10_000
/** The clock of the server goes ahead by this with every sample: less than what it takes for a wrong clock. */
const stepMs = 9 * 60_000
/** A fault, or a restart, comes once in so many samples. */
const faultEverySamples = 6
/** How long deliveries of the end may take. */
const settledWithinMs = 120_000
/** How long a verb over all events may take. */
const verbMs = 20 * 60_000

interface Soak {
  server: Appliance
  target: Target
  traffic: Traffic
  random: Seeded
  beganMs: number // by `performance.now`
  startedMs: number // of the server process
  startsS: number[]
  start(): Promise<void>
}

type Fault = (soak: Soak) => Promise<void>

/** Made by turns in a random order. A process that ends takes its memory with it, so that comes seldom. */
const faults: { [name: string]: Fault } = {
  async 'receiver away for 20 s'({ traffic }) {
    traffic.isReceiverAway = true
    await Bun.sleep(20_000)
    traffic.isReceiverAway = false
  },
  async 'suspended for 5 s'({ server }) {
    process.kill(server.pid, 'SIGSTOP')
    await Bun.sleep(5_000)
    process.kill(server.pid, 'SIGCONT')
  },
  async backup({ server, traffic }) {
    const { code, stderr } = await server.cli('backup', 'create')
    if (code !== 0) traffic.faults.push(`backup: ${code} ${stderr}`)
  },
  async 'a session erased'({ server, target, traffic }) {
    const headers = { authorization: `Bearer ${target.keys.ingest}`, 'content-type': 'application/json' }
    const body = JSON.stringify({
      events: [
        {
          id: `erased_${performance.now()}`,
          siteId: 'shop-0',
          sessionId: 'erased',
          type: 'tool.executed',
          outcome: 'success',
        },
      ],
    })
    await fetch(`${target.url}/v1/sdk/events`, { method: 'POST', headers, body })
    const { code, stderr } = await server.cli('erase', '--session', 'erased', '--yes')
    if (code !== 0) traffic.faults.push(`erase: ${code} ${stderr}`)
  },
  async '200 connections that send half a request'({ server }) {
    const { hostname, port } = new URL(server.url)
    const socket = { data() {}, error() {}, close() {} }
    const open = Array.from({ length: 200 }, () => Bun.connect({ hostname, port: Number(port), socket }))
    const sockets = await Promise.all(open)
    for (const halfSocket of sockets)
      halfSocket.write('POST /v1/sdk/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{')
    await Bun.sleep(5_000)
    for (const halfSocket of sockets) halfSocket.end()
  },
  async 'an export that is not read'({ target }) {
    const headers = { authorization: `Bearer ${target.keys.secret}` }
    const answer = await fetch(`${target.url}/v1/traces?format=ndjson`, { headers }).catch(() => null)
    await Bun.sleep(5_000)
    await answer?.body?.cancel()
  },
  async 'bodies that are no events'({ target }) {
    const headers = { authorization: `Bearer ${target.keys.ingest}`, 'content-type': 'application/json' }
    for (const body of ['{', '[]', '{"events":1}', '{"events":[{}]}', 'x'.repeat(100_000)])
      await fetch(`${target.url}/v1/sdk/events`, { method: 'POST', headers, body }).catch(() => null)
  },
}

async function restart(soak: Soak, method: 'kill' | 'stop'): Promise<void> {
  await soak.server[method]()
  await soak.start()
}

/** The clock of the server, which this process sets. */
interface Clock {
  nowMs(): number
  env: { [name: string]: string }
  advance(): void
}

const realClock: Clock = { nowMs: () => Date.now(), env: {}, advance() {} }

/** libfaketime reads the file again every second. */
function fastClock(file: string): Clock {
  let aheadMs = 0
  const set = (ms: number): void => writeFileSync(file, `+${(ms / 1_000).toFixed(0)}s\n`)
  set(0)
  return {
    nowMs: () => Date.now() + aheadMs,
    env: {
      LD_PRELOAD: fakeTime,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    advance: () => set((aheadMs += stepMs)),
  }
}

const serveOptions = [
  '--rate-limit-gateway',
  'off',
  '--webhook-allow',
  '127.0.0.0/8',
  '--webhook-backoff',
  '10s,20s,30s',
  '--dispatch-cron',
  '*/5 * * * * *',
  '--backup-keep',
  '1',
]

/** Starts the server and its traffic; `start` starts the server again after it ended. */
async function begin(dataDir: string, clock: Clock, seed: number, latencyRecorder: Latencies): Promise<Soak> {
  const env = { SIGHTGLASS_ADMIN_EMAIL: owner.email, SIGHTGLASS_ADMIN_PASSWORD: owner.password, ...clock.env }
  const args = [
    ...serveOptions,
    '--backup-dir',
    join(dataDir, '../backups'),
    ...(isFast ? ['--retention-days', '1', '--open-files'] : []),
  ]
  const beganMs = performance.now()
  const launch = () => startAppliance({ dataDir, env, args, verbTimeoutMs: verbMs })
  const server = await launch()
  const keyOf = async (kind: string): Promise<string> => {
    const keyResult = await server.cli('key', 'create', '--kind', kind, '--label', 'soak', '--json')
    return (JSON.parse(keyResult.stdout) as { key: string }).key
  }
  const keys = { ingest: await keyOf('ingest'), secret: await keyOf('secret') }
  const target: Target = { url: server.url, keys, cookie: await signIn(server.url) }
  const random = seeded(seed)
  const traffic = await startTraffic(
    { target, latencies: latencyRecorder, random, nowMs: clock.nowMs },
    Number(options.rate),
  )
  await addEndpoint(target, traffic.receiverUrl)
  const soak: Soak = {
    server,
    target,
    traffic,
    random,
    beganMs,
    startedMs: beganMs,
    startsS: [],
    async start() {
      soak.server = await launch()
      soak.startedMs = performance.now()
      soak.startsS.push((performance.now() - beganMs) / 1_000)
      target.url = soak.server.url
    },
  }
  return soak
}

/** Samples and faults until the time is up. Returns how often each fault was made. */
async function run(
  soak: Soak,
  clock: Clock,
  latencyRecorder: Latencies,
  samples: Sample[],
): Promise<{ [name: string]: number }> {
  const faultCounts: { [name: string]: number } = {}
  let order: string[] = []
  const count = Math.ceil((Number(options.minutes) * 60_000) / sampleEveryMs)
  const endings = new Map([
    ...([0.25, 0.75] as const).map((share) => [roundAt(count * share), 'kill'] as const),
    [roundAt(count / 2), 'stop'] as const,
  ])
  for (let n = 1; n <= count; n++) {
    await Bun.sleep(Math.max(0, soak.beganMs + n * sampleEveryMs - performance.now()))
    samples.push(sampleOf(soak, latencyRecorder))
    clock.advance()
    if (n % faultEverySamples !== 0) continue
    if (isFast) await soak.server.cli('clock', 'confirm')
    const ending = endings.get(n)
    if (order.length === 0) order = Object.keys(faults).toSorted(() => soak.random.fraction() - 0.5)
    const name = ending ?? order.pop()!
    await (ending === undefined ? faults[name]!(soak) : restart(soak, ending))
    faultCounts[name] = (faultCounts[name] ?? 0) + 1
    say(`${((n * sampleEveryMs) / 60_000).toFixed(0).padStart(4)} min  ${name}; ${shown(samples.at(-1)!)}`)
  }
  return faultCounts
}

const roundAt = (sample: number): number => Math.floor(sample / faultEverySamples) * faultEverySamples

async function main(): Promise<number> {
  const { minutes, rate, clock: kind } = options
  if (isFast && !existsSync(fakeTime)) {
    say('A fast clock needs libfaketime: apt-get install libfaketime')
    return 1
  }
  const seed = Number(options.seed ?? anySeed())
  using dir = tempDir('soak')
  const clock = isFast ? fastClock(dir.join('clock')) : realClock
  const latencyRecorder = latencies()
  say(
    `${minutes} minutes, ${kind} clock, ${rate} events/s, seed ${seed}; ${cpus().length} cores, Bun ${Bun.version}`,
  )
  const soak = await begin(dir.join('data'), clock, seed, latencyRecorder)
  const samples: Sample[] = []
  const faultCounts = await run(soak, clock, latencyRecorder, samples)
  const { traffic } = soak
  const missing = await settled(soak)
  await traffic.end()
  const trends = trendsOf(samples)
  await save(`Soak of ${minutes} minutes, ${kind} clock, ${rate} events/s`, samples, trends, soak.startsS)
  report({ trends, done: faultCounts, missing, traffic })
  const isClean =
    missing.length === 0 && traffic.faults.length === 0 && !trends.some(({ isRising }) => isRising)
  await soak.server.stop()
  return isClean ? 0 : 1
}

function sampleOf({ server, traffic, beganMs, startedMs }: Soak, latencyRecorder: Latencies): Sample {
  const now = performance.now()
  const values = { ...processValues(server.pid, server.dataDir, traffic.stored), ...latencyRecorder.take() }
  return { atS: (now - beganMs) / 1_000, processS: (now - startedMs) / 1_000, values }
}

async function addEndpoint({ url, keys }: Target, receiver: string): Promise<void> {
  const answer = await fetch(`${url}/v1/webhooks/endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver, retryWaits: Array.from({ length: 8 }, () => 10) }),
  })
  if (answer.status !== 201) throw new Error(`the endpoint: ${answer.status} ${await answer.text()}`)
}

/** What is missing or too much once the writers rest: stored events, the live stream, deliveries, `verify`. */
async function settled({ server, target, traffic }: Soak): Promise<string[]> {
  await traffic.endWriters()
  const missing: string[] = []
  const isFollowed = () => traffic.followed.every((next, writer) => next === traffic.acknowledged[writer])
  for (const endMs = performance.now() + settledWithinMs; !isFollowed() && performance.now() < endMs;)
    await Bun.sleep(200)
  if (!isFollowed())
    missing.push(`the live stream ends at ${traffic.followed}, acknowledged ${traffic.acknowledged}`)
  missing.push(...(await storedProblems(server, traffic)))
  missing.push(...(await deliveryProblems(target, traffic)))
  const verdict = await server.cli('verify')
  if (verdict.code !== 0) missing.push(`verify: ${verdict.stdout}${verdict.stderr}`)
  return missing
}

/** Retention takes the oldest of a writer, so what is stored of it has no gap and ends with what was acknowledged. */
async function storedProblems(server: Appliance, { acknowledged }: Traffic): Promise<string[]> {
  const { code, stdout, stderr } = await server.cli('export', 'traces')
  if (code !== 0) return [`export: ${code} ${stderr}`]
  const numbers: number[][] = batchSizes.map(() => [])
  for (const [, writer, number] of stdout.matchAll(/"id":"soak_(\d)_(\d+)"/g))
    numbers[Number(writer)]!.push(Number(number))
  return numbers.flatMap((stored, writer) => {
    const sorted = stored.toSorted((a, b) => a - b)
    const gapIndex = sorted.findIndex((number, index) => index > 0 && number !== sorted[index - 1]! + 1)
    const next = (sorted.at(-1) ?? -1) + 1
    return [
      ...(gapIndex < 0
        ? []
        : [`${soakId(writer, sorted[gapIndex]!)} is stored after ${soakId(writer, sorted[gapIndex - 1]!)}`]),
      ...(next === acknowledged[writer]
        ? []
        : [`writer ${writer}: stored until ${next}, acknowledged ${acknowledged[writer]}`]),
    ]
  })
}

/** Messages have consecutive numbers; every one up to the last of the endpoint arrived. */
async function deliveryProblems({ url, keys }: Target, { delivered }: Traffic): Promise<string[]> {
  const headers = { authorization: `Bearer ${keys.secret}` }
  for (const endMs = performance.now() + settledWithinMs; ; await Bun.sleep(500)) {
    const answer = await fetch(`${url}/v1/webhooks/endpoints`, { headers })
    const { endpoints } = (await answer.json()) as {
      endpoints: { sequence: number; pending: number }[]
    }
    const { sequence, pending } = endpoints[0]!
    const isComplete = pending === 0 && delivered.size === sequence
    if (isComplete) return []
    if (performance.now() > endMs)
      return [`${sequence} messages, ${pending} pending, ${delivered.size} delivered`]
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

function shown({ values }: Sample): string {
  return ['memory MiB', 'open files', 'disk bytes an event', 'batch of 100 p99 ms', 'overview p50 ms']
    .map((series) => `${series} ${Math.round(values[series] ?? 0)}`)
    .join(', ')
}

async function save(title: string, samples: Sample[], trends: Trend[], startsS: number[]): Promise<void> {
  mkdirSync(options.out, { recursive: true })
  const svg = soakChart(title, samples, trends, startsS)
  writeFileSync(join(options.out, 'soak.svg'), svg)
  writeFileSync(join(options.out, 'samples.json'), JSON.stringify(samples))
  await withPage('about:blank', async (page) => {
    await page.setContent(`<body style="margin:0">${svg}</body>`)
    await page.locator('svg').screenshot({ path: join(options.out, 'soak.png') })
  })
  await closeBrowser()
}

function report(result: {
  trends: Trend[]
  done: { [name: string]: number }
  missing: string[]
  traffic: Traffic
}): void {
  const rows = result.trends.map(({ series, early, late, z, isRising }) => {
    return [series, early.toFixed(1), late.toFixed(1), z.toFixed(1), isRising ? 'rises' : '']
  })
  say(`\n${machine()}\n\n${table(['series', 'second quarter', 'last quarter', 'z', 'trend'], rows)}`)
  say(`faults made: ${JSON.stringify(result.done)}`)
  say(`answers: ${JSON.stringify(result.traffic.statuses)}`)
  const acknowledged = result.traffic.acknowledged.reduce((total, batch) => total + batch, 0)
  say(`${acknowledged} events acknowledged, ${result.traffic.delivered.size} messages delivered`)
  for (const problem of [...result.missing, ...new Set(result.traffic.faults)].slice(0, 40))
    say(`PROBLEM ${problem}`)
  say(
    result.missing.length + result.traffic.faults.length === 0
      ? 'nothing lost, nothing doubled'
      : 'see the problems above',
  )
}

if (options.help === true) say(usage)
else process.exitCode = await main()
