/** Ids in the table `event_id`: how readers find them, and how rows are deleted with the events. */
import {
  firstPlace,
  lastSeqOf,
  newestBlocks,
  readBlock,
  storedLastSeq,
  zonesBetween,
  zonesFrom,
  type Zone,
} from '../../sql/events/blocks/block-table.ts'
import { readBlob } from '../../sql/events/blocks/body-table.ts'
import { seqOf } from '../../sql/events/blocks/block.ts'
import { member } from '../../sql/events/blocks/fields.ts'
import { openIds } from '../../sql/events/blocks/texts.ts'
import { eraseMarks, fingerprints, readSeed, type Seed } from '../../sql/events/dedupe/fingerprints.ts'
import { foldState } from '../../sql/events/rollups/hours.ts'
import { eachIn, hashOfStored, idHashes, ofOrg, type IdHash } from './id-hash.ts'
import type { DeletedIds } from '../../sql/events/dedupe/deleted-ids.ts'
import type { EventIds } from '../../sql/events/engine.ts'
import { eventAt } from '../../sql/events/read/page.ts'
import { provenanceReader } from '../../sql/events/read/provenance.ts'
import type { Check, Report } from '../../sql/events/verify/blocks.ts'
import type { Database } from '../../sql/database.ts'

export function idsInTable(db: Database, hash: IdHash = idHashes(readSeed(db))): EventIds {
  const seqOfHash = db.query<{ seq: number }, [string]>('SELECT seq FROM event_id WHERE h = CAST(? AS uuid)')
  return {
    find(org, id) {
      const seq = seqOfHash.get(hash(org, JSON.stringify(id)))?.seq
      if (seq === undefined) return null
      const [zone] = zonesBetween(db, org, seq, seq + 1)
      const block = zone === undefined ? null : readBlock(db, zone)
      if (block === null || block.code(member.type, seq - block.firstSeq) === 0) return null // erased
      return eventAt(block, seq - block.firstSeq, provenanceReader(db, org))
    },
    verify: (org, report) => verifyTable(db, org, hash, report),
  }
}

/** Blocks per read transaction. */
const sliceBlocks = 64

/** After a lower number the next append would store its arrivals at places that are taken, after a higher one a gap. */
function verifyLastSeq(db: Database, org: number, report: Report): void {
  const row = db
    .query<{ last: number; deleted: number }, [number]>(
      'SELECT last_seq AS last, deleted_seq AS deleted FROM event_org WHERE num = ?',
    )
    .get(org)
  const stored = lastSeqOf(newestBlocks(db, org, 1)[0])
  if (row === null || row.last === stored || (row.last > stored && row.last === row.deleted)) return
  const detail = row.last < stored ? `arrival ${stored} is stored` : `no arrival after ${stored} is stored`
  report('the last arrival number', `says ${row.last}, but ${detail}`)
}

/** When the newest block was deleted, `verify` expects none that ends with the last arrival. */
export function noteDeletedEnd(db: Database, org: number): void {
  const stored = lastSeqOf(newestBlocks(db, org, 1)[0])
  db.query('UPDATE event_org SET deleted_seq = last_seq WHERE num = ? AND last_seq > ?').run(org, stored)
}

/** Checks that each id of a block leads to its arrival, and that no other id is known. */
function* verifyTable(db: Database, org: number, hash: IdHash, report: Report): Check {
  verifyLastSeq(db, org, report)
  const rows = db.query<{ h: string; seq: number }, [string]>(
    `SELECT CAST(found.h AS text) AS h, found.seq FROM ${eachIn('?')}`,
  )
  const { rewrites } = foldState(db, org)!
  const until = storedLastSeq(db, org)
  let matchCount = 0
  for (let nextSeq = 1; nextSeq <= until;) {
    // A small block may have been merged meanwhile into one that begins before it.
    const zones = zonesFrom(db, org, firstPlace(db, org, nextSeq), sliceBlocks)
    for (const zone of zones) {
      const hashes = storedHashes(db, zone, hash, org)
      const seqByHash = new Map(rows.all(listOf(hashes)).map(({ h, seq }) => [h.replaceAll('-', ''), seq]))
      const first = seqOf(zone.place)
      const name = `arrivals ${first} to ${first + zone.events - 1}`
      hashes.forEach((idHash, row) => {
        const seq = first + row
        if (idHash === null || seq < nextSeq || seq > until) return
        if (seqByHash.get(idHash) === seq) matchCount++
        else report(name, `the id of arrival ${seq} is not known`)
      })
      nextSeq = Math.max(nextSeq, first + zone.events)
    }
    if (zones.length < sliceBlocks) break
    yield
  }
  if (foldState(db, org)?.rewrites !== rewrites) return // ids were deleted meanwhile
  const count = db.query<{ n: number }, [number, number]>(
    `SELECT count(*) AS n FROM event_id WHERE ${ofOrg('?1')} AND seq <= ?2`,
  )
  const strayCount = count.get(org, until)!.n - matchCount
  if (strayCount > 0) report('the known ids', `${strayCount} of them lead to no arrival`)
}

export function deletedFromTable(db: Database, seed: Seed): DeletedIds {
  const hash = idHashes(seed)
  let expiring: (string | null)[] = []
  const remove = (hashes: (string | null)[]) => {
    if (hashes.length > 0)
      db.query('DELETE FROM event_id WHERE h = ANY (CAST(? AS uuid[]))').run(listOf(hashes))
  }
  return {
    mark: eraseMarks(seed.erased, fingerprints(seed.ids)),
    removed(org, ids) {
      remove(ids.map((id) => hashOfStored(hash, org, id)))
      noteDeletedEnd(db, org)
    },
    expires(org, place) {
      const [zone] = zonesFrom(db, org, place, 1)
      if (zone?.place === place) expiring.push(...storedHashes(db, zone, hash, org))
    },
    expired(org) {
      remove(expiring)
      expiring = []
      noteDeletedEnd(db, org)
    },
    emptied(org) {
      db.query(`DELETE FROM event_id WHERE ${ofOrg('?1')}`).run(org)
      noteDeletedEnd(db, org)
    },
    forget() {},
    committed() {},
    undone() {
      expiring = []
    },
  }
}

/** By row; null for a deleted event that may be sent again. */
function storedHashes(db: Database, { place, events }: Zone, hash: IdHash, org: number): (string | null)[] {
  const ids = readBlob(db, place, 'ids')
  return ids === null ? [] : openIds(ids, events).map((id) => hashOfStored(hash, org, id))
}

function listOf(hashes: readonly (string | null)[]): string {
  return `{${hashes.filter((hash) => hash !== null).join()}}`
}
