/** Which schema a database has, and whether it is ours at all. */
import { StoreError } from '../../contract/errors.ts'
import type { SqliteDatabase } from './connection.ts'

/** "SGLS": marks the file as ours, so that another program's database is never migrated. */
export const applicationId = 0x53474c53

/** The highest migration of the database, 0 for an empty one. Rejects another program's database. */
export function schemaVersion(db: SqliteDatabase): number {
  const tables = db.query<{ n: number }, []>('SELECT count(*) AS n FROM sqlite_schema').get()?.n ?? 0
  if (tables === 0) return 0
  const mark = db.query<{ application_id: number }, []>('PRAGMA application_id').get()?.application_id
  if (mark !== applicationId) {
    throw new StoreError('corrupt', 'the database belongs to another program')
  }
  return db.query<{ v: number | null }, []>('SELECT max(version) AS v FROM schema_migration').get()?.v ?? 0
}
