/** Our engine for the bench beside others, and what each engine must be able to do there. */
import { existsSync, rmSync } from 'node:fs'
import type { EventRecord } from '../../db/contract/store.ts'
import { inTransaction } from '../../db/sql/database.ts'
import { idsInRuns } from '../../db/sql/events/ids-in-runs.ts'
import { compactEventReader } from '../../db/sql/events/reader.ts'
import { compactEventWriter } from '../../db/sql/events/writer.ts'
import { beginSlice } from '../../db/sql/slices.ts'
import {
  openReaderConnection,
  openWriterConnection,
  type SqliteDatabase,
} from '../../db/sqlite/file/connection.ts'
import { migrate, migrations } from '../../db/sqlite/migrations/migrations.ts'
import { readAtOnce, type ReaderAtOnce } from '../support/read-at-once.ts'
import { startMs } from './engine-events.ts'

export const hourMs = 3_600_000
export const pageEvents = 200

/** What is asked of every engine. Each answers with a number that must be the same for all. */
export interface Question {
  newest: Record<string, never>
  rare: { vendor: string }
  byId: { id: string }
  byVendor: { sinceMs: number } // by vendor and hour
  byMember: { member: string }
  search: { text: string; sinceMs: number }
}
export type Answers = { [Q in keyof Question]: (question: Question[Q]) => number | Promise<number> }

export interface Engine extends Answers {
  dedupes: boolean
  /** Commits a batch and returns how many of its events were new. */
  append(events: EventRecord[]): number | Promise<number>
  /** How many events a batch of the fast setting has; switches between it and durable commits. */
  quick(isQuick: boolean): number | Promise<number>
  /** Does the work that the fill has put off. */
  settle(): void | Promise<void>
  /** Does what a server does in its spare time, for so long. Returns the share of sealed events that it repacked. */
  repack?(ms: number): number
  /** With all indexes, without the write-ahead log. */
  bytes(): number | Promise<number>
  /** Closes everything and opens it again. */
  restart(): void | Promise<void>
  /** Processor time of processes that it started. */
  childSeconds(): number
  close(): void | Promise<void>
}

export const quickEvents = 5_000

/** `path`: of a new database, or of one of `flat.bench.ts`, of which nothing but ids is asked by resends. */
export function ourEngine(path: string): Engine {
  const isNew = !existsSync(path)
  let db: SqliteDatabase
  let readerDb: SqliteDatabase
  let writer: ReturnType<typeof compactEventWriter>
  let reader: ReturnType<typeof readAtOnce>
  let orgId = 'org_bench'

  function open(): void {
    db = openWriterConnection(path, () => {})
    if (isNew) migrate(db, migrations, startMs)
    else orgId = db.query<{ org_id: string }, []>('SELECT org_id FROM event_org').get()!.org_id
    writer = compactEventWriter(db)
    readerDb = openReaderConnection(path)
    reader = readAtOnce(compactEventReader(readerDb, idsInRuns(readerDb)))
    beginSlice(Infinity) // nobody waits for a turn
  }

  function close(): void {
    readerDb.close()
    writer.close()
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
  }

  if (isNew) open() // else with `restart`, which is measured
  return {
    dedupes: true,
    append(events) {
      const { accepted } = inTransaction(db, () => {
        const receivedAtMs = events.reduce(
          (latest, eventRecord) => Math.max(latest, eventRecord.occurredAtMs),
          0,
        )
        const appendResult = writer.append({
          orgId,
          keyId: 'key_bench',
          door: 'events',
          receivedAtMs,
          events,
        })
        writer.flush()
        return appendResult
      })
      writer.committed()
      return accepted
    },
    quick(isQuick) {
      db.run(`PRAGMA synchronous = ${isQuick ? 'OFF' : 'FULL'}`)
      return quickEvents
    },
    settle() {
      writer.idle()
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    },
    repack(ms) {
      const endMs = performance.now() + ms
      while (writer.spare() && performance.now() < endMs);
      db.run('PRAGMA wal_checkpoint(TRUNCATE)')
      const sql = 'SELECT repacked, segments FROM event_org'
      const { repacked, segments } = db.query<{ repacked: number; segments: number }, []>(sql).get()!
      return segments === 0 ? 1 : repacked / segments
    },
    bytes() {
      const pragma = (name: string) =>
        Object.values(db.query<{ [name: string]: number }, []>(`PRAGMA ${name}`).get()!)[0]!
      return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
    },
    restart() {
      if (db !== undefined) close()
      open()
    },
    childSeconds: () => 0,
    ...ourAnswers(() => ({ reader, orgId })),
    close,
  }
}

/** `now`: what the last restart has opened. */
function ourAnswers(now: () => { reader: ReaderAtOnce; orgId: string }): Answers {
  const page = (filter: { vendors?: string[]; text?: string; sinceMs?: number }): number => {
    const { reader, orgId } = now()
    let foundCount = 0
    let cursor: { occurredAtMs: number; seq: number } | null = null
    do {
      const { events, next } = reader.page({
        orgId,
        filter,
        limit: pageEvents,
        before: cursor,
        ceilingSeq: null,
      })
      foundCount += events.length
      cursor = next
    } while (cursor !== null && foundCount < pageEvents) // a search comes back after some time, perhaps without a match
    return foundCount
  }

  return {
    newest: () => page({}),
    rare: ({ vendor }) => page({ vendors: [vendor] }),
    byId: ({ id }) => (now().reader.byId({ orgId: now().orgId, id }) === null ? 0 : 1),
    byVendor({ sinceMs }) {
      const { reader, orgId } = now()
      const { rows } = reader.breakdown({ orgId, sinceMs, untilMs: null, by: 'vendor', stepMs: hourMs })
      return rows.reduce((sum, { count }) => sum + count, 0)
    },
    byMember({ member }) {
      const { reader, orgId } = now()
      const edges = [0, 1_000_000 * hourMs]
      const exploration = reader.explore({
        orgId,
        filter: {},
        measure: 'events',
        by: { metadata: member },
        edges,
        rowsMax: 1_000,
        budgetMs: Infinity,
      })
      return exploration.rows.reduce((sum, { events }) => sum + events, 0)
    },
    search: ({ text, sinceMs }) => page({ text, sinceMs }),
  }
}
