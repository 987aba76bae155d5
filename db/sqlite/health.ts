/** What the store says of itself: schema, engine, sizes of its files. */
import { statSync } from 'node:fs'
import type { StoreHealth } from '../store.ts'
import { sqliteVersion } from './connection.ts'
import type { ReadContext } from './contexts.ts'
import { databasePath } from './files.ts'
import { schemaVersion } from './migrate.ts'

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
