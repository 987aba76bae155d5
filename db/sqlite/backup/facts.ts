/** What a database holds, in numbers that can be compared: schema, events, organizations, ends of the audit chains. */
import type { Database } from 'bun:sqlite'
import type { DatabaseFacts } from '../../contract/backup.ts'
import { auditHeads } from '../audit/append.ts'
import { openLookConnection } from '../file/connection.ts'
import { eachBlockAfter } from '../events/read/walk.ts'
import { member } from '../events/blocks/fields.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { schemaVersion } from '../migrations/migrate.ts'
import { atOnce } from '../threads/slices.ts'

export function folderFacts(folder: string): DatabaseFacts {
  requireDatabase(folder)
  const db = openLookConnection(databasePath(folder))
  try {
    return readFacts(db)
  } finally {
    db.close()
  }
}

/** One moment of the database; tables that its schema does not have yet count as empty. */
export function readFacts(db: Database): DatabaseFacts {
  db.run('BEGIN')
  try {
    const count = (table: string, sql: string) => (hasTable(db, table) ? number(db, sql) : 0)
    return {
      schema: schemaVersion(db),
      events: liveEvents(db),
      orgs: count('org', 'SELECT count(*) AS n FROM org'),
      accounts: count('account', 'SELECT count(*) AS n FROM account'),
      keys: count('api_key', 'SELECT count(*) AS n FROM api_key'),
      auditHeads: hasTable(db, 'audit_head') ? auditHeads(db) : {},
    }
  } finally {
    db.run('COMMIT')
  }
}

/** Blocks count the gaps of erased events too; rollups do not, and behind their watermark a gap has no type. */
function liveEvents(db: Database): number {
  if (!hasTable(db, 'rollup_metric')) return 0
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

export function hasTable(db: Database, name: string): boolean {
  const found = db.query<{ n: number }, [string]>(
    "SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table' AND name = ?",
  )
  return found.get(name)?.n === 1
}

function number(db: Database, sql: string): number {
  return db.query<{ n: number }, []>(sql).get()?.n ?? 0
}
