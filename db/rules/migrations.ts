/** Decides which migrations a database needs. Pure, shared by all engines. */
import { StoreError } from '../contract/errors.ts'

export interface Migration {
  version: number // 1, 2, 3 … without gaps
  name: string
  sql: string
}

/** Gives migrations their versions: the numbers with which their names begin, as in `0023_alert_rules`. */
export function withVersions<M extends Omit<Migration, 'version'>>(
  list: readonly M[],
): readonly (M & { version: number })[] {
  return list.map((migration) => ({ ...migration, version: Number(migration.name.slice(0, versionDigits)) }))
}

const versionDigits = 4

/** The migrations above `appliedVersion`, in order. Rejects a database of a newer release. */
export function pendingMigrations<M extends Migration>(
  appliedVersion: number,
  migrations: readonly M[],
): readonly M[] {
  migrations.forEach((migration, index) => {
    if (migration.version !== index + 1) {
      throw new StoreError('internal', `migration ${migration.name} is out of order`)
    }
  })
  if (appliedVersion > migrations.length) {
    throw new StoreError(
      'newer_schema',
      `the database has schema ${appliedVersion}, this release knows up to ${migrations.length}: use a newer release`,
    )
  }
  return migrations.slice(appliedVersion)
}

/** For data of an older schema that must not be upgraded now. */
export function olderSchema(version: number, newest: number): StoreError {
  return new StoreError('older_schema', `the data has schema ${version}, this release works with ${newest}`)
}
