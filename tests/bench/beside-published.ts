/** What ClickHouse publishes about data of this kind, as ratios beside ours, for the bench beside others. */
import { allOf, type Found } from './beside-run.ts'
import { table } from './report.ts'

/** Bytes per stored document; seconds of the quicker of two warm runs of queries 1 and 3. */
interface System {
  bytes: number
  byMember: number
  byHour: number
}

/** https://jsonbench.com, as of 2025-11-15: m6i.8xlarge (32 vCPUs), ClickHouse 25.11, DuckDB 1.1.3, PostgreSQL 16.6. */
const jsonBench = [
  {
    millions: 1,
    raw: 480.8,
    zstd: 126.7,
    clickhouse: { bytes: 98.5, byMember: 0.004, byHour: 0.012 },
    duckdb: { bytes: 485.5, byMember: 0.111, byHour: 0.329 },
    postgres: { bytes: 731.1, byMember: 0.133, byHour: 0.357 },
  },
  {
    millions: 10,
    raw: 485.9,
    zstd: 127,
    clickhouse: { bytes: 100.1, byMember: 0.006, byHour: 0.036 },
    duckdb: { bytes: 490.1, byMember: 0.609, byHour: 1.551 },
    postgres: { bytes: 827.8, byMember: 0.949, byHour: 2.597 },
  },
  {
    millions: 100,
    raw: 478.1,
    zstd: 122.5,
    clickhouse: { bytes: 96.6, byMember: 0.027, byHour: 0.214 },
    duckdb: { bytes: 478.1, byMember: 5.485, byHour: 13.357 },
    postgres: { bytes: 758.9, byMember: 10.33, byHour: 33.099 },
  },
]

const source = `ClickHouse: "JSONBench — a Benchmark For Data Analytics On JSON" (https://jsonbench.com, its
queries 1 and 3, warm, on 32 vCPUs; DuckDB and PostgreSQL loaded up to 30 % fewer documents). All store JSON
alone there and do not deduplicate, and ClickHouse does not return a text as sent. "Estimating resources"
(https://clickhouse.com/docs/clickstack/managing/estimating-resources) plans a vCPU per 10 MB/s of raw logs and
tenfold compression. The log of a load by ClickHouse's Tom Schreiber
(https://gist.github.com/tom-clickhouse/6c2bd2b6bd18aca4a1cce665d0c806fe) has 2.93 GB/s on 59 insert threads, 50
MB/s each.`

const ratio = (dividend: number | undefined, divisor: number | undefined): string => {
  if (dividend === undefined || divisor === undefined) return ''
  const value = dividend / divisor
  return value < 10 ? value.toFixed(2) : value.toFixed(0)
}

function findOurSystem(results: Found[], title: string): System | undefined {
  const result = results.find((candidate) => candidate.title === title)
  if (result === undefined) return undefined
  const { byMember, byVendor } = result.answers
  return {
    bytes: result.repacked?.bytes ?? result.bytes,
    byMember: byMember.againMs,
    byHour: byVendor.againMs,
  }
}

/** Another engine's bytes and times by ours, or by ClickHouse's. */
export function published(
  results: Found[],
  { total, raw, zstd }: { total: number; raw: number; zstd: number },
): string {
  const row = (name: string, self: System | undefined, [duckdb, postgres]: (System | undefined)[]) => [
    name,
    ratio(duckdb?.bytes, self?.bytes),
    ratio(postgres?.bytes, self?.bytes),
    ratio(duckdb?.byMember, self?.byMember),
    ratio(postgres?.byMember, self?.byMember),
    ratio(duckdb?.byHour, self?.byHour),
    ratio(postgres?.byHour, self?.byHour),
  ]
  const self = findOurSystem(results, 'ours')
  const filled = results.find(({ title }) => title === 'ours')?.filled ?? null
  const nearest = jsonBench.toReversed().find(({ millions }) => millions * 1e6 <= total) ?? jsonBench[0]!
  const compressed = (bytes: number | undefined, totalBytes: number, packed: number) => [
    ratio(bytes, totalBytes),
    ratio(bytes, packed),
  ]
  const rows = [
    [
      ...row('ours, this run', self, [
        findOurSystem(results, 'DuckDB'),
        findOurSystem(results, 'PostgreSQL'),
      ]),
      ...compressed(self && self.bytes / total, raw, zstd),
      filled === null ? '' : ratio(raw * allOf(filled).events, allOf(filled).cpuMs * 1_000),
    ],
    [
      ...row(`ClickHouse, ${nearest.millions} M documents`, nearest.clickhouse, [
        nearest.duckdb,
        nearest.postgres,
      ]),
      ...compressed(nearest.clickhouse.bytes, nearest.raw, nearest.zstd),
      '10 to 50',
    ],
  ]
  const head = [
    'others by it',
    'size: DuckDB',
    'PostgreSQL',
    'count by a member: DuckDB',
    'PostgreSQL',
    'count by hour: DuckDB',
    'PostgreSQL',
    'its bytes by raw JSON',
    'by `zstd`',
    'raw MB/s per core, without repacking or merges',
  ]
  return `${table(head, rows)}\n\n${source}`
}
