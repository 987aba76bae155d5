/** Lists the migrations that a database has and lacks, also for another schema than this release's. */
import type { SchemaState } from '../contract/operations.ts'
import type { Migration } from '../rules/migrations.ts'
import type { Database } from './database.ts'

/** `version` is the schema of the database; `migrations` are those of this release. */
export function schemaState(
  db: Database,
  version: number,
  migrations: readonly Migration[],
): Omit<SchemaState, 'isNewer'> {
  const applied = version === 0 ? [] : appliedMigrations(db)
  const pending = migrations.slice(version).map((migration) => {
    return { version: migration.version, name: migration.name }
  })
  return { version, newest: migrations.length, applied, pending }
}

function appliedMigrations(db: Database): SchemaState['applied'] {
  return db
    .query<SchemaState['applied'][number], []>(
      'SELECT version, name, applied_at_ms AS "appliedAtMs" FROM schema_migration ORDER BY version',
    )
    .all()
}
