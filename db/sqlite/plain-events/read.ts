/** The reading half of the plain event engine: keyset pages, the tail, one event, the overview. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../errors.ts'
import type { EventPageQuery, EventPosition, StoredEvent } from '../../store.ts'
import type { EventReader } from '../event-engine.ts'
import { filterCondition } from './filter.ts'

const columns = 'seq, occurred_at_ms AS occurredAtMs, received_at_ms AS receivedAtMs, json'
const newestPosition: EventPosition = { occurredAtMs: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }

export function plainEventReader(db: Database, deadlineMs: number): EventReader {
  let deadline = 0
  // SQLite cannot be interrupted from outside; a function that throws ends the scan that calls it on every row.
  db.function('in_time', () => {
    if (performance.now() > deadline)
      throw new StoreError('deadline', `a read took longer than ${deadlineMs} ms`)
    return 1
  })

  function rows(sql: string, values: (string | number)[]): StoredEvent[] {
    deadline = performance.now() + deadlineMs
    return db.query<StoredEvent, (string | number)[]>(sql).all(...values)
  }

  function lastSeq(orgId: string): number {
    const row = db
      .query<{ last: number | null }, [string]>('SELECT max(seq) AS last FROM event WHERE org_id = ?')
      .get(orgId)
    return row?.last ?? 0
  }

  function page(query: EventPageQuery) {
    const ceilingSeq = query.ceilingSeq ?? lastSeq(query.orgId)
    const { occurredAtMs, seq } = query.before ?? newestPosition
    const filter = filterCondition(query.filter)
    const found = rows(
      `SELECT ${columns} FROM event INDEXED BY event_time
       WHERE org_id = ? AND (occurred_at_ms, seq) < (?, ?) AND seq <= ? AND in_time()${filter.sql}
       ORDER BY occurred_at_ms DESC, seq DESC LIMIT ?`,
      [query.orgId, occurredAtMs, seq, ceilingSeq, ...filter.values, query.limit + 1],
    )
    const events = found.slice(0, query.limit)
    const last = events.at(-1)
    const more = found.length > query.limit && last !== undefined
    return { events, next: more ? { occurredAtMs: last.occurredAtMs, seq: last.seq } : null, ceilingSeq }
  }

  return {
    page,
    lastSeq,
    byId(orgId, id) {
      const sql = `SELECT ${columns} FROM event WHERE org_id = ? AND id = ?`
      return db.query<StoredEvent, [string, string]>(sql).get(orgId, id)
    },
    tail(query) {
      const newest = lastSeq(query.orgId) // read first: what commits after it waits for the next call
      const filter = filterCondition(query.filter)
      const events = rows(
        `SELECT ${columns} FROM event INDEXED BY event_arrival
         WHERE org_id = ? AND seq > ? AND seq <= ? AND in_time()${filter.sql} ORDER BY seq LIMIT ?`,
        [query.orgId, query.afterSeq, newest, ...filter.values, query.limit],
      )
      const reached = events.length === query.limit ? (events.at(-1)?.seq ?? 0) : newest
      return { events, lastSeq: Math.max(query.afterSeq, reached) }
    },
    overview(orgId) {
      const counts = db
        .query<{ value: string; count: number }, [string]>(
          "SELECT value, count FROM event_value WHERE org_id = ? AND member = 'type' ORDER BY value",
        )
        .all(orgId)
      return {
        total: counts.reduce((sum, { count }) => sum + count, 0),
        byType: Object.fromEntries(counts.map(({ value, count }) => [value, count])),
      }
    },
  }
}
