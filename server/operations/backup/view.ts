/** Backups in responses: names and facts, never paths or the passphrase. */
import { Cron } from 'croner'
import type { BackupView, LastRun } from './backup-folder.ts'
import type { BackupConfig } from './config.ts'

export interface Checked {
  at: string
  ok: boolean
  problems: string[]
}

export interface BackupJson {
  name: string
  bytes: number
  createdAt: string | null // null, like the fields below, when the file is corrupt
  reason: string | null
  version: string | null
  schema: number | null
  events: number | null
  encrypted: boolean | null
  problem: string | null
  sha256: string | null // at creation
  provenAt: string | null
  checked: Checked | null // since the server started
}

export interface BackupsJson {
  backups: BackupJson[]
  schedule: { cron: string | null; keep: number; encrypted: boolean; nextAt: string | null }
  running: { startedAt: string; reason: string } | null
  checking: string | null
  lastRun: LastRun | null
}

export function viewJson(
  { name, bytes, manifest, problem, proof }: BackupView,
  checked: Checked | null,
): BackupJson {
  return {
    name,
    bytes,
    createdAt: manifest?.createdAt ?? null,
    reason: manifest?.reason ?? null,
    version: manifest?.version ?? null,
    schema: manifest?.schema ?? null,
    events: manifest?.events ?? null,
    encrypted: manifest === null ? null : manifest.encryption !== null,
    problem,
    sha256: proof?.sha256 ?? null,
    provenAt: proof?.provenAt ?? null,
    checked,
  }
}

export function scheduleView({ cron, keep, passphrase }: BackupConfig): BackupsJson['schedule'] {
  const next = cron === null ? null : new Cron(cron, { paused: true }).nextRun()
  return { cron, keep, encrypted: passphrase !== null, nextAt: next?.toISOString() ?? null }
}
