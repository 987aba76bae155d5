/** Bench of size: fills a data folder in pieces and shows what the last tenth costs beside the first; see --help. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { EventRecord } from '../../db/contract/store.ts'
import { inTransaction } from '../../db/sql/database.ts'
import { openWriterConnection, type SqliteDatabase } from '../../db/sqlite/file/connection.ts'
import { databasePath } from '../../db/sqlite/file/files.ts'
import type { EventWriter } from '../../db/sql/events/engine.ts'
import { compactEventWriter } from '../../db/sql/events/writer.ts'
import { owner, ownerEnv } from '../e2e/dashboard-actions.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { eventSource, idOf, type EventSource } from './engine-events.ts'
import { batchEvents as requestEvents, fixedTraffic } from './fixed-traffic.ts'
import { keyOf, path, runner } from './loads.ts'
import { processorSeconds, residentMiB, table, watchMemory } from './report.ts'

const help = `Fills FOLDER/data, which the executable serves, in batches of 1,000 in process, each committed to
disk, and measures processor time and bytes per event. A piece that ended is continued by the next call.

  bun tests/bench/flat.bench.ts FOLDER [--events N] [--until N] [--minutes N] [--quick | --resend | --pages | --load]

  --events N   in all; 100,000,000 unless given: about 10 GB of disk
  --until N    ends the fill sooner
  --minutes N  of this piece, 9 unless given
  --quick      in batches of 5,000 without waiting for the disk, to reach a size sooner; not measured
  --resend     alternates batches of scattered old ids with fresh ones instead, 60 of each
  --pages      starts the executable instead, and asks once what each page of the dashboard asks
  --range R    for them: 7d unless given, which is what pages ask first
  --load       starts the executable instead, sends as much as 16 connections can for 30 s or --seconds N, and prints
               what is resident, and how long commits took`

const batchEvents = 1_000
const quickEvents = 5_000
const sliceEvents = 1_000_000
const monthsOf10Million = 30 * 86_400_000

interface Slice {
  until: number // events then
  events: number
  seconds: number // of the commits, like all others
  cpuSeconds: number
  readMB: number // system calls
  writtenMB: number
  rssMB: number
}

async function dataFolder(folder: string): Promise<string> {
  const dataDir = join(folder, 'data')
  if (existsSync(databasePath(dataDir))) return dataDir
  mkdirSync(folder, { recursive: true })
  const server = await startAppliance({ env: ownerEnv, dataDir })
  await server.stop()
  return dataDir
}

interface Filled {
  db: SqliteDatabase
  writer: EventWriter
  orgId: string
  stored(): number
}

function open(dataDir: string): Filled {
  const db = openWriterConnection(databasePath(dataDir), () => {})
  const orgId = db.query<{ id: string }, []>('SELECT id FROM org').get()!.id
  // A server would delete the oldest events after 90 days.
  db.query('INSERT OR IGNORE INTO retention (org_id, days) VALUES (?, 3650)').run(orgId)
  const startedMs = performance.now()
  const writer = compactEventWriter(db)
  console.log(`writer ready in ${Math.round(performance.now() - startedMs)} ms`)
  const last = db.query<{ place: number; events: number }, []>(
    'SELECT place, events FROM event_block ORDER BY place DESC LIMIT 1',
  )
  const stored = () => {
    const row = last.get()
    return row === null ? 0 : (row.place % 2 ** 36) + row.events - 1
  }
  return { db, writer, orgId, stored }
}

function close({ db, writer }: Filled, dataDir: string): void {
  writer.idle()
  writer.close()
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  for (const end of ['-wal', '-shm']) rmSync(`${databasePath(dataDir)}${end}`, { force: true })
}

interface Cost {
  ms: number
  cpuMs: number
  deduped: number
}

function commit({ db, writer, orgId }: Filled, events: EventRecord[]): Cost {
  const startedMs = performance.now()
  const usageBefore = process.cpuUsage()
  const { deduped } = inTransaction(db, () => {
    const receivedAtMs = events.reduce((latest, eventRecord) => Math.max(latest, eventRecord.occurredAtMs), 0)
    const appendResult = writer.append({ orgId, keyId: 'key_bench', door: 'events', receivedAtMs, events })
    writer.flush()
    return appendResult
  })
  writer.committed()
  const { user, system } = process.cpuUsage(usageBefore)
  return { ms: performance.now() - startedMs, cpuMs: (user + system) / 1_000, deduped }
}

const batchAt = (source: EventSource, from: number, events = batchEvents): EventRecord[] =>
  Array.from({ length: events }, (_, n) => source.event(from + n))

function bytesMoved(): { readMB: number; writtenMB: number } {
  const io = readFileSync('/proc/self/io', 'utf8')
  const readMegabytes = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(io)![1]) / 1e6
  return { readMB: readMegabytes('rchar'), writtenMB: readMegabytes('wchar') }
}

interface Filling {
  until: number
  endMs: number
  isQuick: boolean
  note(slice: Slice): void
}

function fill(filled: Filled, source: EventSource, { until, endMs, isQuick, note }: Filling): void {
  if (isQuick) filled.db.run('PRAGMA synchronous = OFF')
  const batchSize = isQuick ? quickEvents : batchEvents
  let ms = 0
  let cpuMs = 0
  let events = 0
  let moved = bytesMoved()
  for (let position = filled.stored(); position < until && performance.now() < endMs; position += batchSize) {
    const cost = commit(filled, batchAt(source, position, batchSize))
    if (cost.deduped > 0) throw new Error(`${cost.deduped} events of a new batch are known`)
    ms += cost.ms
    cpuMs += cost.cpuMs
    events += batchSize
    if ((position + batchSize) % sliceEvents !== 0 && performance.now() < endMs) continue
    const now = bytesMoved()
    if (!isQuick)
      note({
        until: position + batchSize,
        events,
        seconds: ms / 1_000,
        cpuSeconds: cpuMs / 1_000,
        readMB: now.readMB - moved.readMB,
        writtenMB: now.writtenMB - moved.writtenMB,
        rssMB: process.memoryUsage.rss() / 1e6,
      })
    ;[ms, cpuMs, events, moved] = [0, 0, 0, now]
  }
}

const resentBatches = 60

/** What a fill stored. The fresh events of a call of `resend`, which follow, have ids that no later call knows. */
function filledEvents(folder: string, stored: number): number {
  const file = join(folder, 'filled')
  if (!existsSync(file)) writeFileSync(file, `${stored}`)
  return Number(readFileSync(file, 'utf8'))
}

/** Fresh ones differ from stored ones by their ids alone. */
function resend(filled: Filled, knownEvents: number, source: EventSource, fresh: EventSource): string {
  const stored = filled.stored()
  const sum = { old: { ms: 0, cpuMs: 0 }, fresh: { ms: 0, cpuMs: 0 } }
  const moved = bytesMoved()
  for (let turn = -3; turn < resentBatches; turn++) {
    const scattered = Array.from({ length: batchEvents }, () =>
      source.event(Math.floor(Math.random() * knownEvents)),
    )
    const old = commit(filled, scattered)
    if (old.deduped !== batchEvents) throw new Error(`${old.deduped} of ${batchEvents} deduped`)
    const freshCost = commit(filled, batchAt(fresh, stored - batchEvents))
    if (turn < 0) continue // code that is not compiled yet
    for (const [kind, { ms, cpuMs }] of Object.entries({ old, fresh: freshCost }) as [
      'old' | 'fresh',
      Cost,
    ][]) {
      sum[kind].ms += ms
      sum[kind].cpuMs += cpuMs
    }
  }
  const formatUs = (total: number) => ((total * 1_000) / resentBatches / batchEvents).toFixed(1)
  const readMB = bytesMoved().readMB - moved.readMB
  const show = (kind: 'old' | 'fresh') =>
    `${formatUs(sum[kind].ms)} µs each, ${formatUs(sum[kind].cpuMs)} of processor time`
  return `${stored} stored; old ${show('old')}; fresh ${show('fresh')}; ${readMB.toFixed(0)} MB read`
}

function tenths(slices: Slice[], total: number): string {
  const part = total / 10
  const rows = Array.from({ length: 10 }, (_, n) => {
    const tenthSlices = slices.filter(({ until }) => until > n * part && until <= (n + 1) * part)
    const sum = (key: keyof Slice) => tenthSlices.reduce((keySum, slice) => keySum + slice[key], 0)
    const events = sum('events')
    const formatUs = (seconds: number) => ((seconds * 1e6) / events).toFixed(2)
    const bytes = (mb: number) => ((mb * 1e6) / events).toFixed(0)
    return [
      `${n + 1}`,
      Math.round(events / sum('seconds') || 0),
      formatUs(sum('cpuSeconds')),
      bytes(sum('readMB')),
      bytes(sum('writtenMB')),
      Math.round(tenthSlices.at(-1)?.rssMB ?? 0),
    ]
  })
  return table(['tenth', 'events/s', 'processor µs', 'bytes read', 'bytes written', 'resident MB'], rows)
}

const ofDetect = ['', '/trust', '/matrix', '/requests', '/claims', '/responses']
const pagesOf = (range: string): [page: string, paths: string[]][] => [
  ['Overview', ['overview', 'overview/visit', 'week?range=7d', 'totals?range=7d', `changes?since=`]],
  ['Detect', ofDetect.map((end) => `detect${end}?range=${range}`)],
  ['Auth', [`auth?range=${range}`, `auth/identities?range=${range}`]],
  ['Authz', [`authz?range=${range}`]],
  ['Tools', ['tools?limit=50', `tools/calls?range=${range}`]],
  ['Analytics', ['', '/active', '/durations'].map((end) => `analytics${end}?range=${range}`)],
  ['Sessions', ['sessions?limit=50']],
  ['Logs', ['events?limit=50', 'histogram?zone=UTC', 'events?limit=50&vendor=Rare-Agent']],
]

async function signIn(server: Appliance): Promise<string> {
  const headers = { 'content-type': 'application/json', origin: server.url }
  const answer = await fetch(`${server.url}/api/sign-in`, {
    method: 'POST',
    headers,
    body: JSON.stringify(owner),
  })
  return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
}

/** The first answers of a server that has just been started, in this order. */
async function askPages(dataDir: string, range: string): Promise<string> {
  const startedMs = performance.now()
  const server = await startAppliance({ dataDir })
  const readyMs = performance.now() - startedMs
  const readyCpuMs = processorSeconds(server.pid) * 1_000
  try {
    const cookie = await signIn(server)
    const rows: (string | number)[][] = []
    for (const [page, paths] of pagesOf(range)) {
      for (const path of paths) {
        const since = path.endsWith('since=') ? new Date(Date.now() - 86_400_000).toISOString() : ''
        const ask = async () => {
          const beforeMs = performance.now()
          const answer = await fetch(`${server.url}/api/${path}${since}`, { headers: { cookie } })
          const text = await answer.text()
          if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text.slice(0, 200)}`)
          return Math.round((performance.now() - beforeMs) * 10) / 10
        }
        const secondsBefore = processorSeconds(server.pid)
        const first = await ask()
        const cpuMs = Math.round((processorSeconds(server.pid) - secondsBefore) * 1_000)
        rows.push([page, path, first, cpuMs, await ask()])
      }
    }
    const shown = table(['page', 'path', 'first ms', 'its processor ms', 'again ms'], rows)
    const ready = `ready after ${Math.round(readyMs)} ms, ${Math.round(readyCpuMs)} ms of processor time`
    return `${ready}; ${Math.round(residentMiB(server.pid))} MiB resident\n\n${shown}`
  } finally {
    await server.stop()
  }
}

const metricsToken = 'the-token-of-the-bench-0123456789'

/** How long commits took, sealing and repacking beside them included, from the histogram of `/metrics`. */
async function commitTimes(server: Appliance): Promise<string> {
  const headers = { authorization: `Bearer ${metricsToken}` }
  const text = await (await fetch(`${server.url}/metrics`, { headers })).text()
  const buckets = [...text.matchAll(/^sightglass_commit_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)]
  const totalCount = Number(buckets.at(-1)![2])
  const longest = buckets.find(([, , count]) => Number(count) === totalCount)![1]
  const fastCount = Number(buckets.find(([, bound]) => bound === '0.05')![2])
  return `${totalCount} commits, ${totalCount - fastCount} took more than 50 ms, the longest at most ${longest} s`
}

/** Resident memory of the executable at full ingest over HTTP. */
async function loadResident(dataDir: string, seconds: number): Promise<string> {
  const args = ['--rate-limit-ingest', 'off', '--metrics-token', metricsToken]
  const server = await startAppliance({ dataDir, args })
  try {
    const startedMiB = residentMiB(server.pid)
    const numbered = fixedTraffic(path, await keyOf(server, 'ingest'), 0, 0)
    const base = Math.floor(Date.now() / 1_000) % 2 ** 24 // other ids in each call
    const run = runner(server, { request: (batch) => numbered.request(base + batch) })
    await run.fresh({ seconds: seconds / 3 })
    const watch = watchMemory(server.pid)
    const { requests, seconds: took } = await run.fresh({ seconds: (seconds * 2) / 3 })
    const { medianMiB, mostMiB } = watch.end()
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
    const ofKind = (name: string) =>
      `${Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) / 1_024)}`
    return [
      `${Math.round((requests * requestEvents) / took)} events/s for ${Math.round(took)} s`,
      `resident when ready ${Math.round(startedMiB)} MiB; median ${medianMiB}, most ${mostMiB} MiB`,
      `at the end: anonymous ${ofKind('RssAnon')} MiB, files ${ofKind('RssFile')} MiB`,
      await commitTimes(server),
    ].join('\n')
  } finally {
    await server.stop()
  }
}

async function main(args: string[]): Promise<void> {
  const [folder] = args
  if (folder === undefined || args.includes('--help')) return console.log(help)
  const value = (name: string, initial: number) => {
    const optionIndex = args.indexOf(name)
    return optionIndex < 0 ? initial : Number(args[optionIndex + 1])
  }
  const total = value('--events', 100_000_000)
  const endMs = performance.now() + value('--minutes', 9) * 60_000
  const dataDir = await dataFolder(folder)
  const range = args.includes('--range') ? args[args.indexOf('--range') + 1]! : '7d'
  if (args.includes('--pages')) return console.log(await askPages(dataDir, range))
  if (args.includes('--load')) return console.log(await loadResident(dataDir, value('--seconds', 30)))
  const markerPath = join(folder, 'begun')
  if (!existsSync(markerPath)) appendFileSync(markerPath, `${Date.now() - (total / 1e7) * monthsOf10Million}`)
  const fromMs = Number(readFileSync(markerPath, 'utf8'))
  const source = eventSource(total, fromMs, idOf)
  const filled = open(dataDir)
  try {
    if (args.includes('--resend')) {
      const knownEvents = filledEvents(folder, filled.stored())
      return console.log(resend(filled, knownEvents, source, eventSource(total, fromMs)))
    }
    const file = join(folder, 'slices.jsonl')
    const note = (slice: Slice) => appendFileSync(file, `${JSON.stringify(slice)}\n`)
    fill(filled, source, { until: value('--until', total), endMs, isQuick: args.includes('--quick'), note })
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const slices = lines.map((line) => JSON.parse(line) as Slice)
    console.log(`${filled.stored()} events, batches of ${batchEvents}, ${cpus().length} cores\n`)
    console.log(tenths(slices, total))
  } finally {
    close(filled, dataDir)
  }
}

await main(Bun.argv.slice(2))
