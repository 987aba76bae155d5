/** Decides which migrations a database needs. Pure, shared by all engines. */
import { StoreError } from '../contract/errors.ts'

export interface Migration {
  version: number // 1, 2, 3 … without gaps
  name: string
  sql: string
}

/** The migrations above `appliedVersion`, in order. Rejects a database of a newer release. */
export function pendingMigrations<M extends Migration>(
  appliedVersion: number,
  known: readonly M[],
): readonly M[] {
  known.forEach((migration, index) => {
    if (migration.version !== index + 1) {
      throw new StoreError('internal', `migration ${migration.name} is out of order`)
    }
  })
  if (appliedVersion > known.length) {
    throw new StoreError(
      'newer_schema',
      `the database has schema ${appliedVersion}, this release knows up to ${known.length}: use a newer release`,
    )
  }
  return known.slice(appliedVersion)
}

/** For data of an older schema that must not be upgraded now. */
export function olderSchema(version: number, newest: number): StoreError {
  return new StoreError('older_schema', `the data has schema ${version}, this release works with ${newest}`)
}
