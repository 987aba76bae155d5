/** The writing half of the event engine: stages batches, writes and merges blocks at commit, does due maintenance. */
import { StoreError } from '../../contract/errors.ts'
import { appender, type Appender } from './write/append.ts'
import { type BlockSpan, writeBlock, zonesBetween } from './blocks/block-table.ts'
import { dropRollups, type StepBounds } from './delete/expire.ts'
import { dedupe, knownIds, type Dedupe } from './dedupe/dedupe.ts'
import { deletedFromRuns } from './ids-in-runs.ts'
import { eraseMarks, fingerprintOf, fingerprints, readSeed, storedIds } from './dedupe/fingerprints.ts'
import { filterBackfill, sealer, type Sealer } from './index/seal.ts'
import { fold, isFoldDue } from './rollups/fold.ts'
import { readBlob } from './blocks/body-table.ts'
import { openIds } from './blocks/texts.ts'
import { pathWork } from './paths/columns.ts'
import { repackWork } from './blocks/repack.ts'
import { expireNetworks, writeNetworks } from './blocks/networks.ts'
import { mergeFirst, smallBlockEvents, smallBlocksMax } from './write/merge.ts'
import { openOrgs, type OrgState } from './write/org-state.ts'
import { blockEventsMax, endsSegment, placeOf, seqMax, seqOf } from './blocks/block.ts'
import { repairRollups } from './rollups/recount.ts'
import { dayWork } from './rollups/stored-days.ts'
import { deletions } from './delete/delete.ts'
import { accessLedger } from '../../rules/access-ledger.ts'
import { expireAccess, findSource, writeAccess } from '../access/access-logs.ts'
import { inTransaction, type Database } from '../database.ts'
import type { EventWriter } from './engine.ts'

/** Only tests use other sizes than the measured ones. */
export interface EventWriterOptions {
  fingerprintBits?: number
  idsPerRun?: number
  freezePart?: number
  deleteStep?: StepBounds
}

/** Steps of the filters' backfill when idle, and commits between two steps otherwise. */
const backfillSteps = 16
const backfillEvery = 32

export function compactEventWriter(db: Database, options: EventWriterOptions = {}): EventWriter {
  const seed = readSeed(db)
  const print = fingerprints(seed.ids, options.fingerprintBits)
  const idIndex = dedupe(db, options.idsPerRun, options.freezePart)
  const mark = eraseMarks(seed.erased, print)
  const ids = storedIds(db, mark)
  const orgs = openOrgs(db, seed.values)
  const seal = sealer<OrgState>(db)
  const backfill = filterBackfill(db)
  const spare = [dayWork(db), pathWork(db), repackWork(db)] // the shortest first
  const ledger = accessLedger((key) => findSource(db, key))
  const appends = appender(knownIds(idIndex, print, ids.has), ledger)
  let touched = new Set<OrgState>()
  let commits = 0
  const deleted = deletedFromRuns(db, idIndex, ids, mark)
  const memory = { orgs, ids: deleted, seal, spare, hashSeed: seed.values }
  const deletes = deletions(db, memory, options.deleteStep)
  const transact = (write: () => void) => inTransaction(db, write)
  loadIds(db, idIndex, print)

  function readAnew(): void {
    ledger.take()
    deletes.undone()
    touched = new Set()
    orgs.forget()
    seal.forget()
    backfill.forget()
    for (const work of spare) work.forget()
    ids.forget()
    loadIds(db, idIndex, print)
  }

  return {
    append(batch) {
      const org = orgs.of(batch.orgId)
      touched.add(org)
      return appends.append(org, batch)
    },
    flush() {
      writeAccess(db, ledger.take())
      for (const org of touched) {
        const events = org.staged.reduce((sum, { content }) => sum + content.events, 0)
        if (writeStaged(db, org, appends, seal)) ids.forget()
        idIndex.step(events)
        if (seal.isDue(org)) for (const work of spare) work.wake()
        seal.step(org, events)
        if (backfill.isDue() && ++commits % backfillEvery === 0) backfill.step()
        if (isFoldDue(org)) fold(db, org)
      }
    },
    ...deletes,
    dropRollups: ({ orgId, beforeMs }) => dropRollups(db, orgs.of(orgId).num, beforeMs),
    expireAccess: (command) => expireAccess(db, command),
    expireNetworks: (beforeDay) => expireNetworks(db, beforeDay),
    repair: ({ orgId, repairs }) => repairRollups(db, orgs.of(orgId).num, repairs),
    committed() {
      touched = new Set()
      deletes.committed()
      orgs.trim(seal.current())
    },
    rolledBack: readAnew,
    idle: withRecovery(readAnew, () => {
      for (const org of [...orgs.loaded()])
        if (isUnsettled(org, seal)) inTransaction(db, () => settle(db, org, seal))
      for (const work of spare) work.wake()
      for (let steps = 0; backfill.isDue() && steps < backfillSteps; steps++) inTransaction(db, backfill.step)
    }),
    spare: withRecovery(readAnew, () => idIndex.spare(transact) || spare.some((work) => work.step(transact))),
    close() {},
  }
}

/** Work between the groups. When it fails, memory is read again. */
function withRecovery<T>(readAnew: () => void, work: () => T): () => T {
  return () => {
    try {
      return work()
    } catch (error) {
      readAnew()
      throw error
    }
  }
}

function isUnsettled(org: OrgState, seal: Sealer<OrgState>): boolean {
  return org.foldedSeq < org.storedSeq || seal.isDue(org)
}

/** Does all the due work of commits at once. */
function settle(db: Database, org: OrgState, seal: Sealer<OrgState>): void {
  fold(db, org)
  seal.finish(org)
}

/** Writes the staged blocks of an organization. Returns whether older ones were merged. */
function writeStaged(db: Database, org: OrgState, appends: Appender, seal: Sealer<OrgState>): boolean {
  let merged = false
  for (const { firstSeq, content } of org.staged) {
    const zone = writeBlock(db, placeOf(org.num, firstSeq), content)
    org.storedSeq = firstSeq + content.events - 1
    org.unfolded.add({ column: (index) => content.columns[index]! }, 0, content.events)
    seal.note(org, firstSeq, content)
    appends.recycle(content)
    merged = mergeAfter(db, org, zone) || merged
  }
  writeNetworks(db, org.num, org.networks)
  org.staged = []
  org.networks = []
  return merged
}

/** Rebuilds the memory table from the ids of the blocks after the last run. */
export function loadIds(db: Database, idIndex: Dedupe, print: (org: number, id: string) => number): void {
  idIndex.load((flushedSeq, add) => {
    for (const { num } of db.query<{ num: number }, []>('SELECT num FROM event_org').all()) {
      const afterSeq = flushedSeq.get(num) ?? 0
      for (const { place, events } of zonesBetween(db, num, afterSeq + 1, seqMax)) {
        const ids = readBlob(db, place, 'ids')
        if (ids === null) throw new StoreError('corrupt', `the bodies of block ${place} are missing`)
        openIds(ids, events).forEach((id, index) => {
          const fingerprint = fingerprintOf(id, (text) => print(num, text))
          const seq = seqOf(place) + index
          if (seq > afterSeq && fingerprint !== null) add(num, seq, fingerprint)
        })
      }
    }
  })
}

/** Records a block that was just written and merges blocks when it pays. Returns whether any block changed. */
function mergeAfter(db: Database, org: OrgState, written: BlockSpan): boolean {
  const isSmall = written.events < smallBlockEvents
  let merged = false
  if (isSmall) org.small.push(written)
  if (!isSmall || endsSegment(seqOf(written.place) + written.events - 1)) {
    while (org.small.length > 1) merged = mergeFirst(db, org.small) || merged
    org.small = []
  }
  const events = org.small.reduce((sum, block) => sum + block.events, 0)
  if (events >= blockEventsMax || org.small.length >= smallBlocksMax)
    merged = mergeFirst(db, org.small) || merged
  return merged
}
