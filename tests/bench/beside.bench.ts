/** Our engine beside DuckDB and rows in PostgreSQL, with the same events in one run; see --help. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { databasePath } from '../../db/sqlite/file/files.ts'
import { duckDbVersion } from '../api/parquet-readers.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { duckDbEngine, openDuckDb, postgresEngine } from './beside-others.ts'
import { ourEngine, pageEvents, type Engine, type Question } from './beside-ours.ts'
import { published } from './beside-published.ts'
import { allOf, batchAt, durableMax, run, type Filled, type Found, type Part } from './beside-run.ts'
import { eventSource, idOf, startMs } from './engine-events.ts'
import { machine, recordTable, table, watchStolen } from './report.ts'

const help = `Fills each engine with the same events in batches of 1,000, each committed to disk with an fsync, then
restarts it and asks the same questions, whose answers must agree. Beyond a million events only the first and the last
tenth are filled so, at most a million events each. Between them each engine is filled in its own fast setting.

  bun tests/bench/beside.bench.ts [--events N] [--engines LIST] [--data FOLDER] [--rows FOLDER] [--write]

  --events N      1,000,000 unless given
  --engines LIST  of ours, duckdb, duckdb-key and postgres; all, but beyond a million events without duckdb-key, which
                  has a primary key on the id and becomes slower with every event
  --data FOLDER   for ours a folder that \`flat.bench.ts\` has filled with as many events; it is asked, not filled
  --rows FOLDER   where PostgreSQL stores its rows, such as a file system that compresses; its indexes and log stay
                  in the temporary folder
  --write         replaces the section of that number of events in tests/bench/results.md

DuckDB is installed from npm into a temporary folder. PostgreSQL needs 1,020 bytes of disk per event, DuckDB 250.`

const sampleEvents = 200_000

const engineNames = ['ours', 'duckdb', 'duckdb-key', 'postgres'] as const
type EngineName = (typeof engineNames)[number]
const titles: { [name in EngineName]: string } = {
  ours: 'ours',
  duckdb: 'DuckDB',
  'duckdb-key': 'DuckDB, primary key',
  postgres: 'PostgreSQL',
}

const duckDb = async (dir: TempDir, hasKey: boolean) =>
  duckDbEngine(
    dir.join(`duckdb-${hasKey}.db`),
    await openDuckDb(dir.join(`npm-${hasKey}`), duckDbVersion),
    hasKey,
  )
const engines: { [name in EngineName]: (dir: TempDir, options: Options) => Promise<Engine> | Engine } = {
  ours: (dir, { folder }) =>
    ourEngine(folder === null ? dir.join('ours.db') : databasePath(join(folder, 'data'))),
  duckdb: (dir) => duckDb(dir, false),
  'duckdb-key': (dir) => duckDb(dir, true),
  postgres: (_, { rowFolder }) => postgresEngine(rowFolder),
}

const settings = `Ours: SQLite with \`synchronous=FULL\`; fast: batches of 5,000 and \`synchronous=OFF\`. DuckDB
${duckDbVersion}: a \`memory_limit\` of 8 GB, an appender per batch, whose end commits with an fsync, and a
\`checkpoint_threshold\` of 1 GB: its default of 16 MiB doubles the processor time and adds a third to the
bytes. Fast: COPY of a CSV file of 100,000.
With a primary key: a temporary table and \`INSERT OR IGNORE\`. PostgreSQL: a primary key on the id, an index on
the time, \`jsonb\`, \`shared_buffers\` of 2 GB, COPY into a temporary table and \`INSERT … ON CONFLICT DO
NOTHING\`. Fast: COPY of 20,000 into the table over two connections, \`synchronous_commit=off\`. Its bytes
are without the write-ahead log, its restart is that of the server.`
const earlierResult = `Ours on 2026-11-24 with 100,000,000 events on two cores, before ids had groups and sealed events
were repacked: 116,000 events/s, falling from 188,000 to 98,000; 91.5 bytes per event; restart 2.7 s; resends 94
µs; metrics of 30 days 24 ms; a page of a rare vendor 61 ms.`

interface Options {
  total: number
  engines: EngineName[]
  folder: string | null
  rowFolder: string | null
}

const number = (value: number): string =>
  value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en-US')
const rate = ({ events, ms, cpuMs }: Part): string =>
  events === 0 ? '' : `${number((events / ms) * 1_000)}/s, ${number((cpuMs / events) * 1_000)} µs`

const questionRows: [keyof Question, string][] = [
  ['newest', 'newest page of 200'],
  ['rare', 'page of 200 of a rare vendor'],
  ['byId', 'one event by its id'],
  ['byVendor', 'count by vendor and hour, 30 days'],
  ['byMember', 'count by `metadata.page`, all'],
  ['search', 'a text that no event of 24 h has'],
]

function besideTable(results: Found[], total: number): string {
  const row = (name: string, cell: (result: Found) => string) => [name, ...results.map(cell)]
  const part = (readPart: (filled: Filled) => Part) => (result: Found) =>
    result.filled === null ? '' : rate(readPart(result.filled))
  const perEvent = (bytes: number) => number(bytes / total)
  return table(
    [`${total.toLocaleString('en-US')} events`, ...results.map(({ title }) => title)],
    [
      row(
        'first tenth, at most a million: events/s, processor time each',
        part(({ first }) => first),
      ),
      row(
        'between',
        part(({ middle }) => middle),
      ),
      row('… events per batch', ({ filled }) => (filled?.middle.batch ?? 0).toLocaleString('en-US')),
      row(
        'last tenth',
        part(({ last }) => last),
      ),
      row('all, with what was put off', part(allOf)),
      row('bytes per event, with indexes', ({ bytes }) => perEvent(bytes)),
      row('… after path columns and repacking', ({ repacked }) => {
        if (repacked === null) return ''
        const { share } = repacked
        return `${perEvent(repacked.bytes)}${share < 1 ? ` (by ${Math.round(share * 100)} % of the events)` : ''}`
      }),
      row('… processor time of that, each', ({ repacked }) =>
        repacked === null ? '' : `${number((repacked.cpuMs / total) * 1_000)} µs`,
      ),
      row('restart to first answer, ms', ({ restartMs }) => number(restartMs)),
      ...questionRows.map(([question, name]) =>
        row(`${name}: first, p50; processor ms`, ({ answers }) => {
          const { firstMs, againMs, cpuMs } = answers[question]
          return `${number(firstMs)}, ${number(againMs)}; ${number(cpuMs)}`
        }),
      ),
      row('resends of scattered ids, each: time, processor time', ({ resent }) =>
        resent === null
          ? 'stored twice'
          : `${number((resent.ms / resent.events) * 1_000)} µs, ${number((resent.cpuMs / resent.events) * 1_000)} µs`,
      ),
    ],
  )
}

function requireSameAnswers(results: Found[], total: number): void {
  for (const [question] of questionRows) {
    const answers = new Set(results.map((result) => result.answers[question].answer))
    if (answers.size > 1) throw new Error(`${question}: ${[...answers].join(', ')}`)
  }
  const { newest, byId, byMember, search } = results[0]!.answers
  const expected = [pageEvents, 1, total, 0]
  if (![newest, byId, byMember, search].every(({ answer }, index) => answer === expected[index]))
    throw new Error(`${JSON.stringify(results[0]!.answers)} instead of ${expected.join(', ')}`)
}

function optionsOf(args: string[]): Options {
  const value = (name: string) => (args.includes(name) ? (args[args.indexOf(name) + 1] ?? '') : null)
  const total = Number(value('--events') ?? 1_000_000)
  const usual = engineNames.filter((name) => name !== 'duckdb-key' || total <= durableMax)
  const listed = value('--engines')?.split(',') ?? usual
  const engines = engineNames.filter((name) => listed.includes(name))
  if (engines.length !== listed.length || !Number.isInteger(total) || total < 10_000) throw new Error(help)
  return { total, engines, folder: value('--data'), rowFolder: value('--rows') }
}

/** With its compression, where it has one. */
function fileSystemOf(folder: string): string {
  const mountText = Bun.spawnSync(['findmnt', '-no', 'FSTYPE,OPTIONS', '--target', folder]).stdout.toString()
  const [type = 'a file system of its own'] = mountText.trim().split(/\s/)
  const [, compression] = mountText.match(/\bcompress\S*?=([^,\s]+)/) ?? []
  return compression === undefined ? type : `${type} that compresses them (${compression})`
}

async function main(args: string[]): Promise<void> {
  if (args.includes('--help')) return console.log(help)
  const options = optionsOf(args)
  const { total, folder, rowFolder } = options
  const fromMs = folder === null ? startMs : Number(readFileSync(join(folder, 'begun'), 'utf8'))
  const source = eventSource(total, fromMs, idOf)
  const sampled = Math.min(total, sampleEvents)
  const sample = Buffer.from(
    `${batchAt(source, 0, sampled)
      .map(({ json }) => json)
      .join('\n')}\n`,
  )
  const packed = Bun.zstdCompressSync(sample, { level: 3 })
  const raw = sample.length / sampled
  const zstd = packed.length / sampled
  const stolen = watchStolen()
  const results: Found[] = []
  for (const name of options.engines) {
    using dir = tempDir('beside') // of each engine, because all together may not fit the disk
    const engine = await engines[name](dir, options)
    results.push(await run(titles[name], engine, source, { total, folder: name === 'ours' ? folder : null }))
  }
  requireSameAnswers(results, total)
  const text = [
    ...(folder === null ? [] : ['`flat.bench.ts` filled ours before; it is asked as it was left.']),
    ...(rowFolder === null ? [] : [`PostgreSQL stores its rows on ${fileSystemOf(rowFolder)}.`]),
    besideTable(results, total),
    `Raw JSON: ${raw.toFixed(0)} bytes per event; \`zstd -3\` of ${sampled.toLocaleString('en-US')}: ` +
      `${zstd.toFixed(1)}. Taken by the host meanwhile: ${stolen.end() ?? 'unknown'} %.`,
    settings,
    earlierResult,
    published(results, { total, raw, zstd }),
  ].join('\n\n')
  console.log(`${machine()}\n\n${text}`)
  if (args.includes('--write')) recordTable(`Beside others, ${total.toLocaleString('en-US')} events`, text)
}

await main(Bun.argv.slice(2))
