/** What the options say about backups. */
import { join } from 'node:path'

export function backupDirOf(dataDir: string, given: string | null): string {
  return given ?? join(dataDir, 'backups')
}

export interface BackupConfig {
  dir: string // absolute
  cron: string | null // null: only when asked
  keep: number // of those made on schedule
  passphrase: string | null // encrypts, when given
}
