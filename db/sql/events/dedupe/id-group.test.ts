/** Merged groups of id runs: every id stays known at each step, and costs as little as the file says. */
import { afterEach, expect, test } from 'bun:test'
import { inTransaction } from '../../database.ts'
import { openDatabase, type SqliteDatabase } from '../../../sqlite/file/connection.ts'
import { migrate, migrations } from '../../../sqlite/migrations/migrations.ts'
import { dedupe, type Dedupe } from './dedupe.ts'
import { firstOfGroup, groupRows, idGroups } from './id-group.ts'
import { chunkOf, chunksPerRun, packEntry, runsPerGroup } from './id-run.ts'
import { isFull } from '../../../../tests/support/runs.ts'

const org = 3
const opened: SqliteDatabase[] = []

afterEach(() => {
  for (const db of opened.splice(0)) db.close()
})

function database(): SqliteDatabase {
  const db = openDatabase(':memory:', { strict: true })
  opened.push(db)
  migrate(db, migrations, 0)
  return db
}

/** Spread like those of ids. */
const printOf = (n: number) => Number((Bun.hash.wyhash(`id ${n}`) as bigint) >> 11n)

/** Counts the rows that are read from a table. */
function counting(db: SqliteDatabase, table: string): { db: SqliteDatabase; rows(): number } {
  let rows = 0
  const query = (sql: string) => {
    const statement = db.query(sql)
    if (!sql.includes(`FROM ${table}`)) return statement
    return new Proxy(statement, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown
        if (typeof member !== 'function') return member
        return (...values: unknown[]) => {
          rows++
          return (member as (...parameters: unknown[]) => unknown).apply(target, values)
        }
      },
    })
  }
  const counted = new Proxy(db, {
    get: (target, name) => (name === 'query' ? query : (Reflect.get(target, name) as unknown)),
  })
  return { db: counted, rows: () => rows }
}

const idsPerRun = 40

/** Adds arrivals `from` to before `until`, ten per transaction. */
function add(db: SqliteDatabase, idDedupe: Dedupe, from: number, until: number): void {
  for (let seq = from; seq < until; seq += 10)
    inTransaction(db, () => {
      for (let next = seq; next < Math.min(until, seq + 10); next++) idDedupe.add(org, next, printOf(next))
      idDedupe.step(10)
    })
}

function loaded(db: SqliteDatabase, until: number): Dedupe {
  const idDedupe = dedupe(db, idsPerRun, 0.5)
  reload(idDedupe, until)
  return idDedupe
}

function reload(idDedupe: Dedupe, until: number): void {
  idDedupe.load((flushed, put) => {
    for (let seq = (flushed.get(org) ?? 0) + 1; seq < until; seq++) put(org, seq, printOf(seq))
  })
}

function expectKnown(idDedupe: Dedupe, until: number, from = 1): void {
  for (let seq = from; seq < until; seq += 7)
    expect([seq, idDedupe.isKnown(org, printOf(seq), (position) => position === seq)]).toEqual([seq, true])
  for (let seq = until; seq < until + 200; seq++)
    expect(idDedupe.isKnown(org, printOf(seq), () => true)).toBe(false)
}

test('every id is known while runs are merged, after a rollback and after a start at any step', () => {
  const db = database()
  const idDedupe = loaded(db, 1)
  const states = new Set<string>()
  let merging = 0
  let until = 1
  const turn = 1 + 100 * Math.floor(3 * Math.random())
  for (; until < 2_800; until += 100) {
    const groupsBefore = JSON.stringify(groupRows(db))
    // What a rollback undoes is done again.
    expect(() =>
      inTransaction(db, () => {
        for (let seq = until; seq < until + 100; seq++) idDedupe.add(org, seq, printOf(seq))
        idDedupe.step(100)
        throw new Error('undone')
      }),
    ).toThrow('undone')
    reload(idDedupe, until)
    expect(JSON.stringify(groupRows(db))).toBe(groupsBefore)
    add(db, idDedupe, until, until + 100)
    for (const { chunks, parts } of groupRows(db)) {
      if (chunks < chunksPerRun || parts < runsPerGroup) merging++
      states.add(chunks < chunksPerRun ? 'chunks' : parts < runsPerGroup ? 'parts' : 'merged')
    }
    expectKnown(idDedupe, until + 100)
    // A start reads the filters of all runs, so an everyday run tries a third of the steps, chosen at random.
    const starts = isFull || until % 300 === turn
    if (starts && (until % 400 === 1 || JSON.stringify(groupRows(db)) !== groupsBefore))
      expectKnown(loaded(db, until + 100), until + 100)
  }
  expect([...states].sort()).toEqual(['chunks', 'merged', 'parts'])
  expect(merging).toBeGreaterThan(3)
  expect(groupRows(db).length).toBe(2)
}, 60_000)

test('runs of an earlier release are merged while nobody sends, a few chunks in a transaction', () => {
  const db = database()
  const dedupeBefore = loaded(db, 1)
  const until = 1 + 40 * idsPerRun
  for (let seq = 1; seq < until; seq++) {
    dedupeBefore.add(org, seq, printOf(seq))
    if (seq % idsPerRun === 0) inTransaction(db, dedupeBefore.settle)
  }
  expect(groupRows(db)).toEqual([])
  const idDedupe = loaded(db, until)
  let steps = 0
  let maxRuns = 0
  const chunks = () => groupRows(db).reduce((sum, group) => sum + group.chunks + group.parts, 0)
  const transact = (write: () => void) => {
    const merged = chunks()
    inTransaction(db, write)
    maxRuns = Math.max(maxRuns, chunks() - merged)
    steps++
  }
  while (idDedupe.spare(transact));
  expect(groupRows(db)).toEqual([{ firstRun: 0, chunks: chunksPerRun, parts: runsPerGroup }])
  expect(maxRuns).toBeLessThanOrEqual(6)
  expect(idDedupe.spare(transact)).toBe(false)
  expect(steps).toBe(Math.ceil(chunksPerRun / 6) + runsPerGroup)
  expectKnown(idDedupe, until)
  expectKnown(loaded(db, until), until)
})

/** 32 runs whose ids are all in the first chunk, as many as it has of full runs. */
function fullChunk(): { db: SqliteDatabase; prints: number[] } {
  const db = database()
  const prints = Array.from({ length: runsPerGroup * 256 }, (_, n) => printOf(n) % 2 ** 43)
  for (let run = 0; run < runsPerGroup; run++) {
    const words = new Uint32Array(512)
    for (let n = 0; n < 256; n++) packEntry(words, n, prints[run * 256 + n]!, n)
    db.query('INSERT INTO event_id_chunk VALUES (?, ?)').run(run * chunksPerRun, new Uint8Array(words.buffer))
  }
  return { db, prints }
}

test('a known id reads one row of a group, and one in three hundred new ids at most', () => {
  const { db, prints } = fullChunk()
  const { db: counted, rows } = counting(db, 'event_id_chunk')
  const groups = idGroups(counted)
  while (groups.loadPart());
  groups.merge(0, 1)
  const merging = rows()
  prints.forEach((print, n) => {
    const isIt = (run: number, offset: number) => run === n >> 8 && offset === n % 256
    expect(groups.some(print, isIt)).toBe(true)
  })
  expect(rows() - merging).toBe(prints.length)
  const otherCount = 30_000
  for (let n = 0; n < otherCount; n++) {
    const print = printOf(-1 - n) % 2 ** 43
    expect(chunkOf(print)).toBe(0)
    groups.some(print, () => true)
  }
  expect(rows() - merging - prints.length).toBeLessThan(otherCount / 300)
})

test('a start reads no filter and no chunk, and then loads each part once', () => {
  const { db, prints } = fullChunk()
  const groups = idGroups(db)
  while (!groups.merge(0, chunksPerRun));
  while (groups.writePart());
  expect(groupRows(db)).toEqual([{ firstRun: 0, chunks: chunksPerRun, parts: runsPerGroup }])
  const chunks = counting(db, 'event_id_chunk')
  const filters = counting(chunks.db, 'event_id_filter')
  const started = idGroups(filters.db)
  started.load(new Set([5]))
  expect([chunks.rows(), filters.rows()]).toEqual([0, 0])
  // Until its part is loaded, an id is looked up in its row.
  const areKnown = () => prints.every((print, n) => started.some(print, (run) => run === n >> 8))
  expect(areKnown()).toBe(true)
  expect([chunks.rows(), filters.rows()]).toEqual([prints.length, 0])
  expect(started.loadPart()).toBe(true)
  expect([chunks.rows(), filters.rows()]).toEqual([prints.length, 1])
  expect(areKnown()).toBe(true)
  let parts = 1
  while (started.loadPart()) parts++
  expect([parts, filters.rows()]).toEqual([runsPerGroup, runsPerGroup])
  // Loaded, it keeps other ids from reading rows.
  const rowsBefore = chunks.rows()
  for (let n = 0; n < 3_000; n++) started.some(printOf(-1 - n), () => true)
  expect(chunks.rows() - rowsBefore).toBeLessThan(30)
})

/** Groups of different ids, every one of which is in the first chunk. */
function someGroups(db: SqliteDatabase, count: number): number[][] {
  return Array.from({ length: count }, (_, group) => {
    const prints = Array.from({ length: 600 }, (_, n) => printOf(group * 1_000 + n) % 2 ** 43)
    const words = new Uint32Array(prints.length * 2)
    prints.forEach((print, n) => packEntry(words, n, print, n))
    const first = group * runsPerGroup
    db.query('INSERT INTO event_id_chunk VALUES (?, ?)').run(
      first * chunksPerRun,
      new Uint8Array(words.buffer),
    )
    return prints
  })
}

test('filters of many groups are those of each, in any order of merging, loading, dropping', () => {
  const db = database()
  const count = 5
  const prints = someGroups(db, count)
  const groups = idGroups(db)
  const finds = (groupFilter: typeof groups, group: number) =>
    prints[group]!.map((print, n) =>
      groupFilter.some(
        print,
        (run, position) => firstOfGroup(run) === group * runsPerGroup && position === n,
      ),
    )
  const allValues = (is: boolean) => Array.from({ length: 600 }, () => is)
  // The first is merged before its parts are loaded, and the others in a memory that grows with each.
  groups.merge(0, 1)
  while (groups.loadPart());
  for (let group = 1; group < count; group++) groups.merge(group * runsPerGroup, 1)
  for (let group = 0; group < count; group++) expect(finds(groups, group)).toEqual(allValues(true))
  // Dropped groups are never found, also before their memory is freed, and others stay known.
  groups.drop(runsPerGroup)
  groups.drop(3 * runsPerGroup)
  expect(finds(groups, 3)).toEqual(allValues(false))
  expect(groups.loadPart()).toBe(true)
  expect(groups.loadPart()).toBe(false)
  for (const group of [0, 2, 4]) expect(finds(groups, group)).toEqual(allValues(true))
  expect(finds(groups, 1)).toEqual(allValues(false))
  // What is written of one group is what another start makes of its rows.
  while (!groups.merge(2 * runsPerGroup, chunksPerRun));
  while (groups.writePart());
  const started = idGroups(db)
  started.load(new Set([0, 2 * runsPerGroup, 4 * runsPerGroup]))
  while (started.loadPart());
  for (const group of [0, 2, 4]) expect(finds(started, group)).toEqual(allValues(true))
  let passed = 0
  for (let n = 0; n < 3_000; n++) if (started.mayHold(printOf(-1 - n) % 2 ** 43)) passed++
  expect(passed).toBeLessThan(30)
})

test('a start leaves out groups that no organization needs, but not their numbers', () => {
  const { db } = fullChunk()
  idGroups(db).merge(0, 1)
  const started = idGroups(db)
  started.load(new Set())
  expect(started.isMerged(0, 0)).toBe(false)
  expect(started.lastRun()).toBe(runsPerGroup - 1)
  expect(firstOfGroup(runsPerGroup + 7)).toBe(runsPerGroup)
})
