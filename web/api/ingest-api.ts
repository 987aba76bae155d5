/** The call of Settings → Ingest health. */
import type { IngestHealthView } from '../../server/ingest/health-routes.ts'
import { get } from './api.ts'

/** An unknown field and the field that was probably meant. */
export interface NearMiss {
  keyId: string
  path: string
  known: string
  events: number
}

export type IngestHealth = IngestHealthView & { nearMisses: NearMiss[] }
export type IngestSums = IngestHealth['totals']
export type IngestKey = IngestHealth['keys'][number]
export type IngestHour = IngestHealth['hours'][number]
export type RejectedRequest = IngestHealth['rejected'][number]

export const ingestApi = {
  health: (since: string) => get<IngestHealth>(`/api/ingest/health?${new URLSearchParams({ since })}`),
}
