/** What an engine does in its own way when a database is copied from it or into it. */
import type { SignedHead } from '../../contract/audit.ts'
import type { Database } from '../database.ts'
import type { StoredState } from './state.ts'

/** An organization's row of `event_org`. */
export interface Org {
  num: number
  orgId: string
  last: number // the newest arrival
  folded: number
  segments: number
  rewrites: number
}

interface Side {
  db: Database
  /** Lists the columns of every primary key as ("table", "column"), in order. */
  keyColumns: string
  /** Whether only this engine has the table. */
  isOwn(table: string): boolean
  /** In order; null when the engine has no place for them yet. */
  checkpoints(): SignedHead[] | null
  /** Translates an error of the database. */
  failureOf(error: unknown): Error
  close(): void
}

export interface CopySource extends Side {
  /**
   * Excludes every writer until `thaw`, or rejects with `locked` and who uses the database. Safe twice. `mark` says
   * where it is being copied to.
   */
  freeze(mark: StoredState): void
  thaw(): void
  /** Of a frozen source: a server that is started later refuses it. */
  seal(mark: StoredState): void
  /** The highest number that each table with numbered rows has given. */
  numbers(): Numbers
}

export type Numbers = { [table: string]: number }

export interface CopyTarget extends Side {
  /** Whether it cannot store NUL in a text. */
  refusesNul: boolean
  /** Marks the database as unfinished and makes it ready for rows in any order. Safe twice. */
  begin(mark: StoredState, seed: Uint8Array): void
  ids: CopyIds
  /** When all rows are there: adds what follows from them, and the checkpoints. Returns faults of references. */
  prepare(numbers: Numbers, orgs: readonly Org[], checkpoints: readonly SignedHead[]): string[]
  numbers(): Numbers
  /** Removes the mark: from now on the database can be served. */
  complete(): void
}

/** An event's id as it is stored. */
export type IdAt = [seq: number, id: string]

/** The ids of a target's blocks, each call in the transaction that changes the blocks. */
export interface CopyIds {
  /** In order of `seq`. */
  replace(org: number, removedIds: readonly IdAt[], come: readonly IdAt[]): void
  /** The transaction was rolled back. */
  undone(): void
  /** How many ids of an organization are known; null when the ids are only in blocks. */
  count(org: number): number | null
}
