/** Says which migrations a database has and which it lacks, also for a newer or older schema than this release's. */
import type { SchemaState } from '../../contract/backup.ts'
import { openLookConnection } from '../file/connection.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { schemaVersion } from '../migrations/migrate.ts'
import { migrations } from '../migrations/migrations.ts'

export function readSchema(folder: string): SchemaState {
  requireDatabase(folder)
  const db = openLookConnection(databasePath(folder))
  try {
    const version = schemaVersion(db)
    const applied =
      version === 0
        ? []
        : db
            .query<SchemaState['applied'][number], []>(
              'SELECT version, name, applied_at_ms AS appliedAtMs FROM schema_migration ORDER BY version',
            )
            .all()
    const pending = migrations.slice(version).map((migration) => {
      return { version: migration.version, name: migration.name }
    })
    return { version, newest: migrations.length, applied, pending }
  } finally {
    db.close()
  }
}
