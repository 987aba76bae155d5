/** Reads a database file from end to end: SQLite's own checks, what it holds, and every audit chain. */
import type { Inspection, InspectionWanted } from '../../contract/backup.ts'
import { verifyAudit } from '../audit/verify.ts'
import { openLookConnection } from '../file/connection.ts'
import { readFacts } from './facts.ts'

const faultsMax = 20

export function inspectDatabase({ path, anchors }: InspectionWanted): Inspection {
  const db = openLookConnection(path)
  try {
    const integrity = db
      .query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${faultsMax})`)
      .all()
      .map((row) => row.integrity_check)
      .filter((text) => text !== 'ok')
    const strays = db.query<{ table: string; parent: string }, []>('PRAGMA foreign_key_check').all()
    const dangling = strays.slice(0, faultsMax).map(({ table, parent }) => {
      return `a row of ${table} points to a row of ${parent} that is not there`
    })
    const facts = readFacts(db)
    // A file has no heads beside it: what its chains must run through comes with the question.
    return { facts, faults: [...integrity, ...dangling], audit: verifyAudit(db, path, anchors) }
  } finally {
    db.close()
  }
}
