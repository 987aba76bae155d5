/** Ids in the table `event_id`: how readers find them, and how rows are deleted with the events. */
import {
  firstPlace,
  readBlock,
  storedLastSeq,
  zonesBetween,
  zonesFrom,
  type Zone,
} from '../../sql/events/blocks/block-table.ts'
import { seqOf } from '../../sql/events/blocks/block.ts'
import { member } from '../../sql/events/blocks/fields.ts'
import { openIds } from '../../sql/events/blocks/texts.ts'
import { eraseMarks, fingerprints, readSeed, type Seed } from '../../sql/events/dedupe/fingerprints.ts'
import { foldState } from '../../sql/events/rollups/hours.ts'
import { eachIn, hashOfStored, idHashes, type IdHash } from './id-hash.ts'
import type { DeletedIds, EventIds } from '../../sql/events/engine.ts'
import type { Check, Report } from '../../sql/events/verify/blocks.ts'
import type { Database } from '../../sql/database.ts'

export function idsInTable(db: Database, hash: IdHash = idHashes(readSeed(db))): EventIds {
  const seqOfHash = db.query<{ seq: number }, [number, string]>(
    'SELECT seq FROM event_id WHERE org = ? AND h = CAST(? AS uuid)',
  )
  return {
    find(org, id) {
      const seq = seqOfHash.get(org, hash(org, JSON.stringify(id)))?.seq
      if (seq === undefined) return null
      const [zone] = zonesBetween(db, org, seq, seq + 1)
      const block = zone === undefined ? null : readBlock(db, zone)
      if (block === null || block.code(member.type, seq - block.firstSeq) === 0) return null // erased
      return block.event(seq - block.firstSeq)
    },
    verify: (org, report) => verifyTable(db, org, hash, report),
  }
}

/** Blocks per read transaction. */
const sliceBlocks = 64

/** The next append would store its arrivals at places that are taken. */
function verifyLastSeq(db: Database, org: number, report: Report): void {
  const row = db
    .query<{ last: number }, [number]>('SELECT last_seq AS last FROM event_org WHERE num = ?')
    .get(org)
  const stored = storedLastSeq(db, org)
  if (row !== null && row.last < stored)
    report('the last arrival number', `says ${row.last}, but arrival ${stored} is stored`)
}

/** Checks that each id of a block leads to its arrival, and that no other id is known. */
function* verifyTable(db: Database, org: number, hash: IdHash, report: Report): Check {
  verifyLastSeq(db, org, report)
  const rows = db.query<{ h: string; seq: number }, [string, number]>(
    `SELECT CAST(found.h AS text) AS h, found.seq FROM ${eachIn('?', '?')}`,
  )
  const { rewrites } = foldState(db, org)!
  const until = storedLastSeq(db, org)
  let found = 0
  for (let nextSeq = 1; nextSeq <= until;) {
    // A small block may have been merged meanwhile into one that begins before it.
    const zones = zonesFrom(db, org, firstPlace(db, org, nextSeq), sliceBlocks)
    for (const zone of zones) {
      const hashes = storedHashes(db, zone, hash, org)
      const known = new Map(rows.all(listOf(hashes), org).map(({ h, seq }) => [h.replaceAll('-', ''), seq]))
      const first = seqOf(zone.place)
      const name = `arrivals ${first} to ${first + zone.events - 1}`
      hashes.forEach((one, row) => {
        const seq = first + row
        if (one === null || seq < nextSeq || seq > until) return
        if (known.get(one) === seq) found++
        else report(name, `the id of arrival ${seq} is not known`)
      })
      nextSeq = Math.max(nextSeq, first + zone.events)
    }
    if (zones.length < sliceBlocks) break
    yield
  }
  if (foldState(db, org)?.rewrites !== rewrites) return // ids were deleted meanwhile
  const count = db.query<{ n: number }, [number, number]>(
    'SELECT count(*) AS n FROM event_id WHERE org = ? AND seq <= ?',
  )
  const more = count.get(org, until)!.n - found
  if (more > 0) report('the known ids', `${more} of them lead to no arrival`)
}

export function deletedFromTable(db: Database, seed: Seed): DeletedIds {
  const hash = idHashes(seed)
  let expiring: (string | null)[] = []
  const remove = (org: number, hashes: (string | null)[]) => {
    if (hashes.length > 0)
      db.query('DELETE FROM event_id WHERE org = ? AND h = ANY (CAST(? AS uuid[]))').run(org, listOf(hashes))
  }
  return {
    mark: eraseMarks(seed.erased, fingerprints(seed.ids)),
    removed: (org, ids) =>
      remove(
        org,
        ids.map((id) => hashOfStored(hash, org, id)),
      ),
    expires(org, place) {
      const [zone] = zonesFrom(db, org, place, 1)
      if (zone?.place === place) expiring.push(...storedHashes(db, zone, hash, org))
    },
    expired(org) {
      remove(org, expiring)
      expiring = []
    },
    emptied: (org) => void db.query('DELETE FROM event_id WHERE org = ?').run(org),
    forget() {},
    committed() {},
    undone() {
      expiring = []
    },
  }
}

/** By row; null for a deleted event that may be sent again. */
function storedHashes(db: Database, { place, events }: Zone, hash: IdHash, org: number): (string | null)[] {
  const row = db.query<{ ids: Uint8Array }, [number]>('SELECT ids FROM event_body WHERE place = ?').get(place)
  return row === null ? [] : openIds(row.ids, events).map((id) => hashOfStored(hash, org, id))
}

function listOf(hashes: readonly (string | null)[]): string {
  return `{${hashes.filter((hash) => hash !== null).join()}}`
}
