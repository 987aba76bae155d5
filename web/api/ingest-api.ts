/** The call of Settings → Ingest health. */
import { get } from './api.ts'

export interface IngestSums {
  requests: number
  refused: number // requests that were refused as a whole
  accepted: number
  deduped: number
  rejected: number
}

export interface IngestKey extends IngestSums {
  id: string
  label: string
  prefix: string
  state: 'active' | 'expired' | 'revoked'
  createdAt: string
  lastUsedAt: string | null
  neverUsed: boolean
  seenInBrowserAt: string | null
  clock: { state: 'fine' | 'ahead' | 'behind'; offMs: number } | null // null: no event told a time
}

export interface IngestHour extends IngestSums {
  hour: string
  keyId: string
}

export interface RejectedRequest {
  at: string
  keyId: string
  code: string
  message: string
  path: string
  excerpt: string
}

/** A field that is not known beside the one that was probably meant. */
export interface NearMiss {
  keyId: string
  path: string
  known: string
  events: number // of those that were looked at
}

export interface IngestHealth {
  since: string
  totals: IngestSums
  keys: IngestKey[]
  hours: IngestHour[] // by hour, the oldest first
  rejected: RejectedRequest[] // the newest first
  nearMisses: NearMiss[] // most first
}

export const ingestApi = {
  health: (since: string) => get<IngestHealth>(`/api/ingest/health?${new URLSearchParams({ since })}`),
}
