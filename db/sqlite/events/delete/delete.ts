/** The writer's deleting verbs, and what each removes from its memory. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../../contract/errors.ts'
import type { EventWriter } from '../engine.ts'
import type { Dedupe } from '../dedupe/dedupe.ts'
import { eraseEvents } from './erase.ts'
import type { EraseMark } from '../dedupe/fingerprints.ts'
import { expireBlocks, type StepBounds } from './expire.ts'
import { filterClauses } from '../index/filter-codes.ts'
import { fold } from '../rollups/fold.ts'
import type { Orgs, OrgState } from '../write/org-state.ts'
import { removeOrgEvents, removeSiteEvents } from './remove.ts'
import type { Sealer } from '../index/seal.ts'
import type { StoredIds } from '../dedupe/stored-ids.ts'

/** One step of retention takes 20 to 50 ms: a block 0.2 to 0.4 ms, a rollup row 5 to 10 µs. */
const stepBounds: StepBounds = { blocksMax: 64, rollupRowsMax: 4_096 }

/** Erasing rows packs a block again, which takes as long as deleting this many. */
const erasedBlockCosts = 4

export interface TakeAway extends Pick<
  EventWriter,
  'removeSite' | 'removeOrg' | 'expire' | 'erase' | 'committed'
> {
  undone(): void
}

interface Memory {
  orgs: Orgs
  ids: StoredIds
  seal: Sealer
  known: Dedupe
  mark: EraseMark
  hashSeed: number
}

/** These verbs run in their own transaction, between groups, so nothing is staged. */
export function deletions(
  db: Database,
  { orgs, ids, seal, known, mark, hashSeed }: Memory,
  bounds = stepBounds,
): TakeAway {
  let runs: number[] = [] // deleted by the open transaction

  /** So that only rollup rows change, and no count in memory. */
  function folded(orgId: string): OrgState {
    const org = orgs.of(orgId)
    if (org.foldedSeq < org.storedSeq) fold(db, org)
    return org
  }

  function forget(): void {
    ids.forget()
    seal.forget()
    orgs.forget()
  }

  return {
    removeSite(orgId, siteId) {
      const removed = removeSiteEvents(db, folded(orgId), siteId)
      forget()
      return removed
    },
    erase({ orgId, sessionIds, subjects }, range) {
      const org = folded(orgId)
      const { after, until } = range ?? { after: 0, until: org.storedSeq }
      const clauses = filterClauses(db, org.num, hashSeed, { sessionIds, subjects })
      if (clauses.length === 0) throw new StoreError('internal', 'an erasure names no session and no subject')
      const blocksMax = Math.ceil(bounds.blocksMax / erasedBlockCosts)
      const erased = eraseEvents(db, org, { ...bounds, clauses, after, until, blocksMax }, mark)
      if (erased.events > 0) ids.forget() // blocks keep their keys, so memory stays valid
      return erased
    },
    removeOrg(orgId) {
      runs = removeOrgEvents(db, orgs.of(orgId))
      forget()
    },
    expire({ orgId, small = false, ...limit }) {
      const org = folded(orgId)
      const expired = expireBlocks(db, org, limit, small ? { ...bounds, blocksMax: 1 } : bounds)
      runs = expired.runs
      if (expired.events > 0) forget()
      return { events: expired.events, done: expired.done }
    },
    committed() {
      if (runs.length > 0) known.drop(runs)
      runs = []
    },
    undone() {
      runs = []
    },
  }
}
