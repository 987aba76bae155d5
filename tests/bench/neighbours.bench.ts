/** Two organizations in one appliance, one of them hostile in every way at once: the effect on the other one. */
import { join } from 'node:path'
import { loadavg } from 'node:os'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { quantile } from '../support/load.ts'
import { run } from '../support/process.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { sessionPagesEach, type Hostility } from './hostile-neighbour.ts'
import { machine, recordTable, table, watchMemory, watchStolen, type Memory } from './report.ts'

export interface NeighboursBench {
  events: number // of the hostile organization
  seconds: number
  pages: { quiet: Times; beside: Times }
  ingest: { posts: number; refused: number; p99Ms: number }
  deliveries: { made: number; arrived: number; longestMs: number }
  memory: Memory
  /** Timer delay in an idle process: the delay that the machine adds to every measurement. */
  timer: { p50Ms: number; p99Ms: number }
  hostile: string // the responses to its requests
  /** Pages per second that one client of each organization got meanwhile. */
  perSecond: { good: number; hostile: number }
  stolenPercent: number | null
  load: number // of the machine, at the end
}

interface Times {
  many: number
  p50Ms: number
  p99Ms: number
  longestMs: number
  failed: number
}

const sessionsMany = 40
const dayMs = 86_400_000

interface Org {
  ingest: string
  secrets: string[]
  cookies: string[]
}

export async function neighboursBench(
  events: number,
  seconds: number,
  scale: number,
): Promise<NeighboursBench> {
  const open = ['--rate-limit-gateway', 'off', '--webhook-allow', '127.0.0.0/8']
  await using receiver = await startReceiver('0.0.0.0')
  const server = await startAppliance({ args: [...open, '--dispatch-cron', '* * * * * *'] })
  try {
    const [good, bad] = await Promise.all([orgOf(server, 'good'), orgOf(server, 'bad')])
    await fill(server, good.ingest, Math.min(20_000, events / 3), false)
    await fill(server, bad.ingest, events, true)
    const quiet = await pages(server, good.secrets[0]!, Math.min(3, seconds / 4))
    const memory = watchMemory(server.pid)
    const stolen = watchStolen()
    const { hostname, port } = new URL(receiver.url)
    const hostility: Hostility = {
      url: server.url,
      ...bad,
      receiver: `${hostname}:${port}`,
      seconds: seconds + 2,
      scale,
    }
    const script = join(import.meta.dir, 'hostile-neighbour.ts')
    const child = run([process.execPath, script, JSON.stringify(hostility)], {
      cwd: import.meta.dir,
      env: { PATH: process.env.PATH ?? '' },
    })
    const idle = run([process.execPath, '-e', timerScript(seconds)], {
      cwd: import.meta.dir,
      env: { PATH: process.env.PATH ?? '' },
    })
    await Bun.sleep(2_000) // until the load is at its highest
    const [beside, ingest, deliveries] = await Promise.all([
      pages(server, good.secrets[0]!, seconds - 1),
      posts(server, good.ingest, seconds - 1),
      delivered(server, receiver, good.secrets[0]!, seconds - 1),
    ])
    const hostile = await child.line((line) => (line.startsWith('{') ? line : null), 60_000)
    const perSecond = {
      good: beside.many / (seconds - 1),
      hostile: sessionPagesEach(hostile, scale) / hostility.seconds,
    }
    const late = await idle.line((line) => (line.startsWith('{') ? line : null), 20_000)
    return {
      events,
      seconds,
      pages: { quiet, beside },
      ingest,
      deliveries,
      timer: JSON.parse(late) as Times,
      memory: memory.end(),
      hostile,
      perSecond,
      stolenPercent: stolen.end(),
      load: loadavg()[0] ?? 0,
    }
  } finally {
    await server.stop()
  }
}

function timerScript(seconds: number): string {
  return `const late = []
    const endMs = performance.now() + ${seconds * 1_000}
    while (performance.now() < endMs) {
      const dueMs = performance.now() + 15
      await Bun.sleep(15)
      late.push(performance.now() - dueMs)
    }
    late.sort((a, b) => a - b)
    const at = (share) => late[Math.floor(late.length * share)]
    console.log(JSON.stringify({ p50Ms: at(0.5), p99Ms: at(0.99) }))`
}

async function orgOf(server: Appliance, slug: string): Promise<Org> {
  await server.cli('org', 'create', '--name', slug, '--slug', slug)
  const keyOf = async (kind: string) => {
    const keyExit = await server.cli(
      'key',
      'create',
      '--kind',
      kind,
      '--org',
      slug,
      '--label',
      kind,
      '--json',
    )
    return (JSON.parse(keyExit.stdout) as { key: string }).key
  }
  const addAccount = async (name: string) => {
    const email = `${name}@${slug}.example`
    const password = 'correct horse battery staple'
    const args = [
      'account',
      'create',
      '--email',
      email,
      '--org',
      slug,
      '--role',
      'viewer',
      '--password-stdin',
    ]
    await cli(args, { dataDir: server.dataDir, stdin: `${password}\n` })
    const signedIn = await fetch(`${server.url}/api/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    })
    return signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  }
  const keys = ['ingest', 'secret', 'secret'].map(keyOf)
  const cookies = await Promise.all(['ann', 'bob'].map(addAccount))
  const [ingest = '', ...secrets] = await Promise.all(keys)
  return { ingest, secrets, cookies }
}

/** The hostile organization has few long sessions, and some large events. */
async function fill(server: Appliance, key: string, events: number, isHostile: boolean): Promise<void> {
  const startMs = Date.now() - dayMs
  const lineOf = (n: number) =>
    `{"id":"e${n}","siteId":"shop","sessionId":"long-${isHostile ? n % sessionsMany : Math.floor(n / 20)}",` +
    `"occurredAt":"${new Date(startMs + (n * dayMs) / events).toISOString()}","type":"tool.executed",` +
    `"outcome":"${n % 9 === 0 ? 'blocked' : 'success'}","tool":"tool ${n % 50}","durationMs":${n % 900},` +
    `"agent":{"class":"dom","trust":"detected","vendor":"${n % 3 === 0 ? 'GPTBot' : 'ClaudeBot'}"},` +
    `"metadata":{"page":"/products/${n % 500}","note":"event number ${n} of many"}}`
  const note = 'x'.repeat(58_000)
  const large = (n: number) =>
    `{"id":"large${n}","siteId":"shop","sessionId":"large","occurredAt":"${new Date(startMs).toISOString()}",` +
    `"type":"big.page","outcome":"success","metadata":{"note":"${note}"}}`
  const batches: string[] = []
  if (isHostile)
    for (let n = 0; n < 200; n += 50)
      batches.push(Array.from({ length: 50 }, (_, index) => large(n + index)).join('\n'))
  let next = 0
  const sender = async () => {
    for (;;) {
      const from = next
      if (from >= events && batches.length === 0) return
      const size = Math.min(1_000, events - from)
      const body = batches.pop() ?? Array.from({ length: size }, (_, n) => lineOf(from + n)).join('\n')
      if (!body.includes('"large')) next += size
      while ((await post(server, key, body, 'application/x-ndjson')) !== 202) await Bun.sleep(50)
    }
  }
  await sender()
}

async function post(server: Appliance, key: string, body: string, type: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': type }
  const response = await fetch(`${server.url}/v1/sdk/events`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}

async function pages(server: Appliance, secret: string, seconds: number): Promise<Times> {
  const headers = { authorization: `Bearer ${secret}` }
  const took: number[] = []
  let failed = 0
  for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; await Bun.sleep(15)) {
    const startMs = performance.now()
    const response = await fetch(`${server.url}/v1/traces?limit=50`, { headers })
    await response.arrayBuffer()
    took.push(performance.now() - startMs)
    if (response.status !== 200) failed++
  }
  const p50Ms = quantile(took, 0.5)
  const p99Ms = quantile(took, 0.99)
  const longestMs = quantile(took, 1)
  return { many: took.length, p50Ms, p99Ms, longestMs, failed }
}

async function posts(server: Appliance, key: string, seconds: number): Promise<NeighboursBench['ingest']> {
  const took: number[] = []
  let refused = 0
  for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; await Bun.sleep(100)) {
    const events = Array.from({ length: 10 }, (_, n) => ({
      id: `fresh ${took.length} ${n}`,
      siteId: 'shop',
      sessionId: 'fresh',
      type: 'tool.executed',
      occurredAt: new Date().toISOString(),
      outcome: 'success',
    }))
    const startMs = performance.now()
    const status = await post(server, key, JSON.stringify({ events }), 'application/json')
    took.push(performance.now() - startMs)
    if (status !== 202) refused++
  }
  return { posts: took.length, refused, p99Ms: quantile(took, 0.99) }
}

/** One delivery per second to a healthy receiver. Returns the duration of each. */
async function delivered(
  server: Appliance,
  receiver: Receiver,
  secret: string,
  seconds: number,
): Promise<NeighboursBench['deliveries']> {
  const madeAt: number[] = []
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; await Bun.sleep(1_000)) {
    const body = JSON.stringify({ url: `${receiver.url}/ok/${madeAt.length}`, payload: {} })
    madeAt.push(Date.now())
    await (await fetch(`${server.url}/v1/webhooks/test`, { method: 'POST', headers, body })).arrayBuffer()
  }
  const waitUntilMs = Date.now() + 60_000
  const arrivals = () =>
    new Map(receiver.received('/ok/').map(({ path, atMs }) => [Number(path.slice(4)), atMs]))
  while (arrivals().size < madeAt.length && Date.now() < waitUntilMs) await Bun.sleep(100)
  const arrived = arrivals()
  const took = madeAt.map((madeMs, n) => (arrived.get(n) ?? Date.now()) - madeMs)
  return { made: madeAt.length, arrived: arrived.size, longestMs: Math.max(...took) }
}

export function neighboursTable(result: NeighboursBench): string {
  const { events, seconds, pages, ingest, deliveries, memory, timer, hostile } = result
  const { perSecond, stolenPercent, load } = result
  const ms = (n: number) => Math.round(n * 10) / 10
  const timesText = ({ many: pageCount, p50Ms, p99Ms, longestMs, failed }: Times) =>
    `${ms(p50Ms)}, ${ms(p99Ms)}, ${ms(longestMs)} (${pageCount} pages, ${failed} failed)`
  return `${events.toLocaleString('en-US')} events in ${sessionsMany} sessions of the hostile organization, ${seconds} s

${table(
  ['the other organization', ''],
  [
    ['its pages before: p50, p99, longest, ms', timesText(pages.quiet)],
    ['its pages beside the hostile one', timesText(pages.beside)],
    [
      'pages per second of a client of each: good, hostile',
      `${ms(perSecond.good)}, ${ms(perSecond.hostile)}`,
    ],
    [
      'a timer of an idle process meanwhile fires late by: p50, p99, ms',
      `${ms(timer.p50Ms)}, ${ms(timer.p99Ms)}`,
    ],
    ['its posts, those refused, p99 ms', `${ingest.posts}, ${ingest.refused}, ${ms(ingest.p99Ms)}`],
    [
      'its deliveries made, arrived, longest ms',
      `${deliveries.made}, ${deliveries.arrived}, ${deliveries.longestMs}`,
    ],
    ['server resident: median, most, MiB', `${memory.medianMiB}, ${memory.mostMiB}`],
    ['taken by the host, %', stolenPercent ?? 'unknown'],
    ['load of the machine at the end', ms(load)],
  ],
)}

The hostile one got, by status: ${hostile}`
}

if (import.meta.main) {
  const isFull = process.argv.includes('--full')
  const text = neighboursTable(
    isFull ? await neighboursBench(1_500_000, 60, 1) : await neighboursBench(150_000, 12, 0.5),
  )
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (isFull) recordTable('Neighbours', text)
}
