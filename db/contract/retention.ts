/** The store's interface for retention and the hourly re-count. */
import type { AuditEntry } from './audit.ts'

/** Null: the server's default. */
export interface RetentionSetting {
  days: number | null
  bytes: number | null
  auditDays: number | null // days that audit entries are stored
}

export interface RecountProgress {
  throughMs: number // hours that ended by then were counted again
  repaired: number // rollup rows corrected so far
}

export interface RetentionStore {
  setting(orgId: string): Promise<RetentionSetting>
  set(command: { orgId: string; setting: RetentionSetting; audit: AuditEntry }): Promise<void>
  /** Bytes of the organization's events with their ids and texts, without indexes and rollups. */
  eventBytes(orgId: string): Promise<number>
  /** Events with a smaller arrival number must be deleted so that the rest fits in `bytesMax`; null: none. */
  cutoff(query: { orgId: string; bytesMax: number }): Promise<number | null>
  /** Drops a bounded number of rollups of hours before `beforeMs` without a live event. Call until `done`. */
  dropRollups(command: { orgId: string; beforeMs: number }): Promise<{ rows: number; done: boolean }>
  /** Returns a bounded number of free pages to the disk and leaves a few. Call until `done`. */
  release(): Promise<{ bytes: number; done: boolean }>
  /** Copies the write-ahead log into the database and empties it; false while a reader prevents that. */
  truncateLog(): Promise<boolean>
  /** Releases the disk reserve; false when it is already released. */
  dropReserve(): Promise<boolean>
  /** The start of the first hour with counts, or null. */
  firstHour(orgId: string): Promise<number | null>
  recounted(orgId: string): Promise<RecountProgress | null>
  noteRecount(command: { orgId: string } & RecountProgress): Promise<void>
}
