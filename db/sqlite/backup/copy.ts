/** Copies a live database into a new file of its own: one moment of it, whole, without holding up the writer. */
import type { CopyReport } from '../../contract/backup.ts'
import { openReaderConnection } from '../file/connection.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { readFacts } from './facts.ts'

export function copyDatabase({ folder, path }: { folder: string; path: string }): CopyReport {
  requireDatabase(folder)
  const db = openReaderConnection(databasePath(folder))
  try {
    const before = readFacts(db)
    // Reads one snapshot; the writer's log grows until it is done, and is truncated afterwards.
    db.query('VACUUM INTO ?').run(path)
    return { before, after: readFacts(db) }
  } finally {
    db.close()
  }
}
