/** The writer's verbs that take events away, and what its memory must forget afterwards. */
import type { Database } from 'bun:sqlite'
import type { EventWriter } from '../event-engine.ts'
import type { Dedupe } from './dedupe.ts'
import { expireBlocks } from './expire.ts'
import { fold } from './fold.ts'
import type { Orgs } from './org-state.ts'
import { removeOrgEvents } from './remove-org.ts'
import { removeSiteEvents } from './remove-site.ts'
import type { Sealer } from './seal.ts'
import type { StoredIds } from './stored-ids.ts'

/** Blocks that one step of retention takes: about 50 ms. */
const expireBlocksMax = 128

export interface TakeAway extends Pick<EventWriter, 'removeSite' | 'removeOrg' | 'expire' | 'committed'> {
  undone(): void
}

/** These verbs have a transaction of their own, between groups: nothing is staged when they run. */
export function takeAway(
  db: Database,
  { orgs, ids, seal, known }: { orgs: Orgs; ids: StoredIds; seal: Sealer; known: Dedupe },
  blocksMax = expireBlocksMax,
): TakeAway {
  let runs: number[] = [] // taken by the open transaction

  function forget(): void {
    ids.forget()
    seal.forget()
    orgs.forget()
  }

  return {
    removeSite(orgId, siteId) {
      const removed = removeSiteEvents(db, orgs.of(orgId), siteId)
      forget()
      return removed
    },
    removeOrg(orgId) {
      runs = removeOrgEvents(db, orgs.of(orgId))
      forget()
    },
    expire({ orgId, receivedBeforeMs }) {
      const org = orgs.of(orgId)
      if (org.foldedSeq < org.storedSeq) fold(db, org)
      const expired = expireBlocks(db, org, receivedBeforeMs, blocksMax)
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
