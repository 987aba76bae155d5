/**
 * Nodes on PostgreSQL beside the SQLite engine, over HTTP: `bun tests/bench/postgres.bench.ts`, see --help. A cluster of
 * its own with fsync on, the nodes and the load share the machine.
 */
import { Database } from 'bun:sqlite'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { load, quantile, type LoadResult } from '../support/load.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'
import { fixedTraffic, rareVendor } from './fixed-traffic.ts'
import { keyOf, path, storedEvents } from './loads.ts'
import { machine, processorSeconds, recordTable, table, watchStolen } from './report.ts'

const help = `Measures one run of each engine: batches, single events, three nodes, the work that is left after a load, bytes per
event, pages and metrics over a history of 30 days.

  --seconds N  of each load (default 10)
  --events N   of the history (default 1,000,000; --full: 10,000,000)
  --beside F   another engine's program: \`F URL init\`, then \`F URL run SECONDS GROUP CONNECTIONS ORGANIZATIONS\`,
               which prints {"rate", "p99"} as JSON
  --write      replaces the section in tests/bench/results.md`

const dayMs = 86_400_000
const batchOf = 100
const connections = 16
const singleConnections = 32
const nodesMax = 3

/** A server of one core and a gigabyte; everything else as Debian ships it. */
const settings = {
  ...{ shared_buffers: '1GB', max_wal_size: '4GB', checkpoint_completion_target: '0.9' },
  ...{ wal_level: 'replica', max_wal_senders: '10', autovacuum_naptime: '1min' },
}

interface Load {
  name: string
  perSecond: number
  p50Ms: number
  p99Ms: number
  refused: number
  /** Processor time per event. */
  nodeUs: number
  serverUs: number
  stolenPercent: number | null
  /** Arrivals that were not folded when the load ended, and how long folding and sealing them took. */
  behind: number
  catchUpSeconds: number
}

interface Read {
  what: string
  p50Ms: number
  p99Ms: number
}

export interface EngineRun {
  loads: Load[]
  history: { events: number; perSecond: number }
  reads: Read[]
  bytes: { table: string; perEvent: number }[]
  acknowledged: number
  stored: number
}

/** What differs between the engines. */
interface Engine {
  start(node: number): Promise<Appliance>
  /** Arrivals that are not folded, null when it cannot be asked. */
  behind(): Promise<number | null>
  serverSeconds(): number
  /** Bytes by table. */
  sizes(): Promise<Map<string, number>>
  stop(): Promise<void>
}

const args = ['--rate-limit-ingest', 'off', '--rate-limit-gateway', 'off']

function sqliteEngine(): Engine {
  const dir = tempDir('bench-sqlite')
  return {
    start: () => startAppliance({ dataDir: dir.join('data'), args }),
    behind: async () => null,
    serverSeconds: () => 0,
    async sizes() {
      const db = new Database(dir.join('data/sightglass.db'), { readonly: true })
      const sql = `SELECT m.tbl_name AS name, sum(pgsize) AS bytes FROM dbstat AS s
        JOIN sqlite_schema AS m ON m.name = s.name GROUP BY 1`
      const rows = db.query<{ name: string; bytes: number }, []>(sql).all()
      db.close()
      return new Map(rows.map(({ name, bytes }) => [name, bytes]))
    },
    stop: async () => dir.remove(),
  }
}

async function postgresEngine(cluster: Cluster): Promise<Engine> {
  const dir = tempDir('bench-nodes')
  await cluster.sql('CREATE DATABASE bench TEMPLATE template0')
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const env = {
    SIGHTGLASS_DATABASE: cluster.url.replace(/postgres$/, 'bench'),
    SIGHTGLASS_KEY_FILE: dir.join('keys'),
  }
  return {
    start: (node) =>
      startAppliance({ dataDir: dir.join(`node-${node}`), env, args: [...args, '--node-name', `node-${node}`] }),
    async behind() {
      const sql = 'SELECT coalesce(sum(last_seq - folded_seq + 65536 * greatest(0, (last_seq + 1) / 65536 - segments)), 0)'
      return Number(await cluster.sql(`${sql} FROM sightglass.event_org`, 'bench'))
    },
    serverSeconds: () => processorSeconds(cluster.pid()),
    async sizes() {
      const sql = `SELECT regexp_replace(relname, '_[0-9]{2}$', ''), sum(pg_total_relation_size(c.oid))
        FROM pg_class AS c WHERE relnamespace = 'sightglass'::regnamespace AND relkind = 'r' GROUP BY 1`
      const rows = (await cluster.sql(sql, 'bench')).split('\n').map((line) => line.split('|'))
      return new Map(rows.map(([name = '', bytes]) => [name, Number(bytes)]))
    },
    async stop() {
      dir.remove()
    },
  }
}

export interface BenchOptions {
  seconds: number
  historyEvents: number
  rounds: number
}

async function runEngine(engine: Engine, nodes: number[], options: BenchOptions): Promise<EngineRun> {
  const started: Appliance[] = [await engine.start(1)]
  const [first] = started as [Appliance]
  const [ingest, secret] = [await keyOf(first, 'ingest'), await keyOf(first, 'secret')]
  let acknowledged = 0
  const loads: Load[] = []
  const history = fixedTraffic(path, ingest, options.historyEvents, 30 * dayMs)
  const single = fixedTraffic(path, ingest, 0, 0, 1)
  // After the numbers of all batches of 100: a request of one event has a number of its own.
  let nextBatch = options.historyEvents / batchOf
  let nextSingle = 3_000_000_000

  async function measure(
    name: string,
    each: number,
    wide: number,
    to: readonly Appliance[],
    next: () => Uint8Array | null,
    seconds: number,
  ): Promise<LoadResult[]> {
    await Promise.all(to.map(({ url }) => load({ url, connections: wide, seconds: Math.min(2, seconds / 5), next }))).then(
      (warm) => warm.forEach(({ requests }) => (acknowledged += requests * each)),
    )
    await caughtUp()
    const stolen = watchStolen()
    const before = { nodes: sum(to.map(({ pid }) => processorSeconds(pid))), server: engine.serverSeconds() }
    const startedMs = performance.now()
    const results = await Promise.all(to.map(({ url }) => load({ url, connections: wide, seconds, next })))
    const tookMs = performance.now() - startedMs
    const nodeSeconds = sum(to.map(({ pid }) => processorSeconds(pid))) - before.nodes
    const serverSeconds = engine.serverSeconds() - before.server
    const stolenPercent = stolen.end()
    const events = sum(results.map(({ requests }) => requests)) * each
    acknowledged += events
    const behind = (await engine.behind()) ?? 0
    loads.push({
      ...{ name, perSecond: Math.round((events / tookMs) * 1_000), stolenPercent, behind },
      p50Ms: Math.max(...results.map(({ p50Ms }) => p50Ms)),
      p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
      refused: sum(results.map(({ refused }) => refused)),
      nodeUs: (nodeSeconds / events) * 1e6,
      serverUs: (serverSeconds / events) * 1e6,
      catchUpSeconds: await caughtUp(),
    })
    say(`${name}: ${loads.at(-1)!.perSecond.toLocaleString('en')} events/s`)
    return results
  }

  async function caughtUp(): Promise<number> {
    const startedMs = performance.now()
    while (((await engine.behind()) ?? 0) > 0 && performance.now() - startedMs < 60_000) await Bun.sleep(50)
    return (performance.now() - startedMs) / 1_000
  }

  const batches = () => history.request(nextBatch++)
  await measure('batches of 100, one node', batchOf, connections, started, batches, options.seconds)
  const singles = () => single.request(nextSingle++)
  await measure('single events, one node', 1, singleConnections, started, singles, options.seconds / 2)
  for (const count of nodes) {
    while (started.length < count) started.push(await engine.start(started.length + 1))
    const wide = Math.ceil(connections / count)
    await measure(`batches of 100, ${count} nodes`, batchOf, wide, started, batches, options.seconds)
  }
  let old = 0
  const oldBatches = () => (old < options.historyEvents / batchOf ? history.request(old++) : null)
  const filledMs = performance.now()
  const [fill] = await Promise.all([
    load({ url: first.url, connections, seconds: 3_600, next: oldBatches }),
  ])
  const perSecond = Math.round((fill.requests * batchOf * 1_000) / (performance.now() - filledMs))
  acknowledged += fill.requests * batchOf
  await caughtUp()
  say(`history: ${perSecond.toLocaleString('en')} events/s`)
  const stored = await storedEvents(first, secret)
  const sizes = await engine.sizes()
  const bytes = Array.from(sizes, ([name, size]) => ({ table: name, perEvent: size / stored }))
  const reads = await readAll(first, secret, options.rounds)
  await Promise.all(started.map((one) => one.stop()))
  await engine.stop()
  return {
    ...{ loads, history: { events: options.historyEvents, perSecond }, reads, acknowledged, stored },
    bytes: bytes.sort((a, b) => b.perEvent - a.perEvent),
  }
}

const sum = (values: number[]): number => values.reduce((all, one) => all + one, 0)

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
  const middle = new Date(Date.now() - 15 * dayMs).toISOString()
  const hour = new Date(Date.now() - 15 * dayMs + 3_600_000).toISOString()
  const paths: [string, string][] = [
    ...filters.map(([what, query]): [string, string] => [`page of 200: ${what}`, `/v1/traces?limit=200&${query}`]),
    ['page of 200: 15 days ago', `/v1/traces?limit=200&until=${middle}`],
    ['page of 200: text of an hour', `/v1/traces?limit=200&since=${middle}&until=${hour}&q=products%2F7`],
    ['sessions, page of 50', '/v1/sessions'],
    ['metrics of 30 days', '/v1/metrics'],
  ]
  const reads: Read[] = []
  for (const [what, url] of paths) {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) {
      const startedMs = performance.now()
      const response = await fetch(server.url + url, { headers: { authorization: `Bearer ${key}` } })
      await response.arrayBuffer()
      if (response.status !== 200) throw new Error(`${url}: ${response.status}`)
      times.push(performance.now() - startedMs)
    }
    reads.push({ what, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) })
  }
  return reads
}

/** Another engine's rate on the same server. */
async function runOther(program: string, cluster: Cluster, seconds: number): Promise<string> {
  await cluster.sql('CREATE DATABASE other TEMPLATE template0')
  const url = cluster.url.replace(/postgres$/, 'other')
  const run = async (...words: string[]) => {
    const child = Bun.spawn([process.execPath, program, url, ...words], { stdout: 'pipe', stderr: 'inherit' })
    return new Response(child.stdout).text()
  }
  await run('init')
  const found = []
  for (const group of ['2000', '100']) {
    const { rate, p99 } = JSON.parse(await run('run', String(seconds), group, '2', '1')) as { [name: string]: number }
    found.push(`groups of ${group}: ${rate!.toLocaleString('en')} events/s, p99 ${p99} ms`)
  }
  await cluster.sql('DROP DATABASE other')
  return found.join('; ')
}

export interface PostgresBench {
  sqlite: EngineRun
  postgres: EngineRun
  other: string | null
}

export async function postgresBench(options: BenchOptions, program: string | null): Promise<PostgresBench> {
  say('SQLite')
  const sqlite = await runEngine(sqliteEngine(), [], options)
  const cluster = await startPostgres({ fsync: true, walFileMiB: 16, settings })
  try {
    const other = program === null ? null : await runOther(program, cluster, options.seconds / 2)
    if (other !== null) say(`beside: ${other}`)
    say('PostgreSQL')
    return { sqlite, postgres: await runEngine(await postgresEngine(cluster), [nodesMax], options), other }
  } finally {
    await cluster.stop()
  }
}

function postgresTables({ sqlite, postgres, other }: PostgresBench): string {
  const loadHead = [
    ...['load', 'events/s', 'ratio', 'p50 ms', 'p99 ms', 'refused', 'node µs', 'server µs'],
    ...['behind', 'caught up after s', 'taken by the host %'],
  ]
  const loadRow = (engine: string, one: Load, floor: Load | undefined) => [
    `${engine}: ${one.name}`,
    one.perSecond,
    floor === undefined ? '' : (one.perSecond / floor.perSecond).toFixed(2),
    ...[one.p50Ms, one.p99Ms, one.refused, one.nodeUs, one.serverUs].map(rounded),
    ...[one.behind, one.catchUpSeconds.toFixed(1), one.stolenPercent ?? ''],
  ]
  const loads = [
    ...sqlite.loads.map((one) => loadRow('SQLite', one, undefined)),
    ...postgres.loads.map((one, index) => loadRow('PostgreSQL', one, sqlite.loads[index] ?? sqlite.loads[0])),
  ]
  const reads = postgres.reads.map(({ what, p50Ms, p99Ms }, index) => {
    const beside = sqlite.reads[index]!
    return [what, ...[beside.p50Ms, beside.p99Ms, p50Ms, p99Ms].map(rounded)]
  })
  const bytesOf = ({ bytes }: EngineRun) => sum(bytes.map(({ perEvent }) => perEvent)).toFixed(0)
  const tables = (run: EngineRun) =>
    run.bytes
      .filter(({ perEvent }) => perEvent >= 0.5)
      .map((one) => `${one.table} ${one.perEvent.toFixed(1)}`)
      .join(', ')
  return [
    table(loadHead, loads),
    `History of ${postgres.history.events.toLocaleString('en')} events over 30 days, batches of 100: SQLite ` +
      `${sqlite.history.perSecond.toLocaleString('en')}, PostgreSQL ${postgres.history.perSecond.toLocaleString('en')} events/s.`,
    ...(other === null ? [] : [`The measuring stick on the same server: ${other}.`]),
    table(['over HTTP', 'SQLite p50 ms', 'p99', 'PostgreSQL p50 ms', 'p99'], reads),
    `Bytes per event: SQLite ${bytesOf(sqlite)} (${tables(sqlite)}); PostgreSQL ${bytesOf(postgres)} (${tables(postgres)}).`,
    `Acknowledged and stored: SQLite ${sqlite.acknowledged} and ${sqlite.stored}, PostgreSQL ` +
      `${postgres.acknowledged} and ${postgres.stored}.`,
  ].join('\n\n')
}

function rounded(value: number): number {
  return value < 100 ? Math.round(value * 10) / 10 : Math.round(value)
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

if (import.meta.main) {
  const words = process.argv.slice(2)
  const value = (name: string) => (words.includes(name) ? words[words.indexOf(name) + 1]! : null)
  if (words.includes('--help')) process.stdout.write(`${help}\n`)
  else {
    const historyEvents = Number(value('--events') ?? (words.includes('--full') ? 10_000_000 : 1_000_000))
    const seconds = Number(value('--seconds') ?? 10)
    const beside = value('--beside')
    const found = await postgresBench(
      { seconds, historyEvents, rounds: 100 },
      beside === null ? null : join(process.cwd(), beside),
    )
    const text = postgresTables(found)
    process.stdout.write(`${machine()}\n\n${text}\n`)
    if (words.includes('--write')) recordTable('Nodes on PostgreSQL', text)
  }
}
