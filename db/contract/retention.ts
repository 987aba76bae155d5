/** The part of the store contract for retention and the hourly re-count. */
import type { AuditEntry } from './audit.ts'

/** Null: as the appliance was started. */
export interface RetentionSetting {
  days: number | null
  bytes: number | null
  auditDays: number | null // how long entries of the audit trail stay
}

export interface RecountProgress {
  throughMs: number // hours that ended by then have been counted again
  repaired: number // rollup rows that were wrong, ever since
}

export interface RetentionStore {
  setting(orgId: string): Promise<RetentionSetting>
  set(command: { orgId: string; setting: RetentionSetting; audit: AuditEntry }): Promise<void>
  /** Bytes of the organization's events with their ids and texts; indexes and rollups come on top. */
  eventBytes(orgId: string): Promise<number>
  /** What has a smaller arrival number must go for the rest to take no more than `bytesMax`; null: nothing must. */
  cutoff(query: { orgId: string; bytesMax: number }): Promise<number | null>
  /** One step of dropping rollups of hours before `beforeMs` that no event is left of; to be called until `done`. */
  dropRollups(command: { orgId: string; beforeMs: number }): Promise<{ rows: number; done: boolean }>
  /** One step of giving freed room back to the disk, but for a little; to be called until `done`. */
  release(): Promise<{ bytes: number; done: boolean }>
  /** Copies the write-ahead log into the database and empties it; false while a reader is in the way. */
  truncateLog(): Promise<boolean>
  /** Gives the reserve of room up that was kept for a full disk; false when it is gone already. */
  dropReserve(): Promise<boolean>
  /** The start of the first hour of which there are counts, or null. */
  firstHour(orgId: string): Promise<number | null>
  recounted(orgId: string): Promise<RecountProgress | null>
  noteRecount(command: { orgId: string } & RecountProgress): Promise<void>
}
