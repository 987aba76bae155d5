/** The calls of Settings about operating the server: backups, retention, erasure, doctor, clock, ingest health. */
import { exchange, get, json, post } from './api.ts'
import type { SourcesView } from '../../server/access/source-routes.ts'
import type { BackupJson, BackupsJson } from '../../server/operations/backup/backups.ts'
import type { EvidenceView as Evidence } from '../../server/evidence/view.ts'
import type { Diagnosis } from '../../server/operations/doctor/check.ts'
import type { ClockView } from '../../server/operations/health/clock.ts'
import type { NodesView } from '../../server/operations/health/nodes.ts'
import type { ErasuresJson } from '../../server/operations/retention/erasures.ts'
import type { IngestHealthView, OtlpHealthView } from '../../server/ingest/health-routes.ts'

export type {
  BackupsJson as Backups,
  BackupJson as Backup,
  ClockView,
  Diagnosis,
  Evidence,
  NodesView,
  SourcesView,
  ErasuresJson as Erasures,
}

/** The retention limits of an organization; null: server default or no limit. */
export interface Retention {
  days: number | null
  bytes: number | null
  auditDays: number | null // entries of the audit log
  appliance: { days: number | null; bytes: number | null; auditDays: number | null }
  eventBytes: number
}

export type Erasure = { session: string } | { subject: string }

const backupPath = (name: string, ...parts: string[]): string =>
  ['/api/backups', encodeURIComponent(name), ...parts].join('/')

export const operateApi = {
  /** A signed report of the range, as a file. */
  report: async (params: URLSearchParams) => (await post(`/api/reports?${params}`, {})).blob(),

  backups: (signal?: AbortSignal) => get<BackupsJson>('/api/backups', signal),
  startBackup: async () => json<BackupsJson>(await post('/api/backups', {})),
  proveBackup: async (name: string) => json<BackupsJson>(await post(backupPath(name, 'verify'), {})),
  deleteBackup: async (name: string) =>
    json<BackupsJson>(await exchange(backupPath(name), { method: 'DELETE' })),
  backupHref: (name: string): string => backupPath(name, 'file'),
  retention: (signal: AbortSignal) => get<Retention>('/api/retention', signal),
  setRetention: async (limits: Pick<Retention, 'days' | 'bytes' | 'auditDays'>) => {
    // Omitted limits use the server default.
    const { days, bytes, auditDays } = limits
    const body = {
      ...(days !== null && { days }),
      ...(bytes !== null && { bytes }),
      ...(auditDays !== null && { auditDays }),
    }
    return json<Retention>(await post('/api/retention', body))
  },
  erasures: (signal?: AbortSignal) => get<ErasuresJson>('/api/erase', signal),
  erase: async (erasure: Erasure) => json<ErasuresJson>(await post('/api/erase', erasure)),
  /** Null when counting would take too long. */
  countErased: async (erasure: Erasure) =>
    (await json<{ events: number | null }>(await post('/api/erase/count', erasure))).events,
  sources: (signal?: AbortSignal) => get<SourcesView>('/api/sources', signal),
  nodes: (signal?: AbortSignal) => get<NodesView>('/api/nodes', signal),
  clock: (signal: AbortSignal) => get<ClockView>('/api/clock', signal),
  confirmClock: async () => json<ClockView>(await post('/api/clock/confirm', {})),
  evidence: (signal?: AbortSignal) => get<Evidence>('/api/evidence', signal),
  diagnosis: (signal?: AbortSignal) => get<Diagnosis>('/api/doctor', signal),
}

/** An unknown field and the field that was probably meant. */
export interface NearMiss {
  keyId: string
  path: string
  known: string
  events: number
}

export type IngestHealth = IngestHealthView & { nearMisses: NearMiss[]; otlp: OtlpHealthView }
export type OtlpHealth = OtlpHealthView
type IngestSums = IngestHealth['totals']
export type IngestKey = IngestHealth['keys'][number]
export type IngestHour = IngestHealth['hours'][number]
export type RejectedRequest = IngestHealth['rejected'][number]

export const ingestApi = {
  health: (since: string, signal: AbortSignal) =>
    get<IngestHealth>(`/api/ingest/health?${new URLSearchParams({ since })}`, signal),
}
