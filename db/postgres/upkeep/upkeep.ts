/** Due work of any node, one organization and transaction at a time: folds counts, seals segments, merges blocks. */
import {
  readAhead,
  readColumns,
  zonesBetween,
  zonesFrom,
  type BlockSpan,
} from '../../sql/events/blocks/block-table.ts'
import { blockEventsMax, placeOf, segmentEvents, segmentOf, seqOf } from '../../sql/events/blocks/block.ts'
import { sealer, type Sealable } from '../../sql/events/index/seal.ts'
import { fold, isFoldDue } from '../../sql/events/rollups/fold.ts'
import { rollupCounts } from '../../sql/events/rollups/counts.ts'
import { dayWork } from '../../sql/events/rollups/stored-days.ts'
import { mergeFirst, smallBlockEvents, smallBlocksMax } from '../../sql/events/write/merge.ts'
import { pathWork } from '../../sql/events/paths/columns.ts'
import { StoreError, passesBy } from '../../contract/errors.ts'
import { storeError } from '../connection/failure.ts'
import { withUpkeep } from '../locks.ts'
import type { Database } from '../../sql/database.ts'

export interface Upkeep {
  /**
   * Does what is due in all organizations. One on which another node works is left to it. Data of an organization that
   * cannot be read or written does not hold up the others; the first such failure is thrown at the end.
   */
  run(): void
}

interface Counted {
  num: number
  last: number
  folded: number
  segments: number
  shredded: number
  summed: number
}

interface Org extends Counted {
  orgId: string
}

export function upkeep(db: Database): Upkeep {
  const seenSeq = new Map<number, number>() // the last arrivals of the run before
  const foldedAtMs = new Map<number, number>()
  const mergedSeq = new Map<number, number>() // earlier blocks are not examined again

  const paths = pathWork(db)
  const days = dayWork(db)

  function runOrg(org: Org): void {
    const { num, last } = org
    const arrivals = last - (seenSeq.get(num) ?? 0)
    const isQuiet = arrivals === 0
    seenSeq.set(num, last)
    const isLate = performance.now() - (foldedAtMs.get(num) ?? -Infinity) > foldEveryMs
    if (isQuiet || last - org.folded >= foldedMin || (isLate && isFoldDue(foldingOf(org)))) {
      foldAll(db, org)
      foldedAtMs.set(num, performance.now())
    }
    sealAll(db, org)
    if (org.shredded < org.segments && arrivals < busyArrivals)
      withUpkeep(db, num, () => paths.finishOne(num))
    if (org.summed < org.segments && arrivals < busyArrivals) withUpkeep(db, num, () => days.makeSome(num))
    if (isQuiet && mergedSeq.has(num)) return
    withUpkeep(db, num, () => mergedSeq.set(num, mergeSmall(db, num, mergedSeq.get(num) ?? 0)))
  }

  return {
    run() {
      const orgs = db.query<Org, []>(`SELECT org_id AS "orgId", ${counted} FROM event_org ORDER BY num`)
      let failure: StoreError | null = null
      for (const org of orgs.all()) {
        try {
          runOrg(org)
        } catch (error) {
          const stopped = storeError(error, 'upkeep')
          const { kind, message } = stopped
          if (passesBy(stopped) || kind === 'storage_full') throw error // of every organization
          failure ??= new StoreError(kind, `organization ${org.orgId}: ${message}`)
        }
      }
      if (failure !== null) throw failure
    },
  }
}

const counted = 'num, last_seq AS last, folded_seq AS folded, segments, shredded, summed'

/** With more arrivals since the last run, path columns wait: they take as long per event as folding and sealing. */
const busyArrivals = 5_000

function foldingOf({ num, last, folded }: Counted) {
  return { num, foldedSeq: folded, storedSeq: last, unfolded: rollupCounts() }
}

function stateOf(db: Database, num: number): Counted {
  return db.query<Counted, [number]>(`SELECT ${counted} FROM event_org WHERE num = ?`).get(num)!
}

function foldAll(db: Database, { num, last, folded }: Org): void {
  while (folded < last) {
    const previousFolded = folded
    const isFree = withUpkeep(db, num, () => {
      folded = foldStep(db, stateOf(db, num))
    })
    if (!isFree || folded === previousFolded) return
  }
}

/** A busy organization is folded this often, or after as many arrivals: larger folds change fewer rows per event. */
const foldEveryMs = 3_000
const foldedMin = 65_536

/**
 * Bounds of a step, except for the rest of its last block. A deleting verb waits for it: about a second. Larger steps
 * change fewer rows per event, so a node that is behind catches up: values that repeat cost 0.55 rows per event in
 * steps of 50,000 arrivals and 0.28 in one of 200,000.
 */
const foldedMax = 1_048_576
const foldedRowsMax = 131_072

/** Appends wait only for the change of the watermark, which comes last. Returns it. */
function foldStep(db: Database, org: Counted): number {
  const folding = { ...foldingOf(org), storedSeq: org.folded }
  const until = Math.min(org.last, org.folded + foldedMax)
  for (const { place, events } of readAhead(db, zonesBetween(db, org.num, org.folded + 1, until + 1))) {
    const block = readColumns(db, place)
    const first = Math.max(0, org.folded + 1 - seqOf(place)) // a merged block may begin before the watermark
    if (block !== null) folding.unfolded.add(block, first, block.rows)
    folding.storedSeq = seqOf(place) + events - 1
    if (folding.unfolded.entries() >= foldedRowsMax) break
  }
  // Only deleted blocks are left: the watermark still moves over them.
  if (folding.storedSeq === org.folded) folding.storedSeq = until
  fold(db, folding)
  return folding.storedSeq
}

function sealAll(db: Database, { num, last, segments }: Org): void {
  while (segmentOf(last + 1) > segments) {
    const isFree = withUpkeep(db, num, () => {
      const state = stateOf(db, num)
      const org = { num, segments: state.segments, storedSeq: (state.segments + 1) * segmentEvents - 1 }
      if (state.last < org.storedSeq) return
      mergeSmall(db, num, 0) // a segment names its blocks, so they are final
      sealer<Sealable>(db).finish(org)
      segments = org.segments
    })
    if (!isFree) return
  }
}

/** Blocks examined at a time. */
const examinedMax = 1_024

/**
 * Merges runs of small blocks after the sealed segments, from an arrival on. Returns the first that may still be merged
 * with later ones.
 */
function mergeSmall(db: Database, num: number, fromSeq: number): number {
  let small: BlockSpan[] = []
  let nextSeq = Math.max(fromSeq, stateOf(db, num).segments * segmentEvents)
  const mergeAll = () => {
    while (small.length > 1) mergeFirst(db, small)
    small = []
  }
  for (;;) {
    const zones = zonesFrom(db, num, placeOf(num, nextSeq), examinedMax)
    for (const { place, events } of zones) {
      const seq = seqOf(place)
      const last = small.at(-1)
      const follows = last === undefined || last.place + last.events === place
      const isSameSegment = last === undefined || segmentOf(seqOf(last.place)) === segmentOf(seq)
      if (events >= smallBlockEvents || !follows || !isSameSegment) mergeAll()
      if (events < smallBlockEvents) small.push({ place, events })
      nextSeq = seq + events
      const waiting = small.reduce((sum, block) => sum + block.events, 0)
      if (waiting >= blockEventsMax || small.length >= smallBlocksMax) mergeFirst(db, small)
    }
    if (zones.length < examinedMax) return seqOf(small[0]?.place ?? placeOf(num, nextSeq))
  }
}
