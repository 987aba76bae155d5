/** The backup settings. */
import { join } from 'node:path'

export function backupDirOf(dataDir: string, given: string | null): string {
  return given ?? join(dataDir, 'backups')
}

export interface BackupConfig {
  dir: string // absolute
  cron: string | null // null: only on request
  keep: number // scheduled backups
  passphrase: string | null // encrypts when set
}
