/** DuckDB from npm and rows in PostgreSQL, for the bench beside others. */
import { rm, writeFile } from 'node:fs/promises'
import postgres from 'postgres'
import type { EventRecord } from '../../db/contract/store.ts'
import { installed } from '../api/parquet-readers.ts'
import { clusterFolder, startPostgres } from '../support/postgres.ts'
import { pageEvents, quickEvents, type Answers, type Engine } from './beside-ours.ts'
import { processorSeconds } from './report.ts'

/** The fields of an event, as columns of text beside its time, its duration and its JSON. */
const texts = [
  'id',
  'siteId',
  'sessionId',
  'type',
  'outcome',
  'tool',
  'class',
  'trust',
  'name',
  'vendor',
  'purpose',
  'protocol',
  'subject',
  'page',
] as const
/** `idType`: the type of the id. */
const textColumns = (idType: string): string =>
  texts.map((name) => `"${name}" ${name === 'id' ? idType : 'TEXT'}`).join(', ')

type Value = string | number | bigint | boolean | null | object
interface Appender {
  appendTimestampMilliseconds(value: object): void
  appendVarchar(value: string): void
  appendInteger(value: number): void
  appendNull(): void
  endRow(): void
  closeSync(): void
}
interface Connection {
  run(sql: string): Promise<{ rowsChanged: number }>
  runAndReadAll(sql: string, values?: Value[]): Promise<{ getRows(): Value[][] }>
  createAppender(table: string): Promise<Appender>
  closeSync(): void
}
interface Instance {
  connect(): Promise<Connection>
  closeSync(): void
}
export interface DuckDb {
  DuckDBInstance: { create(path: string): Promise<Instance> }
  timestampMillisValue(millis: bigint): object
}

type Ask = (sql: string, values?: Value[]) => Promise<Value[][]>

const duckQuickEvents = 100_000
const postgresQuickEvents = 20_000
const csvOptions = `(FORMAT csv, HEADER false, AUTO_DETECT false, QUOTE '"', ESCAPE '"', NULLSTR '')`
const memory = { duckLog: '1GB', duck: '8GB', buffers: '2GB', log: '4GB' }

/**
 * Each batch by an appender, whose end commits it to the log with an fsync. The log is copied into the database when it
 * has a gigabyte, because with DuckDB's default of 16 MiB a batch costs twice as much and an event a third more bytes.
 * Its default of four fifths of the memory leaves none to the page cache.
 * Fast batches are copied from a CSV file, because its client keeps 260 bytes of memory for every appended event.
 * `hasKey`: a primary key on the id. A batch is then appended to a temporary table and inserted from there, because an
 * appender fails at the first known id.
 */
export async function duckDbEngine(
  path: string,
  { DuckDBInstance, timestampMillisValue }: DuckDb,
  hasKey: boolean,
): Promise<Engine> {
  let instance: Instance
  let db!: Connection
  let isQuick = false
  const csvPath = `${path}.csv`
  const fields = textColumns('TEXT NOT NULL')
  const columns = `"at" TIMESTAMP_MS NOT NULL, ${fields}, "durationMs" INTEGER, event TEXT NOT NULL`

  async function open(): Promise<void> {
    instance = await DuckDBInstance.create(path)
    db = await instance.connect()
    await db.run(`SET checkpoint_threshold = '${memory.duckLog}'`)
    await db.run(`SET memory_limit = '${memory.duck}'`)
    if (hasKey) await db.run(`CREATE TEMP TABLE staged (${columns})`)
  }

  function close(): void {
    db.closeSync()
    instance.closeSync()
  }

  const ask: Ask = async (sql, values) => (await db.runAndReadAll(sql, values)).getRows()
  await open()
  await db.run(`CREATE TABLE event (${columns}${hasKey ? ', PRIMARY KEY (id)' : ''})`)
  return {
    dedupes: hasKey,
    async append(events) {
      if (isQuick) {
        await writeFile(csvPath, csvOf(events))
        return (await db.run(`COPY event FROM '${csvPath}' ${csvOptions}`)).rowsChanged
      }
      if (!hasKey) {
        appendAll(await db.createAppender('event'), events, timestampMillisValue)
        return events.length
      }
      await db.run('BEGIN')
      appendAll(await db.createAppender('staged'), events, timestampMillisValue)
      const { rowsChanged } = await db.run('INSERT OR IGNORE INTO event SELECT * FROM staged')
      await db.run('DELETE FROM staged')
      await db.run('COMMIT')
      return rowsChanged
    },
    async quick(isEnabled) {
      isQuick = isEnabled
      if (!isEnabled) await rm(csvPath, { force: true })
      return duckQuickEvents
    },
    settle: async () => void (await db.run('CHECKPOINT')),
    async bytes() {
      const [row = []] = await ask('SELECT block_size, used_blocks FROM pragma_database_size()')
      const [block, usedBlocks] = row
      return Number(block) * Number(usedBlocks)
    },
    async restart() {
      close()
      await open()
    },
    childSeconds: () => 0,
    ...duckDbAnswers(ask, timestampMillisValue),
    close,
  }
}

function appendAll(rows: Appender, events: EventRecord[], timeOf: (millis: bigint) => object): void {
  for (const event of events) {
    rows.appendTimestampMilliseconds(timeOf(BigInt(event.occurredAtMs)))
    for (const name of texts) {
      const value = event[name]
      if (value === null) rows.appendNull()
      else rows.appendVarchar(value)
    }
    if (event.durationMs === null) rows.appendNull()
    else rows.appendInteger(event.durationMs)
    rows.appendVarchar(event.json)
    rows.endRow()
  }
  rows.closeSync()
}

/** An empty field is NULL. */
function csvOf(events: EventRecord[]): string {
  const quoted = (value: string | null) => (value === null ? '' : `"${value.replaceAll('"', '""')}"`)
  const rows = events.map((event) =>
    [
      new Date(event.occurredAtMs).toISOString().slice(0, -1),
      ...texts.map((name) => quoted(event[name])),
      event.durationMs ?? '',
      quoted(event.json),
    ].join(','),
  )
  return `${rows.join('\n')}\n`
}

/** A member is read from the text, which DuckDB stores as sent. */
function duckDbAnswers(ask: Ask, timeOf: (millis: bigint) => object): Answers {
  const countOf = (rows: Value[][]) => rows.reduce((sum, row) => sum + Number(row.at(-1)), 0)
  const time = (ms: number) => timeOf(BigInt(ms))
  const newestOf = (condition: string, values?: Value[]) =>
    ask(`SELECT event FROM event ${condition} ORDER BY "at" DESC LIMIT ${pageEvents}`, values)
  return {
    newest: async () => (await newestOf('')).length,
    rare: async ({ vendor }) => (await newestOf('WHERE vendor = $1', [vendor])).length,
    byId: async ({ id }) => (await ask('SELECT event FROM event WHERE id = $1', [id])).length,
    byVendor: async ({ sinceMs }) =>
      countOf(
        await ask(
          `SELECT vendor, date_trunc('hour', "at"), count(*) FROM event WHERE "at" >= $1 GROUP BY 1, 2`,
          [time(sinceMs)],
        ),
      ),
    byMember: async ({ member }) =>
      countOf(await ask(`SELECT event->>'$.metadata.${member}', count(*) FROM event GROUP BY 1`)),
    search: async ({ text, sinceMs }) =>
      (await newestOf('WHERE "at" >= $1 AND event ILIKE $2', [time(sinceMs), `%${text}%`])).length,
  }
}

export async function openDuckDb(folder: string, version: string): Promise<DuckDb> {
  return installed<DuckDb>(folder, ['@duckdb/node-api'], version)
}

const escapes: { [character: string]: string } = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const copied = (value: string | number | null): string | number =>
  typeof value === 'string'
    ? value.replace(/[\\\t\n\r]/g, (character) => escapes[character]!)
    : (value ?? '\\N')

/**
 * A table with a primary key on the id and an index on the time, in a server of Debian with fsync. A batch is copied
 * into a temporary table and inserted from there, because COPY fails at the first known id. Fast batches, which have no
 * known ids, are copied into the table, a half by each of two connections.
 * `rowFolder`: where the rows are stored, unless beside the rest of the server.
 */
export async function postgresEngine(rowFolder: string | null): Promise<Engine> {
  const settings = { shared_buffers: memory.buffers, max_wal_size: memory.log }
  const cluster = await startPostgres({ fsync: true, walFileMiB: 16, settings })
  const fields = textColumns('text')
  const columns = `"at" timestamptz NOT NULL, ${fields}, "durationMs" integer, event jsonb NOT NULL`
  let db!: postgres.Sql
  let second!: postgres.Sql
  let isQuick = false

  async function open(): Promise<void> {
    db = postgres(cluster.url, { max: 1, onnotice: () => {} })
    second = postgres(cluster.url, { max: 1, connection: { synchronous_commit: 'off' } })
    await db.unsafe(`CREATE TEMP TABLE staged (${columns}) ON COMMIT DELETE ROWS`)
  }

  async function close(): Promise<void> {
    await db.end()
    await second.end()
  }

  await open()
  const place = rowFolder === null ? '' : await tablespace(db, rowFolder)
  await db.unsafe(`CREATE TABLE event (${columns}) ${place}`)
  await db.unsafe('ALTER TABLE event ADD PRIMARY KEY (id)')
  await db.unsafe('CREATE INDEX ON event ("at")')
  return {
    dedupes: true,
    async append(events) {
      if (isQuick) {
        await copyHalves([db, second], events)
        return events.length
      }
      return db.begin(async (transaction) => {
        await copyInto(transaction, 'staged', events)
        const { count } = await transaction.unsafe(
          'INSERT INTO event SELECT * FROM staged ON CONFLICT (id) DO NOTHING',
        )
        return count
      })
    },
    async quick(isEnabled) {
      isQuick = isEnabled
      await db.unsafe(`SET synchronous_commit = ${isEnabled ? 'off' : 'on'}`)
      return postgresQuickEvents
    },
    async settle() {
      await db.unsafe('ANALYZE event')
      await db.unsafe('CHECKPOINT')
    },
    async bytes() {
      const [row] = await db.unsafe<{ bytes: string }[]>(`SELECT pg_total_relation_size('event') AS bytes`)
      return Number(row!.bytes)
    },
    async restart() {
      await close()
      await cluster.restart()
      await open()
    },
    childSeconds: () => processorSeconds(cluster.pid()),
    ...postgresAnswers(() => db),
    async close() {
      await close()
      await cluster.stop()
    },
  }
}

/** As a clause of CREATE TABLE. */
async function tablespace(db: postgres.Sql, folder: string): Promise<string> {
  await db.unsafe(`CREATE TABLESPACE rows LOCATION '${await clusterFolder(folder)}'`)
  return 'TABLESPACE rows'
}

async function copyHalves(
  [firstConnection, secondConnection]: [postgres.Sql, postgres.Sql],
  events: EventRecord[],
): Promise<void> {
  const half = events.length >> 1
  await Promise.all([
    copyInto(firstConnection, 'event', events.slice(0, half)),
    copyInto(secondConnection, 'event', events.slice(half)),
  ])
}

async function copyInto(sql: postgres.ISql, table: string, events: EventRecord[]): Promise<void> {
  const rows = events.map((event) =>
    [
      new Date(event.occurredAtMs).toISOString(),
      ...texts.map((name) => copied(event[name])),
      copied(event.durationMs),
      copied(event.json),
    ].join('\t'),
  )
  const input = await sql.unsafe(`COPY ${table} FROM STDIN`).writable()
  const ended = new Promise((resolve, reject) => input.on('finish', resolve).on('error', reject))
  input.end(`${rows.join('\n')}\n`)
  await ended
}

/** `now`: the connection since the last restart. */
function postgresAnswers(now: () => postgres.Sql): Answers {
  const newestOf = async (condition: string, values: (string | Date)[] = []) =>
    (
      await now().unsafe(
        `SELECT event FROM event ${condition} ORDER BY "at" DESC LIMIT ${pageEvents}`,
        values,
      )
    ).length
  const sumOf = async (sql: string, values: Date[] = []) =>
    (await now().unsafe<{ count: string }[]>(sql, values)).reduce((sum, { count }) => sum + Number(count), 0)
  return {
    newest: () => newestOf(''),
    rare: ({ vendor }) => newestOf('WHERE vendor = $1', [vendor]),
    byId: async ({ id }) => (await now().unsafe('SELECT event FROM event WHERE id = $1', [id])).length,
    byVendor: ({ sinceMs }) =>
      sumOf(`SELECT vendor, date_trunc('hour', "at"), count(*) FROM event WHERE "at" >= $1 GROUP BY 1, 2`, [
        new Date(sinceMs),
      ]),
    byMember: ({ member }) => sumOf(`SELECT event->'metadata'->>'${member}', count(*) FROM event GROUP BY 1`),
    search: ({ text, sinceMs }) =>
      newestOf('WHERE "at" >= $1 AND event::text ILIKE $2', [new Date(sinceMs), `%${text}%`]),
  }
}
