/** What deleting events means for their ids, which each engine stores in its own way. */
import type { EraseMark } from './fingerprints.ts'

/** What the deleting verbs tell the engine about ids, each inside its transaction. */
export interface DeletedIds {
  /** Returns what replaces an erased id, by which a resend is still known. */
  mark: EraseMark
  /** The ids may be sent again. */
  removed(org: number, ids: readonly string[]): void
  /** The block at `place` expires. Called before it is deleted. */
  expires(org: number, place: number): void
  /** Everything before an arrival has expired. */
  expired(org: number, firstKept: number): void
  /** Everything of the organization was deleted. */
  emptied(org: number): void
  /** Blocks have changed. */
  forget(): void
  committed(): void
  undone(): void
}
