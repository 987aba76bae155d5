/** The writer's deleting verbs: what they delete, and what each removes from the writer's memory. */
import { StoreError } from '../../../contract/errors.ts'
import { blankRows, eraseEvents, matchingRows } from './erase.ts'
import { expireBlocks, type StepBounds } from './expire.ts'
import { filterClauses } from '../index/filter-codes.ts'
import { fold, takeFromRollups } from '../rollups/fold.ts'
import { noteRewrite } from '../rollups/hours.ts'
import { member } from '../blocks/fields.ts'
import { rollupCounts } from '../rollups/counts.ts'
import { placeOf } from '../blocks/block.ts'
import type { Database } from '../../database.ts'
import type { DeletedIds } from '../dedupe/deleted-ids.ts'
import type { EraseCommand, EraseRange, ExpireCommand, ExpireResult } from '../../../contract/store.ts'
import type { OrgState, Orgs } from '../write/org-state.ts'
import type { Sealer } from '../index/seal.ts'

/** One step of retention takes 20 to 50 ms: a block 0.2 to 0.4 ms, a rollup row 5 to 10 µs. */
const stepBounds: StepBounds = { blocksMax: 64, rollupRowsMax: 4_096 }

/** Erasing rows packs a block again, which takes as long as deleting this many. */
const erasedBlockCosts = 4

/** The deleting verbs of an engine's writer. */
export interface Deletions {
  /** Deletes every event of a site inside the open transaction; returns how many. */
  removeSite(orgId: string, siteId: string): number
  /** Deletes everything of an organization inside the open transaction. */
  removeOrg(orgId: string): void
  /**
   * Expires a bounded number of the oldest events inside the open transaction (retention).
   * `tight`: writes as little as possible, for a full disk.
   */
  expire(command: ExpireCommand, tight?: boolean): ExpireResult
  /** Erases a bounded number of events, first (null) from the first arrival on; `next` is the rest. */
  erase(command: EraseCommand, range: EraseRange | null): { events: number; next: EraseRange | null }
}

interface TakeAway extends Deletions {
  committed(): void
  undone(): void
}

interface Memory {
  orgs: Orgs
  ids: DeletedIds
  seal: Pick<Sealer, 'forget'>
  spare: { forget(): void }[] // work of the spare time
  hashSeed: number
}

/** These verbs run in their own transaction, between groups, so nothing is staged. */
export function deletions(
  db: Database,
  { orgs, ids, seal, spare, hashSeed }: Memory,
  bounds = stepBounds,
): TakeAway {
  /** So that only rollup rows change, and no count in memory. */
  function folded(orgId: string): OrgState {
    const org = orgs.of(orgId)
    if (org.foldedSeq < org.storedSeq) fold(db, org)
    return org
  }

  function forget(): void {
    ids.forget()
    seal.forget()
    for (const work of spare) work.forget()
    orgs.forget()
  }

  return {
    removeSite(orgId, siteId) {
      const removed = removeSiteEvents(db, folded(orgId), siteId, ids)
      forget()
      return removed
    },
    erase({ orgId, sessionIds, subjects }, range) {
      const org = folded(orgId)
      const { after: afterSeq, until } = range ?? { after: 0, until: org.storedSeq }
      const clauses = filterClauses(db, org.num, hashSeed, { sessionIds, subjects })
      if (clauses.length === 0) throw new StoreError('internal', 'an erasure names no session and no subject')
      const blocksMax = Math.ceil(bounds.blocksMax / erasedBlockCosts)
      const erased = eraseEvents(db, org, { ...bounds, clauses, after: afterSeq, until, blocksMax }, ids.mark)
      if (erased.events > 0) ids.forget() // blocks keep their keys, so other memory stays valid
      for (const work of spare) work.forget()
      return erased
    },
    removeOrg(orgId) {
      const org = orgs.of(orgId)
      removeOrgEvents(db, org)
      ids.emptied(org.num)
      forget()
    },
    expire({ orgId, ...limit }, tight) {
      const org = folded(orgId)
      const expired = expireBlocks(db, org, limit, tight ? { ...bounds, blocksMax: 1 } : bounds, ids)
      if (expired.events > 0) forget()
      return { events: expired.events, done: expired.done }
    },
    committed: ids.committed,
    undone: ids.undone,
  }
}

/** The organization's rollups must be folded. */
function removeSiteEvents(db: Database, org: OrgState, siteId: string, ids: DeletedIds): number {
  const term = db
    .query<{ code: number }, [number, number, string]>(
      'SELECT code FROM event_term WHERE org = ? AND member = ? AND text = ?',
    )
    .get(org.num, member.siteId, siteId)
  if (term === null) return 0
  const deletedCounts = rollupCounts()
  const ofSite = {
    member: member.siteId,
    codes: new Set([term.code]),
    hashed: new Map<number, Set<string>>(),
  }
  let removed = 0
  for (const match of matchingRows(db, org.num, [ofSite])) {
    ids.removed(org.num, blankRows(db, match, deletedCounts, null))
    removed += match.rows.length
  }
  takeFromRollups(db, org.num, deletedCounts)
  forgetTerm(db, org.num, siteId, term.code)
  noteRewrite(db, org.num)
  db.query('UPDATE event_org SET last_seq = ? WHERE num = ?').run(org.storedSeq, org.num)
  return removed
}

/** Frees the site's place within the organization's limit, unless rollups of expired events still name it. */
function forgetTerm(db: Database, org: number, siteId: string, code: number): void {
  const metricRow = db.query('SELECT 1 FROM rollup_metric WHERE org = ? AND site = ? LIMIT 1').get(org, code)
  if (metricRow !== null) return
  const sql = 'DELETE FROM event_term WHERE org = ? AND member = ? AND text = ?'
  db.query(sql).run(org, member.siteId, siteId)
}

/** Deletes everything of an organization from the event tables except its number and its last seq. */
const tables = [
  'event_term',
  'event_segment',
  'event_posting',
  'event_posting_rest',
  'event_posting_filter',
  'event_path',
  'event_network',
  'event_type_total',
  'rollup_metric',
  'rollup_value',
  'rollup_day',
] as const

/** Inside a transaction. */
function removeOrgEvents(db: Database, org: OrgState): void {
  for (const table of ['event_block', 'event_body']) {
    db.query(`DELETE FROM ${table} WHERE place >= ? AND place < ?`).run(
      placeOf(org.num, 0),
      placeOf(org.num + 1, 0),
    )
  }
  for (const table of tables) db.query(`DELETE FROM ${table} WHERE org = ?`).run(org.num)
  noteRewrite(db, org.num)
  db.query(
    `UPDATE event_org SET last_seq = ?1, folded_seq = ?1,
       shredded = segments, repacked = segments, summed = segments WHERE num = ?2`,
  ).run(org.storedSeq, org.num)
}
