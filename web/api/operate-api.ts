/** The calls of Settings about the appliance itself: backups and what the doctor finds. For operators. */
import { exchange, get, json, post } from './api.ts'

export interface Backup {
  name: string
  bytes: number
  createdAt: string | null // null, like the fields below, when the file is corrupt
  reason: string | null
  version: string | null
  schema: number | null
  events: number | null
  encrypted: boolean | null
  problem: string | null
  sha256: string | null
  provenAt: string | null
  checked: { at: string; ok: boolean; problems: string[] } | null
}

export interface Backups {
  backups: Backup[]
  schedule: { cron: string | null; keep: number; encrypted: boolean; nextAt: string | null }
  running: { startedAt: string; reason: string } | null
  checking: string | null
  lastRun: { at: string; ok: boolean; name: string | null; message: string } | null
}

export interface Diagnosis {
  ok: boolean // no failure; warnings are fine
  at: string
  version: string
  checks: { id: string; status: 'ok' | 'warning' | 'failure'; detail: string; hint: string | null }[]
}

/** What the server's clock says; `hold` while nothing is deleted by age because it jumped. */
export interface ClockView {
  now: string
  hold: { since: string; jumpMs: number; leftMs: number; message: string } | null
}

/** Limits of an organization's events; null: as the appliance was started, or without the limit. */
export interface Retention {
  days: number | null
  bytes: number | null
  auditDays: number | null // entries of the audit log
  appliance: { days: number | null; bytes: number | null; auditDays: number | null }
  eventBytes: number
}

export type Erasure = { session: string } | { subject: string }

interface Taken {
  events: number
  deliveries: number
  samples: number
}

export interface Erasures {
  running: (Taken & { by: 'session' | 'subject'; startedAt: string }) | null
  last: {
    by: 'session' | 'subject'
    endedAt: string
    erased: (Taken & { logEmptied: boolean }) | null // null: it was cut short
    problem: string | null
  } | null
  beyond: string[] // what no erasure here can reach
}

const one = (name: string, ...more: string[]): string =>
  ['/api/backups', encodeURIComponent(name), ...more].join('/')

export const operateApi = {
  backups: (signal?: AbortSignal) => get<Backups>('/api/backups', signal),
  startBackup: async () => json<Backups>(await post('/api/backups', {})),
  proveBackup: async (name: string) => json<Backups>(await post(one(name, 'verify'), {})),
  deleteBackup: async (name: string) => json<Backups>(await exchange(one(name), { method: 'DELETE' })),
  backupHref: (name: string): string => one(name, 'file'),
  retention: () => get<Retention>('/api/retention'),
  setRetention: async (limits: Pick<Retention, 'days' | 'bytes' | 'auditDays'>) => {
    // What is left out is as the appliance was started.
    const { days, bytes, auditDays } = limits
    const body = {
      ...(days !== null && { days }),
      ...(bytes !== null && { bytes }),
      ...(auditDays !== null && { auditDays }),
    }
    return json<Retention>(await post('/api/retention', body))
  },
  erasures: (signal?: AbortSignal) => get<Erasures>('/api/erase', signal),
  erase: async (what: Erasure) => json<Erasures>(await post('/api/erase', what)),
  /** Null when counting would take too long. */
  countErased: async (what: Erasure) =>
    (await json<{ events: number | null }>(await post('/api/erase/count', what))).events,
  clock: () => get<ClockView>('/api/clock'),
  confirmClock: async () => json<ClockView>(await post('/api/clock/confirm', {})),
  diagnosis: (signal?: AbortSignal) => get<Diagnosis>('/api/doctor', signal),
}
