/** Nodes on PostgreSQL beside the SQLite engine, over HTTP: `bun tests/bench/postgres.bench.ts`, see --help. */
import { Database } from 'bun:sqlite'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { startAppliance } from '../support/binary.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'
import { runEngine, type Engine, type EngineRun, type LoadFound, type RunOptions } from './engine-run.ts'
import { machine, processorSeconds, recordTable, table } from './report.ts'

const help = `Measures both engines in one run: batches, single events, three nodes, the work that is left after a
load, bytes per event, pages and metrics over a history of 30 days. The load, the nodes and a PostgreSQL of its own,
with fsync on, share the machine. About three minutes.

  --seconds N  of each load (default 10)
  --events N   of the history (default 1,000,000)
  --full       10,000,000 events of history: about fifteen minutes, 3 GB of disk
  --beside F   another engine's program: \`F URL init\`, then \`F URL run SECONDS GROUP CONNECTIONS ORGANIZATIONS\`,
               which prints {"rate", "p99"} as JSON
  --write      replaces the section in tests/bench/results.md`

const nodesMax = 3

/** A server of a gigabyte that may be copied; everything else as Debian ships it. */
const settings = {
  shared_buffers: '1GB',
  max_wal_size: '4GB',
  wal_level: 'replica',
  max_wal_senders: '10',
  autovacuum_naptime: '1min',
}

const args = ['--rate-limit-ingest', 'off', '--rate-limit-gateway', 'off']

function sqliteEngine(): Engine {
  const dir = tempDir('bench-sqlite')
  return {
    start: () => startAppliance({ dataDir: dir.join('data'), args }),
    behind: async () => 0,
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
    start: (number) => {
      const name = `node-${number}`
      return startAppliance({ dataDir: dir.join(name), env, args: [...args, '--node-name', name] })
    },
    async behind() {
      const unsealed = '65536 * greatest(0, (last_seq + 1) / 65536 - segments)'
      const sql = `SELECT coalesce(sum(last_seq - folded_seq + ${unsealed}), 0) FROM sightglass.event_org`
      return Number(await cluster.sql(sql, 'bench'))
    },
    serverSeconds: () => processorSeconds(cluster.pid()),
    async sizes() {
      const sql = `SELECT regexp_replace(relname, '_[0-9]{2}$', ''), sum(pg_total_relation_size(c.oid))
        FROM pg_class AS c WHERE relnamespace = 'sightglass'::regnamespace AND relkind = 'r' GROUP BY 1`
      const rows = (await cluster.sql(sql, 'bench')).split('\n').map((line) => line.split('|'))
      return new Map(rows.map(([name = '', bytes]) => [name, Number(bytes)]))
    },
    stop: async () => dir.remove(),
  }
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
  const rateTexts: string[] = []
  for (const group of ['2000', '100']) {
    const answer = await run('run', String(seconds), group, '2', '1')
    const { rate, p99 } = JSON.parse(answer) as { rate: number; p99: string }
    rateTexts.push(`groups of ${group} ${rate.toLocaleString('en')} events/s, p99 ${p99} ms`)
  }
  await cluster.sql('DROP DATABASE other')
  return rateTexts.join('; ')
}

export interface PostgresBench {
  historyEvents: number
  sqlite: EngineRun
  postgres: EngineRun
  other: string | null
}

/** `nodes` send at once in the last load. `program`: another engine's. */
export async function postgresBench(
  options: RunOptions,
  nodes = nodesMax,
  program: string | null = null,
): Promise<PostgresBench> {
  const sqlite = await runEngine(sqliteEngine(), [], options)
  const cluster = await startPostgres({ fsync: true, walFileMiB: 16, settings })
  try {
    const otherResult = program === null ? null : await runOther(program, cluster, options.seconds / 2)
    const postgres = await runEngine(await postgresEngine(cluster), [nodes], options)
    return { historyEvents: options.historyEvents, sqlite, postgres, other: otherResult }
  } finally {
    await cluster.stop()
  }
}

export function postgresTables({
  historyEvents,
  sqlite,
  postgres,
  other: otherResult,
}: PostgresBench): string {
  const load = (engine: string, loadResult: LoadFound, beside?: LoadFound) => [
    `${engine}: ${loadResult.name}`,
    loadResult.perSecond,
    beside === undefined ? '' : (loadResult.perSecond / beside.perSecond).toFixed(2),
    ...[loadResult.p50Ms, loadResult.p99Ms, loadResult.refused, loadResult.nodeUs, loadResult.serverUs].map(
      rounded,
    ),
    loadResult.behind,
    loadResult.catchUpSeconds.toFixed(1),
    loadResult.stolenPercent ?? '',
  ]
  const loadHead = [
    'over HTTP',
    'events/s',
    'ratio',
    'p50 ms',
    'p99 ms',
    'refused',
    'node µs',
    'server µs',
    'behind',
    'caught up, s',
    'taken by the host %',
  ]
  const loads = [
    ...sqlite.loads.map((loadResult) => load('SQLite', loadResult)),
    ...postgres.loads.map((loadResult, index) =>
      load('PostgreSQL', loadResult, sqlite.loads[index] ?? sqlite.loads[0]),
    ),
  ]
  const reads = postgres.reads.map(({ what: question, p50Ms, p99Ms }, index) => {
    const beside = sqlite.reads[index]!
    return [question, ...[beside.p50Ms, beside.p99Ms, p50Ms, p99Ms].map(rounded)]
  })
  return [
    table(loadHead, loads),
    `A history of ${historyEvents.toLocaleString('en')} events over 30 days, in batches of 100: SQLite ` +
      `${sqlite.historyPerSecond.toLocaleString('en')} events/s, PostgreSQL ` +
      `${postgres.historyPerSecond.toLocaleString('en')}.`,
    ...(otherResult === null ? [] : [`The measuring stick on the same server, in process: ${otherResult}.`]),
    table(['over HTTP', 'SQLite p50 ms', 'p99', 'PostgreSQL p50 ms', 'p99'], reads),
    `Bytes per event with all indexes: SQLite ${sizes(sqlite)}. PostgreSQL ${sizes(postgres)}.`,
    `Acknowledged and counted: SQLite ${sqlite.acknowledged} and ${sqlite.stored}, PostgreSQL ` +
      `${postgres.acknowledged} and ${postgres.stored}.`,
  ].join('\n\n')
}

function sizes({ bytes }: EngineRun): string {
  const totalBytes = bytes.reduce((total, { perEvent }) => total + perEvent, 0)
  const large = bytes.filter(({ perEvent }) => perEvent >= 0.5)
  return `${totalBytes.toFixed(0)} (${large.map((size) => `${size.table} ${size.perEvent.toFixed(1)}`).join(', ')})`
}

function rounded(value: number): number {
  return value < 100 ? Math.round(value * 10) / 10 : Math.round(value)
}

async function main(words: string[]): Promise<void> {
  if (words.includes('--help')) return console.log(help)
  const value = (name: string) => (words.includes(name) ? words[words.indexOf(name) + 1]! : null)
  const isFull = words.includes('--full')
  const historyEvents = Number(value('--events') ?? (isFull ? 10_000_000 : 1_000_000))
  const options = { seconds: Number(value('--seconds') ?? 10), warmUpSeconds: 5, historyEvents, rounds: 100 }
  const beside = value('--beside')
  const result = await postgresBench(options, nodesMax, beside === null ? null : resolve(beside))
  const text = postgresTables(result)
  console.log(`${machine()}\n\n${text}`)
  if (words.includes('--write')) recordTable('Nodes on PostgreSQL', text)
}

if (import.meta.main) await main(process.argv.slice(2))
