/** What the store says of itself: schema, engine, sizes of its files. */
import { statSync } from 'node:fs'
import type { StoreHealth } from '../../contract/store.ts'
import { sqliteVersion } from './connection.ts'
import type { ReadContext } from '../threads/contexts.ts'
import { databasePath } from './files.ts'
import { schemaVersion } from '../migrations/migrate.ts'

export function health({ db, folder }: ReadContext): StoreHealth {
  const path = databasePath(folder)
  const walBytes = fileBytes(`${path}-wal`)
  return {
    schema: schemaVersion(db),
    engine: `sqlite ${sqliteVersion(db)}`,
    bytes: fileBytes(path) + walBytes,
    walBytes,
  }
}

function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Sealed secrets, in whatever table: they need the data folder's secret.key. */
export function sealedSecrets({ db }: ReadContext): number {
  const columns = db
    .query<{ table: string; column: string }, []>(
      `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND c.name GLOB 'sealed_*'`,
    )
    .all()
  const counts = columns.map(({ table, column }) => {
    const sql = `SELECT count(*) AS n FROM "${table}" WHERE "${column}" IS NOT NULL`
    return db.query<{ n: number }, []>(sql).get()?.n ?? 0
  })
  return counts.reduce((sum, n) => sum + n, 0)
}
