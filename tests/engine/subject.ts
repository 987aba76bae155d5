/** Runs the event engine on its own database in this process. */
import { expect } from 'bun:test'
import type { SqliteDatabase } from '../../db/sqlite/file/connection.ts'
import { readFileSync, writeFileSync } from 'node:fs'
import type {
  EraseCommand,
  EraseRange,
  EventRecord,
  EventVerdict,
  ExpireCommand,
  RollupRepair,
} from '../../db/contract/store.ts'
import { inTransaction } from '../../db/sql/database.ts'
import { openReaderConnection, openWriterConnection } from '../../db/sqlite/file/connection.ts'
import type { EventWriter } from '../../db/sql/events/engine.ts'
import { recounting, type Recounting } from '../../db/sql/events/rollups/recount.ts'
import { shredder, type Shredded } from '../../db/sql/events/paths/shred.ts'
import { compactEventReader } from '../../db/sql/events/reader.ts'
import { idsInRuns } from '../../db/sql/events/ids-in-runs.ts'
import { readAtOnce, type ReaderAtOnce } from '../support/read-at-once.ts'
import { verifyInSlices, type SliceSizes } from '../../db/sql/events/verify/verify.ts'
import { compactEventWriter, type EventWriterOptions } from '../../db/sql/events/writer.ts'
import { migrate, migrations } from '../../db/sqlite/migrations/migrations.ts'
import { makeBatch, makeEvent, noon } from '../store/make.ts'
import { bodiesBetween } from '../../db/sql/events/blocks/body-table.ts'
import { tempDir } from '../support/temp-dir.ts'
import { blockTexts } from './block-texts.ts'
import { readDamaged, readFlipped, type PageOfTable } from './damage.ts'

/** Clashing fingerprints and tiny runs, so that a few hundred events use every path of dedupe. */
export const cramped: EventWriterOptions = {
  fingerprintBits: 12,
  idsPerRun: 50,
  freezePart: 2,
  deleteStep: { blocksMax: 2, rollupRowsMax: 20 },
}

/** Long after noon, so that most events come from correct clocks. */
export const firstArrivalMs = noon + 400 * 86_400_000

function connect(path: string): SqliteDatabase {
  const db = openWriterConnection(path, () => {})
  db.run('PRAGMA synchronous = OFF') // power cuts are not tested here, and waiting for the disk is slow
  return db
}

let migrated: Uint8Array | null = null

/** Creates a database with hashes of its own. Only the first one in a process runs the migrations. */
function create(path: string): SqliteDatabase {
  if (migrated === null) {
    const db = connect(path)
    migrate(db, migrations, noon)
    db.close()
    migrated = readFileSync(path)
  } else writeFileSync(path, migrated)
  const db = connect(path)
  db.run('UPDATE event_seed SET seed = randomblob(40)')
  return db
}

/** Everything the tables hold, inflated. */
function inflatedTexts(db: SqliteDatabase): string[] {
  const terms = db.query<{ text: string }, []>('SELECT text FROM event_term').all()
  return [...terms.map(({ text }) => text), ...blockTexts(db)]
}

/** Where the rows of ids and texts begin: some have several blocks. */
function bodyPlaces(db: SqliteDatabase): number[] {
  const rows = db.query<{ place: number }, []>('SELECT place FROM event_body ORDER BY place').all()
  return rows.map(({ place }) => place)
}

function rowsIn(db: SqliteDatabase, table: string): number | undefined {
  return db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n
}

/** How many events each step took. */
function eraseSteps(
  db: SqliteDatabase,
  writer: EventWriter,
  command: EraseCommand,
  interrupt: () => void = () => {},
): number[] {
  const steps: number[] = []
  for (let range: EraseRange | null = null; ;) {
    const step = inTransaction(db, () => writer.erase(command, range))
    writer.committed()
    steps.push(step.events)
    if (step.next === null) return steps
    range = step.next
    interrupt()
  }
}

function expireSteps(db: SqliteDatabase, writer: EventWriter, command: ExpireCommand): number[] {
  for (const steps: number[] = []; ;) {
    const step = inTransaction(db, () => writer.expire(command))
    writer.committed()
    steps.push(step.events)
    if (step.done) return steps
  }
}

function recountSlices(
  db: SqliteDatabase,
  { step }: Recounting,
  interrupt: (slice: number) => void,
): RollupRepair[] {
  for (let slice = 1; ; slice++) {
    const repairs = inTransaction(db, () => step(db, 1))
    if (repairs !== null) return repairs
    interrupt(slice)
  }
}

function verifySlices(check: Generator<void, EventVerdict>, interrupt: () => void): EventVerdict {
  for (;;) {
    const slice = check.next()
    if (slice.done) return slice.value
    interrupt()
  }
}

/** How many rows of rollups each step took. */
function dropSteps(
  db: SqliteDatabase,
  writer: EventWriter,
  command: { orgId: string; beforeMs: number },
): number[] {
  for (const steps: number[] = []; ;) {
    const step = inTransaction(db, () => writer.dropRollups(command))
    writer.committed()
    steps.push(step.rows)
    if (step.done) return steps
  }
}

function undone(db: SqliteDatabase, writer: EventWriter, work: () => void): void {
  expect(() =>
    inTransaction(db, () => {
      work()
      writer.flush()
      throw new Error('undo')
    }),
  ).toThrow('undo')
  writer.rolledBack()
}

function askReader<T>(path: string, ask: (db: SqliteDatabase) => T): T {
  using connection = openReaderConnection(path)
  return ask(connection)
}

function shreddedOf(db: SqliteDatabase): Shredded {
  const shredding = shredder(db, 1, 0)
  while (shredding.step());
  return shredding.result()!
}

const opens = {
  columns: /^SELECT columns FROM event_block/,
  texts: /^SELECT (ids|bodies) AS blob/,
  days: /^SELECT min\(hour\) AS hour FROM rollup_value/,
}

/** How often columns of a block, its texts, or the first day of some rows of hours were read. */
function opened(db: SqliteDatabase, work: () => void, kind: keyof typeof opens): number {
  const pattern = opens[kind]
  let count = 0
  const query = db.query.bind(db)
  db.query = ((sql: string) => {
    if (pattern.test(sql)) count++
    return query(sql)
  }) as typeof db.query
  work()
  return count
}

/** How many rows of counted values, and how many blocks' columns, `work` reads on this connection. */
function reads(db: SqliteDatabase, work: () => void): { rows: number; blocks: number } {
  let rows = 0
  let blocks = 0
  const query = db.query.bind(db)
  db.query = ((sql: string) => {
    const statement = query(sql)
    if (/^SELECT columns FROM event_block/.test(sql)) blocks++
    if (!/^SELECT (hour|site), .* FROM rollup_value/.test(sql)) return statement
    return {
      values(...params: never[]) {
        const statementRows = statement.values(...params)
        rows += statementRows.length
        return statementRows
      },
    }
  }) as typeof db.query
  try {
    work()
  } finally {
    db.query = query
  }
  return { rows, blocks }
}

/** Counts the organization's events in as many steps as it takes: each step ends after 100 ms. */
export function countAll(reader: ReaderAtOnce, orgId: string): number {
  const ceilingSeq = 10 ** 9
  let total = 0
  for (let afterSeq = 0; afterSeq < ceilingSeq;) {
    const { count, lastSeq } = reader.count({ orgId, filter: {}, afterSeq, ceilingSeq })
    total += count
    afterSeq = lastSeq
  }
  return total
}

const sum = (numbers: number[]) => numbers.reduce((total, count) => total + count, 0)

export function engine(options: EventWriterOptions = {}) {
  const dir = tempDir('engine')
  const path = dir.join('test.db')
  let db = create(path)
  let writer = compactEventWriter(db, options)
  const readerDb = openReaderConnection(path)
  const readerOn = (database: SqliteDatabase) =>
    readAtOnce(compactEventReader(database, idsInRuns(database, options.fingerprintBits)))
  const reader = readerOn(readerDb)
  function alone<T>(work: () => T): T {
    const result = inTransaction(db, work)
    writer.committed()
    return result
  }
  return {
    reader,
    group(work: () => void): void {
      inTransaction(db, () => {
        work()
        writer.flush()
      })
      writer.committed()
    },
    /** `receivedMs` after the first arrival. */
    append: (orgId: string, events: EventRecord[], receivedMs = 1) =>
      writer.append({ ...makeBatch(orgId, events), receivedAtMs: firstArrivalMs + receivedMs }),
    undone: (work: () => void) => undone(db, writer, work),
    removeSite: (orgId: string, siteId: string) => alone(() => writer.removeSite(orgId, siteId)),
    removeOrg: (orgId: string) => alone(() => writer.removeOrg(orgId)),
    /** Expires to the end and returns how many events went. */
    expire: (orgId: string, receivedBeforeMs: number) =>
      sum(expireSteps(db, writer, { orgId, receivedBeforeMs: firstArrivalMs + receivedBeforeMs })),
    expireSteps: (orgId: string) => expireSteps(db, writer, { orgId, receivedBeforeMs: Infinity }),
    dropRollupSteps: (orgId: string, beforeMs: number) => dropSteps(db, writer, { orgId, beforeMs }),
    texts: () => inflatedTexts(db),
    tables: (name: string) => rowsIn(db, name),
    bodyPlaces: () => bodyPlaces(db),
    bodies: () => bodiesBetween(db, 0, Number.MAX_SAFE_INTEGER),
    erase: (orgId: string, sessionIds: string[], subjects: string[]) =>
      sum(eraseSteps(db, writer, { orgId, sessionIds, subjects })),
    eraseSteps: (command: EraseCommand, interrupt?: () => void) => eraseSteps(db, writer, command, interrupt),
    /** A reader with empty caches. */
    freshly: <T>(ask: (reader: ReaderAtOnce) => T): T =>
      askReader(path, (database) => ask(readerOn(database))),
    /** How often a reader with empty caches reads columns of a block, or one of the others of `opens`. */
    timesRead: (ask: (reader: ReaderAtOnce) => void, kind: keyof typeof opens = 'columns') =>
      askReader(path, (database) => opened(database, () => ask(readerOn(database)), kind)),
    reads: (work: () => void) => reads(readerDb, work),
    sql: (statement: string) => void db.run(statement),
    /** The path columns of the first segment, which need not be full. */
    shredded: () => shreddedOf(db),
    /** Re-counts an hour of the first organization in slices of this many blocks; `between` runs after each. */
    recountInSlices: (hourStartMs: number, blocksMax: number, interrupt: (slice: number) => void) =>
      recountSlices(readerDb, recounting(hourStartMs, blocksMax), interrupt),
    verifyInSlices: (sizes: SliceSizes, interrupt: () => void) =>
      verifySlices(verifyInSlices(readerDb, idsInRuns(readerDb, options.fingerprintBits), sizes), interrupt),
    repair: (orgId: string, repairs: RollupRepair[]) => alone(() => writer.repair({ orgId, repairs })),
    idle: () => writer.idle(),
    spare: () => writer.spare(),
    /** Runs `look` on a copy of the database after `sql`. */
    damaged: (sql: string, look: (reader: ReaderAtOnce) => void) =>
      readDamaged(db, dir, sql, (copy) => look(readerOn(copy))),
    /** Runs `look` on copies of the database, each with one byte of a page changed. */
    flipped: (pages: PageOfTable[], look: (reader: ReaderAtOnce, page: PageOfTable) => void) =>
      readFlipped(db, dir, pages, (copy, page) => look(readerOn(copy), page)),
    reopen(): void {
      db.close()
      db = connect(path)
      writer = compactEventWriter(db, options)
    },
    close: () => [readerDb.close(), db.close(), dir.remove()],
  }
}

export type Engine = ReturnType<typeof engine>

const purposes = ['training', 'search', null, 'user', 'odd']
const robots = ['allowed', null, 'disallowed']
const verdicts = ['verified', 'contradicted', null, 'odd']
const trusts = ['detected', 'declared', 'verified', 'odd', null, 'detected', 'linked']

/** The n-th possible event. Every value follows from n. */
export function event(n: number, time: number): EventRecord {
  const id = `evt_${n}`
  const sessionId = `ses_${n % 5}`
  const type = n % 3 === 0 ? 'tool.executed' : 'agent.detected'
  const outcome = n % 4 === 0 ? 'blocked' : 'success'
  const siteId = n % 7 === 0 ? 'demo' : 'shop'
  const subject = n % 9 === 0 ? `who ${n}` : null
  const tool = n % 2 === 0 ? `tool ${n % 8}` : null
  const page = `/page/${n % 3}`
  const agent =
    n % 6 === 5 ? {} : { class: `class ${n % 3}`, vendor: `vendor ${n % 4}`, trust: trusts[n % 7] ?? null }
  const name = n % 8 === 3 ? null : `Bot-${n % 10}`
  const purpose = purposes[n % 5] ?? null
  const verdict = verdicts[n % 4] ?? null
  const durationMs = n % 5 === 0 ? null : ((n * 37) % 1_000) / 3
  const json = JSON.stringify({ id, siteId, sessionId, time })
  return makeEvent(id, {
    sessionId,
    type,
    outcome,
    siteId,
    subject,
    tool,
    page,
    durationMs,
    ...agent,
    name,
    purpose,
    verdict,
    robots: robots[n % 3] ?? null,
    occurredAtMs: noon + time,
    json,
  })
}
