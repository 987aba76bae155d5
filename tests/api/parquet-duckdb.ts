/**
 * `bun tests/api/parquet-duckdb.ts --full`: DuckDB reads every kind of exported Parquet file. Its counts by type,
 * outcome and hour are those of /v1/metrics, and its events those of NDJSON. It is native and large, so it is
 * installed into a temporary folder, and this is no test.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startAppliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

const version = '1.5.6-r.1' // of @duckdb/node-api

interface Reader {
  getRows(): unknown[][]
}
interface Connection {
  runAndReadAll(sql: string): Promise<Reader>
}
interface DuckDb {
  DuckDBInstance: { create(path: string): Promise<{ connect(): Promise<Connection> }> }
}

/** Also the registry that npm uses. */
const inherited = process.env as Record<string, string>

async function installed(folder: string): Promise<Connection> {
  await Bun.write(join(folder, 'package.json'), '{"private":true}')
  const command = [
    'npm',
    'install',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    `@duckdb/node-api@${version}`,
  ]
  const child = run(command, { cwd: folder, env: inherited })
  if ((await child.exited) !== 0) throw new Error(child.stderr())
  const entry = Bun.resolveSync('@duckdb/node-api', folder)
  const { DuckDBInstance } = (await import(pathToFileURL(entry).href)) as DuckDb
  return (await DuckDBInstance.create(':memory:')).connect()
}

/** Also for the everyday test. */
export const hostileTexts = [
  '=cmd|"x"',
  '\u2028\u202e',
  '€'.repeat(9_000),
  '\u{1f600}',
  "'; DROP TABLE",
  '\\u0000',
  ' ',
]

interface Metrics {
  total: number
  byType: { [name: string]: number }
  byOutcome: { [name: string]: number }
  byHour: { hour: string; count: number }[]
}

function same(what: string, found: unknown, expected: unknown): void {
  if (!Bun.deepEquals(found, expected)) throw new Error(`${what} differ`)
  console.info(`${what}: equal`)
}

async function main(): Promise<void> {
  using folder = tempDir('duckdb')
  const duckdb = await installed(folder.path)
  await using appliance = await startAppliance()
  const done = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await appliance.cli(...args)
    if (code !== 0) throw new Error(stderr)
    return stdout
  }
  console.info((await done('demo')).split('\n')[0])
  const path = join(folder.path, 'hostile.ndjson')
  const lines = hostileTexts.map((text, n) =>
    JSON.stringify(
      event(`hostile-${n}`, { tool: text.slice(0, 200), error: text.slice(0, 2_000), metadata: { text } }),
    ),
  )
  await Bun.write(path, lines.join('\n'))
  await done('import', path)
  const { key } = JSON.parse(await done('key', 'create', '--kind', 'secret', '--label', 'x', '--json')) as {
    key: string
  }
  const get = (at: string, accept = 'application/json') =>
    fetch(appliance.url + at, { headers: { authorization: `Bearer ${key}`, accept } })
  const metrics = (await (await get('/v1/metrics?since=2000-01-01')).json()) as Metrics
  const ndjson = (await (await get('/v1/traces', 'application/x-ndjson')).text())
    .trimEnd()
    .split('\n')
    .slice(0, -1)
  await Bun.write(join(folder.path, 'all.parquet'), await get('/v1/traces', 'application/vnd.apache.parquet'))
  await done('export', 'traces', '--format', 'parquet', join(folder.path, 'whole'))
  await done('export', 'traces', '--format', 'parquet', '--partition', 'day', join(folder.path, 'days'))
  for (const files of ['all.parquet', 'whole/*.parquet', 'days/*/*.parquet']) {
    const from = `read_parquet('${join(folder.path, files)}')`
    const rows = async (sql: string): Promise<unknown[][]> => (await duckdb.runAndReadAll(sql)).getRows()
    const counts = async (column: string) =>
      Object.fromEntries(
        (await rows(`SELECT ${column}, count(*) FROM ${from} GROUP BY 1`)).map(([name, n]) => [
          String(name),
          Number(n),
        ]),
      )
    same(`${files}: types`, await counts('type'), metrics.byType)
    same(`${files}: outcomes`, await counts('outcome'), metrics.byOutcome)
    const hours = metrics.byHour.map(({ hour, count }) => [String(Date.parse(hour)), count])
    same(
      `${files}: hours`,
      await counts(`epoch_ms(date_trunc('hour', occurred_at))`),
      Object.fromEntries(hours),
    )
    const events = await rows(`SELECT event FROM ${from} ORDER BY event`)
    const texts = events.map(([text]) => text as string).sort()
    same(`${files}: ${events.length} events`, texts, ndjson.toSorted())
    const [[wrong]] = (await rows(
      `SELECT count(*) FROM ${from} WHERE id != event->>'$.id' OR type != event->>'$.type'
       OR session != event->>'$.sessionId'`,
    )) as [[unknown]]
    same(`${files}: columns and events`, Number(wrong), 0)
    const pruned = await rows(
      `SELECT count(*) FROM ${from} WHERE agent_vendor = 'ChatGPT' AND occurred_at > TIMESTAMP '2000-01-01'`,
    )
    const plain = ndjson.filter(
      (text) => (JSON.parse(text) as { agent?: { vendor?: string } }).agent?.vendor === 'ChatGPT',
    )
    same(`${files}: a filter on statistics`, Number(pruned[0]![0]), plain.length)
  }
}

if (import.meta.main) {
  if (!process.argv.includes('--full')) throw new Error('installs DuckDB from the registry: add --full')
  await main()
  process.exit(0)
}
