/** Bench of the event engine in process: `bun tests/bench/engine.bench.ts --short|--full [--write]`, see --help. */
import type { SqliteDatabase } from '../../db/sqlite/file/connection.ts'
import { cpus } from 'node:os'
import type { EventRecord } from '../../db/contract/store.ts'
import { inTransaction } from '../../db/sql/database.ts'
import { openReaderConnection, openWriterConnection } from '../../db/sqlite/file/connection.ts'
import type { EventWriter } from '../../db/sql/events/engine.ts'
import { compactEventReader } from '../../db/sql/events/reader.ts'
import { idsInRuns } from '../../db/sql/events/ids-in-runs.ts'
import { readAtOnce, type ReaderAtOnce } from '../support/read-at-once.ts'
import { compactEventWriter } from '../../db/sql/events/writer.ts'
import { migrate, migrations } from '../../db/sqlite/migrations/migrations.ts'
import { tempDir } from '../support/temp-dir.ts'
import { eventSource, startMs, type EventSource } from './engine-events.ts'
import { engineFloors, otherEngine } from './engine-floors.ts'
import { perSecond, recordTable, watchStolen } from './report.ts'

const orgId = 'org_bench'
const batchEvents = 1_000
const floorEvery = 10 // 1 in 10 batches is also written by each floor
const otherEventsMax = 1_000_000
const resentBatches = 40
const hourMs = 3_600_000

const help = `Fills an engine with events in batches of 1,000, each batch committed to disk, beside a bare append of the
same JSON with an fsync per batch, and beside a database that keeps the texts and nothing else; then asks every kind of
page, count and restart.

  --short    300,000 events, about half a minute
  --full     10,000,000 events, several minutes and 1 GB of disk
  --events N as many as you say
  --beside F another engine's program, called with a count of events (a million at most), the size of a batch and a
             path; the first line that it prints stands beside our rate
  --write    replaces the section in tests/bench/results.md`

const lines: string[] = []
function say(line: string): void {
  lines.push(line)
  console.log(line)
}

function main(args: string[]): void {
  if (args.includes('--help')) return console.log(help)
  const eventsIndex = args.indexOf('--events')
  const total =
    eventsIndex >= 0 ? Number(args[eventsIndex + 1]) : args.includes('--full') ? 10_000_000 : 300_000
  const source = eventSource(total)
  using dir = tempDir('bench')
  const path = dir.join('bench.db')
  let db = openWriterConnection(path, () => {})
  migrate(db, migrations, startMs)
  let writer = compactEventWriter(db)
  say(
    `${total.toLocaleString('en')} events, batches of ${batchEvents}, ${cpus().length} cores, Bun ${Bun.version}\n`,
  )
  const besideIndex = args.indexOf('--beside')
  if (besideIndex >= 0) say(otherEngine(args[besideIndex + 1]!, Math.min(total, otherEventsMax), batchEvents))
  const old = fill(db, writer, source, total, dir.join('bare'))
  resend(db, writer, source, total, old)
  writer.idle()
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  sizes(db, total)
  const readerDb = openReaderConnection(path)
  reads(readAtOnce(compactEventReader(readerDb, idsInRuns(readerDb))), source, total, old)
  readerDb.close()
  db.close()
  const started = performance.now()
  db = openWriterConnection(path, () => {})
  writer = compactEventWriter(db)
  say(`\nrestart to ready: ${(performance.now() - started).toFixed(0)} ms`)
  writer.close()
  db.close()
  if (args.includes('--write')) recordTable('Event engine', lines.join('\n'))
}

function commit(
  db: SqliteDatabase,
  writer: EventWriter,
  events: EventRecord[],
): { accepted: number; deduped: number } {
  const result = inTransaction(db, () => {
    const receivedAtMs = events.reduce(
      (latest, eventRecord) => Math.max(latest, eventRecord.occurredAtMs),
      startMs,
    )
    const appendResult = writer.append({ orgId, keyId: 'key_bench', door: 'events', receivedAtMs, events })
    writer.flush()
    return appendResult
  })
  writer.committed()
  return result
}

/** Returns a sample of all events. */
function fill(
  db: SqliteDatabase,
  writer: EventWriter,
  source: EventSource,
  total: number,
  floorPath: string,
): EventRecord[] {
  const floors = engineFloors(floorPath)
  const stolen = watchStolen()
  const old: EventRecord[] = []
  const commitsMs: number[] = []
  const marks: string[] = []
  const part = Math.ceil(total / 8 / batchEvents) * batchEvents
  const oldEach = Math.max(1, Math.ceil((resentBatches * batchEvents) / (total / batchEvents)))
  let partMs = 0
  for (let from = 0; from < total; from += batchEvents) {
    const events = Array.from({ length: Math.min(batchEvents, total - from) }, (_, n) =>
      source.event(from + n),
    )
    for (let n = 0; n < oldEach; n++) old.push(events[Math.floor(((n + 0.5) * events.length) / oldEach)]!)
    if ((from / batchEvents) % floorEvery === 0) floors.take(events)
    const started = performance.now()
    const { accepted } = commit(db, writer, events)
    const tookMs = performance.now() - started
    if (accepted !== events.length) throw new Error(`${accepted} of ${events.length} accepted`)
    commitsMs.push(tookMs)
    partMs += tookMs
    if ((from + batchEvents) % part !== 0) continue
    marks.push(`${((from + batchEvents) / 1e6).toFixed(2)}M ${perSecond(part, partMs)}`)
    partMs = 0
  }
  floors.close()
  const stolenPercent = stolen.end()
  const spentMs = commitsMs.reduce((sum, ms) => sum + ms, 0)
  say(`durable ingest ${perSecond(total, spentMs)}`)
  floors.report(spentMs / total).forEach(say)
  if (stolenPercent !== null) say(`taken by the host meanwhile: ${stolenPercent} %`)
  say(`over time: ${marks.join(', ')}`)
  const sorted = commitsMs.toSorted((a, b) => a - b)
  const quantile = (q: number) => (sorted[Math.floor((sorted.length - 1) * q)] ?? 0).toFixed(1)
  say(`commit ms: p50 ${quantile(0.5)}, p99 ${quantile(0.99)}, max ${quantile(1)}`)
  say(`resident, with what makes the events: ${megabytes(process.memoryUsage.rss())}`)
  return old
}

/** Alternates batches of old and of fresh ids, so that both see the same conditions. */
function resend(
  db: SqliteDatabase,
  writer: EventWriter,
  source: EventSource,
  total: number,
  old: EventRecord[],
): void {
  const turns = Math.floor(old.length / batchEvents)
  let oldMs = 0
  let freshMs = 0
  const commitMs = (events: EventRecord[], deduped: number): number => {
    const started = performance.now()
    const commitResult = commit(db, writer, events)
    if (commitResult.deduped !== deduped)
      throw new Error(`${commitResult.deduped} of ${events.length} deduped`)
    return performance.now() - started
  }
  for (let turn = 0; turn < turns; turn++) {
    const again = old.filter((_, n) => n % turns === turn).slice(0, batchEvents)
    const fresh = Array.from({ length: batchEvents }, (_, n) => source.event(total + turn * batchEvents + n))
    const spentMs = commitMs(again, again.length)
    if (turn > 0) oldMs += spentMs // the first round runs code that is not compiled yet
    freshMs += commitMs(fresh, 0)
  }
  const oldUs = oldMs / (turns - 1)
  const freshUs = freshMs / turns
  const ratio = (freshUs / oldUs).toFixed(2)
  say(
    `resends of scattered ids: ${oldUs.toFixed(1)} us each, fresh ${freshUs.toFixed(1)} us, rate ${ratio} of fresh`,
  )
}

function sizes(db: SqliteDatabase, total: number): void {
  const tables = db
    .query<{ name: string; bytes: number }, []>(
      'SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY bytes DESC',
    )
    .all()
  const totalBytes = tables.reduce((sum, { bytes }) => sum + bytes, 0)
  say(`bytes an event: ${(totalBytes / total).toFixed(1)}`)
  const shown = tables.filter(({ bytes }) => bytes / total > 0.1)
  say(`by table: ${shown.map(({ name, bytes }) => `${name} ${(bytes / total).toFixed(1)}`).join(', ')}\n`)
}

function reads(reader: ReaderAtOnce, source: EventSource, total: number, old: EventRecord[]): void {
  say('| read | first ms | again p50 | again max | rows |')
  say('|---|---|---|---|---|')
  for (const { name, filter, matches } of source.questions) {
    const page = () =>
      reader.page({ orgId, filter, limit: 200, before: null, ceilingSeq: null }).events.length
    const rows = time(`page of 200: ${name}`, page)
    if (rows < Math.min(200, matches)) throw new Error(`${name}: ${rows} rows of ${matches}`)
  }
  const middle = { occurredAtMs: startMs + 15 * 24 * hourMs, seq: 1 }
  time('page of 200 from the middle', () => {
    return reader.page({ orgId, filter: {}, limit: 200, before: middle, ceilingSeq: null }).events.length
  })
  time('one by id, old', () => (reader.byId({ orgId, id: old[3]?.id ?? '' }) === null ? 0 : 1))
  time('one by id, newest', () => (reader.byId({ orgId, id: old.at(-1)?.id ?? '' }) === null ? 0 : 1))
  time('one by id, unknown', () => (reader.byId({ orgId, id: 'nobody' }) === null ? 0 : 1))
  time(
    'tail of 200',
    () => reader.tail({ orgId, filter: {}, afterSeq: total - 200, limit: 200 }).events.length,
  )
  const sessions = { orgId, filter: {}, limit: 50, before: null, ceilingSeq: null }
  const bounds = { eventsMax: 10_000, budgetMs: 300 }
  time('page of 50 sessions', () => reader.sessionPage({ ...sessions, ...bounds }).sessions.length)
  time('overview', () => Object.keys(reader.overview(orgId).byType).length)
  time(
    'metrics, 30 days',
    () => reader.metrics({ orgId, sinceMs: startMs, untilMs: null, rowsMax: 100_000 }).rows.length,
  )
  time('breakdown by vendor, 30 days, hourly', () => {
    return reader.breakdown({ orgId, sinceMs: startMs, untilMs: null, by: 'vendor', stepMs: hourMs }).rows
      .length
  })
}

function time(name: string, read: () => number): number {
  const firstStarted = performance.now()
  const rows = read()
  const firstMs = performance.now() - firstStarted
  const againMs = Array.from({ length: 9 }, () => {
    const started = performance.now()
    read()
    return performance.now() - started
  }).toSorted((a, b) => a - b)
  const cells = [firstMs, againMs[4] ?? 0, againMs[8] ?? 0].map((ms) => ms.toFixed(1))
  say(`| ${name} | ${cells.join(' | ')} | ${rows} |`)
  return rows
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`
}

main(Bun.argv.slice(2))
