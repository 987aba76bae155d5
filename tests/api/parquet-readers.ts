/**
 * `bun tests/api/parquet-readers.ts --full`: DuckDB and Polars read every kind of exported Parquet file. Their counts
 * by type, outcome and hour are those of /v1/metrics, their events those of NDJSON, and files that they wrote anew
 * import. They are native and large, so they are installed into a temporary folder, and this is no test.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

export const duckDbVersion = '1.5.6-r.1' // of @duckdb/node-api
const polarsVersion = '0.26.1' // of nodejs-polars
const hourMs = 3_600_000

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

/** Installs packages of npm into the folder and returns what the first one exports. */
export async function installed<Package>(
  folder: string,
  [name, ...otherPackages]: [string, ...string[]],
  version: string,
): Promise<Package> {
  await Bun.write(join(folder, 'package.json'), '{"private":true}')
  const options = ['--no-audit', '--no-fund', '--ignore-scripts']
  const packages = [name, ...otherPackages].map((packageName) => `${packageName}@${version}`)
  const command = ['npm', 'install', ...options, ...packages]
  const child = run(command, { cwd: folder, env: inherited })
  if ((await child.exited) !== 0) throw new Error(child.stderr())
  return (await import(pathToFileURL(Bun.resolveSync(name, folder)).href)) as Package
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

/** Throws unless they are equal. */
function expectSame(label: string, actual: unknown, expected: unknown): void {
  if (!Bun.deepEquals(actual, expected)) throw new Error(`${label} differ`)
  console.info(`${label}: equal`)
}

interface ExportedFiles {
  metrics: Metrics
  hours: { [epochMs: string]: number }
  ndjson: string[] // sorted
  /** Imports a file or folder, and throws unless all of its events are known. */
  importAgain(path: string): Promise<void>
}

/** The kinds of export below the folder. */
const exportedFiles = ['all.parquet', 'whole/*.parquet', 'days/*/*.parquet']

/** Demo data and hostile texts, exported in every way. */
async function exportInto(folder: string, appliance: Appliance): Promise<ExportedFiles> {
  const runCli = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await appliance.cli(...args)
    if (code !== 0) throw new Error(stderr)
    return stdout
  }
  console.info((await runCli('demo')).split('\n')[0])
  const path = join(folder, 'hostile.ndjson')
  const lines = hostileTexts.map((text, n) =>
    JSON.stringify(
      event(`hostile-${n}`, { tool: text.slice(0, 200), error: text.slice(0, 2_000), metadata: { text } }),
    ),
  )
  await Bun.write(path, lines.join('\n'))
  await runCli('import', path)
  const { key } = JSON.parse(await runCli('key', 'create', '--kind', 'secret', '--label', 'x', '--json')) as {
    key: string
  }
  const get = (urlPath: string, accept = 'application/json') =>
    fetch(appliance.url + urlPath, { headers: { authorization: `Bearer ${key}`, accept } })
  const metrics = (await (await get('/v1/metrics?since=2000-01-01')).json()) as Metrics
  const text = await (await get('/v1/traces', 'application/x-ndjson')).text()
  await Bun.write(join(folder, 'all.parquet'), await get('/v1/traces', 'application/vnd.apache.parquet'))
  await runCli('export', 'traces', '--format', 'parquet', join(folder, 'whole'))
  await runCli('export', 'traces', '--format', 'parquet', '--partition', 'day', join(folder, 'days'))
  return {
    metrics,
    hours: Object.fromEntries(metrics.byHour.map(({ hour, count }) => [String(Date.parse(hour)), count])),
    ndjson: text.trimEnd().split('\n').slice(0, -1).toSorted(),
    async importAgain(file) {
      const { accepted, deduped } = JSON.parse(await runCli('import', file, '--json')) as {
        [name in 'accepted' | 'deduped']: number
      }
      expectSame(`${file.slice(folder.length + 1)} imported`, [accepted, deduped], [0, metrics.total])
    },
  }
}

const rewritten = ['uncompressed', 'snappy', 'gzip', 'zstd'].flatMap((codec) => [
  { codec, version: 'V1' },
  { codec, version: 'V2' },
])

async function withDuckDb(
  folder: string,
  { metrics, hours, ndjson, importAgain }: ExportedFiles,
): Promise<void> {
  const { DuckDBInstance } = await installed<DuckDb>(
    join(folder, 'duckdb'),
    ['@duckdb/node-api'],
    duckDbVersion,
  )
  const duckdb = await (await DuckDBInstance.create(':memory:')).connect()
  for (const files of exportedFiles) {
    const from = `read_parquet('${join(folder, files)}')`
    const rows = async (sql: string): Promise<unknown[][]> => (await duckdb.runAndReadAll(sql)).getRows()
    const counts = async (column: string) =>
      Object.fromEntries(
        (await rows(`SELECT ${column}, count(*) FROM ${from} GROUP BY 1`)).map(([name, n]) => [
          String(name),
          Number(n),
        ]),
      )
    expectSame(`${files}: types`, await counts('type'), metrics.byType)
    expectSame(`${files}: outcomes`, await counts('outcome'), metrics.byOutcome)
    expectSame(`${files}: hours`, await counts(`epoch_ms(date_trunc('hour', occurred_at))`), hours)
    const events = await rows(`SELECT event FROM ${from} ORDER BY event`)
    const texts = events.map(([text]) => text as string).sort()
    expectSame(`${files}: ${events.length} events`, texts, ndjson)
    const [[wrong]] = (await rows(
      `SELECT count(*) FROM ${from} WHERE id != event->>'$.id' OR type != event->>'$.type'
       OR session != event->>'$.sessionId'`,
    )) as [[unknown]]
    expectSame(`${files}: columns and events`, Number(wrong), 0)
    const pruned = await rows(
      `SELECT count(*) FROM ${from} WHERE agent_vendor = 'ChatGPT' AND occurred_at > TIMESTAMP '2000-01-01'`,
    )
    const plain = ndjson.filter(
      (text) => (JSON.parse(text) as { agent?: { vendor?: string } }).agent?.vendor === 'ChatGPT',
    )
    expectSame(`${files}: a filter on statistics`, Number(pruned[0]![0]), plain.length)
  }
  for (const { codec, version: pages } of rewritten) {
    const path = join(folder, `${codec}-${pages}.parquet`)
    const options = `FORMAT parquet, CODEC '${codec}', PARQUET_VERSION ${pages}, ROW_GROUP_SIZE 4096`
    const source = `SELECT * FROM read_parquet('${join(folder, 'all.parquet')}')`
    await duckdb.runAndReadAll(`COPY (${source}) TO '${path}' (${options})`)
    await importAgain(path)
  }
}

interface Frame {
  getColumn(name: string): { toArray(): unknown[] }
  writeParquet(path: string, options: { compression: string }): void
}
interface Polars {
  default: { readParquet(path: string): Frame; concat(frames: Frame[]): Frame }
}

function countsOf(values: unknown[]): { [value: string]: number } {
  const counts: { [value: string]: number } = {}
  for (const value of values) counts[String(value)] = (counts[String(value)] ?? 0) + 1
  return counts
}

async function withPolars(
  folder: string,
  { metrics, hours, ndjson, importAgain }: ExportedFiles,
): Promise<void> {
  // npm leaves out the native part where Node.js is older than the package likes.
  const native = `nodejs-polars-${process.platform}-${process.arch}-gnu`
  const { default: polars } = await installed<Polars>(
    join(folder, 'polars'),
    ['nodejs-polars', native],
    polarsVersion,
  )
  for (const files of exportedFiles) {
    const paths = [...new Bun.Glob(files).scanSync(folder)].map((path) => join(folder, path))
    const frame = polars.concat(paths.map((path) => polars.readParquet(path)))
    const column = (name: string) => frame.getColumn(name).toArray()
    expectSame(`${files}: types`, countsOf(column('type')), metrics.byType)
    expectSame(`${files}: outcomes`, countsOf(column('outcome')), metrics.byOutcome)
    const hourOf = (timeMs: unknown) => Math.floor(Number(timeMs) / hourMs) * hourMs
    expectSame(`${files}: hours`, countsOf(column('occurred_at').map(hourOf)), hours)
    expectSame(`${files}: ${metrics.total} events`, column('event').toSorted(), ndjson)
    const ids = ndjson.map((text) => (JSON.parse(text) as { id: string }).id)
    expectSame(`${files}: ids`, column('id').toSorted(), ids.toSorted())
  }
  const whole = polars.readParquet(join(folder, 'all.parquet'))
  for (const compression of ['uncompressed', 'snappy', 'gzip', 'zstd']) {
    const path = join(folder, `polars-${compression}.parquet`)
    whole.writeParquet(path, { compression })
    await importAgain(path)
  }
}

async function main(): Promise<void> {
  using folder = tempDir('parquet-readers')
  await using appliance = await startAppliance()
  const files = await exportInto(folder.path, appliance)
  await withDuckDb(folder.path, files)
  await withPolars(folder.path, files)
}

if (import.meta.main) {
  if (!process.argv.includes('--full'))
    throw new Error('installs DuckDB and Polars from the registry: add --full')
  await main()
  process.exit(0)
}
