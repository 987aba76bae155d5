/** Summarizes a whole database, also of an older schema: its contents in numbers, and what `doctor` reads of them. */
import { auditHeads } from './audit/append.ts'
import { evidenceState } from './audit/evidence.ts'
import { columnsOf, inSnapshot, type Database } from './database.ts'
import { eachBlockAfter } from './events/blocks/block-table.ts'
import { member } from './events/blocks/fields.ts'
import { storedPack } from './settings/settings.ts'
import { atOnce } from './slices.ts'
import type { Checkup, DatabaseFacts } from '../contract/operations.ts'
import type { StoredPack } from '../contract/operations.ts'
import { dayMs, hourMs } from '../contract/units.ts'

/** One snapshot of the database. Tables that its schema lacks count as empty. */
export function readFacts(db: Database, schema: number): DatabaseFacts {
  return inSnapshot(db, () => {
    const tables = tablesOf(db)
    const count = (table: string) =>
      tables.has(table) ? number(db, `SELECT count(*) AS n FROM ${table}`) : 0
    return {
      schema,
      events: tables.has('rollup_metric') ? liveEvents(db) : 0,
      orgs: count('org'),
      accounts: count('account'),
      keys: count('api_key'),
      auditHeads: tables.has('audit_head') ? auditHeads(db) : {},
    }
  })
}

/** Blocks also count the gaps of erased events. Rollups do not, and after their watermark a gap has no type. */
function liveEvents(db: Database): number {
  let events = number(db, 'SELECT coalesce(sum(live), 0) AS n FROM rollup_metric')
  const orgs = db.query<{ num: number; folded: number }, []>(
    'SELECT num, folded_seq AS folded FROM event_org',
  )
  for (const { num, folded } of orgs.all()) {
    const blocks = eachBlockAfter(db, num, folded, (columns, first, end) => {
      for (const type of columns.column(member.type).subarray(first, end)) if (type !== 0) events++
    })
    atOnce(blocks)
  }
  return events
}

function tablesOf(db: Database): Set<string> {
  return new Set(columnsOf(db).map(({ table }) => table))
}

function number(db: Database, sql: string): number {
  return db.query<{ n: number }, []>(sql).get()?.n ?? 0
}

/** What `doctor` reads within two seconds: growth, keys and times. */
export function readUse(
  db: Database,
  now: number,
): Pick<Checkup, 'eventsLastWeek' | 'newestAuditAtMs' | 'auditEvidence' | 'evidence' | 'keys'> {
  const tables = tablesOf(db)
  return {
    eventsLastWeek: tables.has('rollup_metric') ? eventsSince(db, now - 7 * dayMs) : 0,
    newestAuditAtMs: tables.has('audit_entry') ? newestAudit(db) : null,
    auditEvidence: evidenceState({ db }),
    evidence: tables.has('evidence_pack') ? storedPack(db) : null,
    keys: tables.has('api_key') ? keyCounts(db, now) : noKeys,
  }
}

function eventsSince(db: Database, sinceMs: number): number {
  const row = db
    .query<{ n: number | null }, [number]>('SELECT sum(live) AS n FROM rollup_metric WHERE hour >= ?')
    .get(Math.floor(sinceMs / hourMs))
  return row?.n ?? 0
}

function newestAudit(db: Database): number | null {
  const row = db
    .query<{ at: string }, []>('SELECT occurredAt AS at FROM audit_entry ORDER BY rowid DESC LIMIT 1')
    .get()
  return row === null ? null : Date.parse(row.at)
}

const noKeys: Checkup['keys'] = { live: 0, exposed: 0, endingSoon: 0, idle: 0 }

function keyCounts(db: Database, now: number): Checkup['keys'] {
  const row = db
    .query<Checkup['keys'], [number, number, number]>(
      `SELECT count(*) AS live,
              count(exposed_at_ms) AS exposed,
              count(CASE WHEN expires_at_ms < ?2 THEN 1 END) AS endingSoon,
              count(CASE WHEN coalesce(last_used_at_ms, created_at_ms) < ?3 THEN 1 END) AS idle
         FROM api_key
        WHERE kind <> 'publishable' AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?1)`,
    )
    .get(now, now + 7 * dayMs, now - 90 * dayMs)
  return row ?? noKeys
}
