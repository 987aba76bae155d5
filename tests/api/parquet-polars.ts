/**
 * `bun tests/api/parquet-polars.ts --full`: Polars reads every kind of exported Parquet file with the counts of
 * /v1/metrics and the events of NDJSON, and files that it wrote anew import. It is installed into a temporary folder
 * like DuckDB, and this is no test.
 */
import { join } from 'node:path'
import { startAppliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'
import { exportInto, exportedFiles, installed, same } from './parquet-duckdb.ts'

const version = '0.26.1' // of nodejs-polars
const hourMs = 3_600_000

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

async function main(): Promise<void> {
  using folder = tempDir('polars')
  // npm leaves out the native part where Node.js is older than the package likes.
  const native = `nodejs-polars-${process.platform}-${process.arch}-gnu`
  const { default: polars } = await installed<Polars>(folder.path, ['nodejs-polars', native], version)
  await using appliance = await startAppliance()
  const { metrics, hours, ndjson, importAgain } = await exportInto(folder.path, appliance)
  for (const files of exportedFiles) {
    const paths = [...new Bun.Glob(files).scanSync(folder.path)].map((path) => join(folder.path, path))
    const frame = polars.concat(paths.map((path) => polars.readParquet(path)))
    const column = (name: string) => frame.getColumn(name).toArray()
    same(`${files}: types`, countsOf(column('type')), metrics.byType)
    same(`${files}: outcomes`, countsOf(column('outcome')), metrics.byOutcome)
    const hourOf = (at: unknown) => Math.floor(Number(at) / hourMs) * hourMs
    same(`${files}: hours`, countsOf(column('occurred_at').map(hourOf)), hours)
    same(`${files}: ${metrics.total} events`, column('event').toSorted(), ndjson)
    const ids = ndjson.map((text) => (JSON.parse(text) as { id: string }).id)
    same(`${files}: ids`, column('id').toSorted(), ids.toSorted())
  }
  const whole = polars.readParquet(join(folder.path, 'all.parquet'))
  for (const compression of ['uncompressed', 'snappy', 'gzip', 'zstd']) {
    const path = join(folder.path, `polars-${compression}.parquet`)
    whole.writeParquet(path, { compression })
    await importAgain(path)
  }
}

if (import.meta.main) {
  if (!process.argv.includes('--full')) throw new Error('installs Polars from the registry: add --full')
  await main()
  process.exit(0)
}
