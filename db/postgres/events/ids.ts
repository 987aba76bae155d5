/** Ids in the table `event_id`: how readers find them, and how rows are deleted with the events. */
import { readBlock, zonesBetween, zonesFrom, type Zone } from '../../sql/events/blocks/block-table.ts'
import { placeOf, seqOf } from '../../sql/events/blocks/block.ts'
import { member } from '../../sql/events/blocks/fields.ts'
import { openIds } from '../../sql/events/blocks/texts.ts'
import { readSeed } from '../../sql/events/dedupe/fingerprints.ts'
import { hashMarks, hashOfStored, idHashes, type IdHash } from './id-hash.ts'
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

/** Checks that each id of a block leads to its arrival. */
function* verifyTable(db: Database, org: number, hash: IdHash, report: Report): Check {
  const rows = db.query<{ h: string; seq: number }, [number, string]>(
    'SELECT CAST(h AS text) AS h, seq FROM event_id WHERE org = ? AND h = ANY (CAST(? AS uuid[]))',
  )
  for (let place = placeOf(org, 0); ;) {
    const zones = zonesFrom(db, org, place, sliceBlocks)
    for (const zone of zones) {
      const hashes = storedHashes(db, org, zone, hash)
      const known = new Map(rows.all(org, listOf(hashes)).map(({ h, seq }) => [h.replaceAll('-', ''), seq]))
      hashes.forEach((one, row) => {
        const seq = seqOf(zone.place) + row
        if (one !== null && known.get(one) !== seq)
          report(
            `arrivals ${seqOf(zone.place)} to ${seqOf(zone.place) + zone.events - 1}`,
            `the id of arrival ${seq} is not known`,
          )
      })
    }
    const last = zones.at(-1)
    if (last === undefined || zones.length < sliceBlocks) return
    place = last.place + 1
    yield
  }
}

export function deletedFromTable(db: Database, hash: IdHash): DeletedIds {
  let expiring: (string | null)[] = []
  const remove = (org: number, hashes: (string | null)[]) => {
    if (hashes.length > 0)
      db.query('DELETE FROM event_id WHERE org = ? AND h = ANY (CAST(? AS uuid[]))').run(org, listOf(hashes))
  }
  return {
    mark: hashMarks(hash),
    removed: (org, ids) =>
      remove(
        org,
        ids.map((id) => hashOfStored(hash, org, id)),
      ),
    expires(org, place) {
      const [zone] = zonesFrom(db, org, place, 1)
      if (zone?.place === place) expiring.push(...storedHashes(db, org, zone, hash))
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
function storedHashes(db: Database, org: number, { place, events }: Zone, hash: IdHash): (string | null)[] {
  const row = db.query<{ ids: Uint8Array }, [number]>('SELECT ids FROM event_body WHERE place = ?').get(place)
  return row === null ? [] : openIds(row.ids, events).map((id) => hashOfStored(hash, org, id))
}

function listOf(hashes: readonly (string | null)[]): string {
  return `{${hashes.filter((hash) => hash !== null).join()}}`
}
