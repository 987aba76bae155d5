/** The verbs that a reader thread runs on database files without an open store. */
import { placeDatabase, requireFreeFolder, settlePlacement } from './place.ts'
import { auditRows } from '../../sql/audit/list.ts'
import { verifyAudit } from '../../sql/audit/verify.ts'
import { applianceOrgId, type AuditHead } from '../../contract/audit.ts'
import { openUnlockedConnection, openReaderConnection, sqliteVersion } from '../file/connection.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { requireSoundLog } from '../file/log-damage.ts'
import { migrations } from '../migrations/migrations.ts'
import { schemaVersion } from '../file/schema-version.ts'
import { readFacts, readUse } from '../../sql/facts.ts'
import { schemaState } from '../../sql/schema-state.ts'
import { statSync } from 'node:fs'
import { readState } from '../../sql/copy/state.ts'
import type { CopyState } from '../../contract/copy.ts'
import type {
  Checkup,
  CopyReport,
  DatabaseFacts,
  Inspection,
  InspectionQuery,
  SchemaState,
} from '../../contract/operations.ts'
import type { SqliteDatabase } from '../file/connection.ts'

export const fileVerbs = {
  'file.checkup': checkup,
  'file.continues': continuesFrom,
  'file.copy': copyDatabase,
  'file.copyState': copyState,
  'file.facts': folderFacts,
  'file.inspect': inspectDatabase,
  'file.schema': readSchema,
  'file.place': placeDatabase,
  'file.requireFree': requireFreeFolder,
  'file.settle': settlePlacement,
} satisfies { [verb: string]: (command: never) => unknown }

export type FileVerbs = typeof fileVerbs

/** Copies databases and verifies whole files: SQLite's checks, counts and every audit chain. */
const faultsMax = 20

function inspectDatabase({ path, anchors }: InspectionQuery): Inspection {
  const db = openUnlockedConnection(path)
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
    const facts = readFacts(db, schemaVersion(db))
    // A single file has no `audit-heads` beside it, so the caller passes the heads.
    return { facts, faults: [...integrity, ...dangling], audit: verifyAudit(db, path, anchors) }
  } finally {
    db.close()
  }
}

/** Copies one snapshot of a live database into a new file without blocking the writer. */
function copyDatabase({ folder, path }: { folder: string; path: string }): CopyReport {
  requireDatabase(folder)
  requireSoundLog(databasePath(folder))
  const db = openReaderConnection(databasePath(folder))
  try {
    const factsBefore = readFacts(db, schemaVersion(db))
    // Reads one snapshot. The writer's log grows meanwhile and is truncated afterwards.
    db.query('VACUUM INTO ?').run(path)
    return { before: factsBefore, after: readFacts(db, schemaVersion(db)) }
  } finally {
    db.close()
  }
}

function copyState(folder: string): CopyState | null {
  requireDatabase(folder)
  const db = openUnlockedConnection(databasePath(folder))
  try {
    return readState(db)
  } finally {
    db.close()
  }
}

function readSchema(folder: string): SchemaState {
  requireDatabase(folder)
  const db = openUnlockedConnection(databasePath(folder))
  try {
    const state = schemaState(db, schemaVersion(db), migrations)
    return { ...state, isNewer: state.version > state.newest }
  } finally {
    db.close()
  }
}

function continuesFrom({ folder, head }: { folder: string; head: AuditHead }): boolean {
  requireDatabase(folder)
  const db = openUnlockedConnection(databasePath(folder))
  try {
    const [entry] = auditRows(db, { orgId: applianceOrgId, afterSeq: head.count - 1, limit: 1 })
    if (entry?.hash !== head.hash || Number(entry.position) !== head.count) return false
    const restores = db
      .query<{ restores: number }, [string, string]>(
        `SELECT count(*) AS restores FROM audit_entry
         WHERE orgId = ? AND position > ? AND action = 'appliance.restored'`,
      )
      .get(applianceOrgId, entry.position)
    return restores?.restores === 0
  } finally {
    db.close()
  }
}

/**
 * The contents of a database in numbers that can be compared: schema, events, organizations, heads of the audit chains.
 */
function folderFacts(folder: string): DatabaseFacts {
  requireDatabase(folder)
  const db = openUnlockedConnection(databasePath(folder))
  try {
    return readFacts(db, schemaVersion(db))
  } finally {
    db.close()
  }
}

/** Examines a database for `doctor` within two seconds. */
const quickCheckBytesMax = 256 * 1024 * 1024 // about 0.3 s
const problemsMax = 5

function checkup({ folder, now }: { folder: string; now: number }): Checkup {
  requireDatabase(folder)
  const path = databasePath(folder)
  const bytes = statSync(path).size
  const db = openUnlockedConnection(path)
  try {
    return {
      facts: readFacts(db, schemaVersion(db)),
      engine: `SQLite ${sqliteVersion(db)}`,
      bytes,
      logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      problems: bytes > quickCheckBytesMax ? null : quickCheck(db),
      findings: [],
      nodes: [],
      storeMs: now,
      ...readUse(db, now),
    }
  } finally {
    db.close()
  }
}

function quickCheck(db: SqliteDatabase): string[] {
  return db
    .query<{ quick_check: string }, []>(`PRAGMA quick_check(${problemsMax})`)
    .all()
    .map((row) => row.quick_check)
    .filter((text) => text !== 'ok')
}
