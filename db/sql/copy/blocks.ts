/** Copies the blocks of events with their arrival numbers, as bytes, and the ids that dedupe knows them by. */
import { inSnapshot, inTransaction, type Database } from '../database.ts'
import {
  deleteBlock,
  firstPlace,
  storedLastSeq,
  zonesBetween,
  zonesFrom,
  type Zone,
} from '../events/blocks/block-table.ts'
import { placeOf, seqMax, seqOf } from '../events/blocks/block.ts'
import { bodiesBetween, readBlob } from '../events/blocks/body-table.ts'
import { openIds } from '../events/blocks/texts.ts'
import { removedId } from '../events/dedupe/fingerprints.ts'
import type { Counted } from '../../contract/copy.ts'
import type { Sliced } from '../slices.ts'
import type { CopySource, CopyTarget, IdAt, Org } from './sides.ts'
import type { Meter } from './rows.ts'

export function orgsOf(db: Database): Org[] {
  const rows = db
    .query<Omit<Org, 'last'>>(
      `SELECT num, org_id AS orgId, folded_seq AS folded, segments, rewrites FROM event_org ORDER BY num`,
    )
    .all()
  return rows.map((org) => ({ ...org, last: storedLastSeq(db, org.num) }))
}

/** Inside a transaction. Organizations keep their numbers, which codes and hashes contain. */
export function writeOrgs(db: Database, orgs: readonly Org[]): void {
  const write = db.query(
    `INSERT INTO event_org (num, org_id, last_seq, folded_seq, segments, rewrites) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (num) DO UPDATE SET last_seq = excluded.last_seq, folded_seq = excluded.folded_seq,
       segments = excluded.segments, rewrites = excluded.rewrites`,
  )
  for (const { num, orgId, last, folded, segments, rewrites } of orgs)
    write.run(num, orgId, last, folded, segments, rewrites)
}

interface Block extends Zone {
  checksum: number
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}

/** Blocks compared at a time, and those written in one transaction: about 2 MB. */
const comparedMax = 2_048
const writtenMax = 128
const deletedMax = 512

interface Region {
  /** Of the target, to delete. */
  stale: Zone[]
  /** Of the source, to write. */
  missing: Block[]
  /** The first arrival after the region, null at the end. */
  nextSeq: number | null
  events: number
  bytes: number
}

/**
 * Walks the organization's arrivals in order. A server may merge small blocks meanwhile, so each region begins with the
 * block that then holds its first arrival, and no event is left out.
 */
export function* copyBlocks(source: CopySource, target: CopyTarget, num: number, meter: Meter): Sliced<void> {
  for (let nextSeq: number | null = 1; nextSeq !== null;) {
    const fromSeq: number = nextSeq
    const region = inSnapshot(source.db, () => readRegion(source.db, target.db, num, fromSeq))
    while (region.stale.length > deletedMax) {
      change(target, num, region.stale.splice(0, deletedMax), [])
      yield
    }
    change(target, num, region.stale, region.missing)
    meter.rows += region.events
    meter.bytes += region.bytes
    nextSeq = region.nextSeq
    yield
  }
}

const isSame = (a: Zone, b: Zone | undefined): boolean =>
  b !== undefined &&
  a.events === b.events &&
  a.checksum === b.checksum &&
  a.minAt === b.minAt &&
  a.maxAt === b.maxAt

function readRegion(from: Database, to: Database, num: number, fromSeq: number): Region {
  const zones = zonesFrom(from, num, firstPlace(from, num, fromSeq), comparedMax)
  let untilSeq = zones.length < comparedMax ? seqMax : endOf(zones.at(-1)!)
  // A merged block may begin before the region.
  const startSeq = Math.min(fromSeq, ...zones.slice(0, 1).map(({ place }) => seqOf(place)))
  const stored = new Map(zonesBetween(to, num, startSeq, untilSeq + 1).map((zone) => [zone.place, zone]))
  const missing = zones.filter((zone) => !isSame(zone, stored.get(zone.place)))
  const isCut = missing.length > writtenMax
  if (isCut) untilSeq = endOf(missing[writtenMax - 1]!)
  const copied = zones.filter((zone) => seqOf(zone.place) <= untilSeq)
  const unchangedPlaces = new Set(
    zones.filter((zone) => isSame(zone, stored.get(zone.place))).map(({ place }) => place),
  )
  const stale = [...stored.values()].filter(
    ({ place }) => !unchangedPlaces.has(place) && seqOf(place) <= untilSeq,
  )
  const blocks = readBlocks(from, missing.slice(0, writtenMax))
  return {
    stale,
    missing: blocks,
    nextSeq: untilSeq === seqMax ? null : untilSeq + 1,
    events: copied.reduce((sum, { events }) => sum + events, 0),
    bytes: blocks.reduce(
      (sum, block) => sum + block.columns.length + block.ids.length + block.bodies.length,
      0,
    ),
  }
}

const endOf = ({ place, events }: Zone): number => seqOf(place) + events - 1

/** Reads neighbours together. */
function readBlocks(db: Database, zones: readonly Zone[]): Block[] {
  const read = db.query<Omit<Block, 'ids' | 'bodies'>, [number, number]>(
    `SELECT place, events, min_at AS minAt, max_at AS maxAt, checksum, columns
     FROM event_block WHERE place >= ? AND place <= ? ORDER BY place`,
  )
  const blocks: Block[] = []
  for (let start = 0; start < zones.length;) {
    let end = start
    while (end + 1 < zones.length && zones[end + 1]!.place === zones[end]!.place + zones[end]!.events) end++
    const first = zones[start]!.place
    const last = zones[end]!.place
    const bodies = new Map(bodiesBetween(db, first, last).map((body) => [body.place, body]))
    for (const block of read.all(first, last)) {
      const body = bodies.get(block.place)
      if (body !== undefined) blocks.push({ ...block, ...body })
    }
    start = end + 1
  }
  return blocks
}

/** One transaction. */
function change(target: CopyTarget, num: number, stale: readonly Zone[], blocks: readonly Block[]): void {
  if (stale.length + blocks.length === 0) return
  const { db, ids } = target
  try {
    inTransaction(db, () => {
      const removedIds = stale.flatMap((zone) => idsAt(zone, readBlob(db, zone.place, 'ids')))
      for (const { place } of stale) deleteBlock(db, place)
      const columns = blocks.map(({ place, events, minAt, maxAt, checksum, columns: packed }) => {
        return [place, events, minAt, maxAt, checksum, packed]
      })
      db.runEach(
        'INSERT INTO event_block (place, events, min_at, max_at, checksum, columns) VALUES (?, ?, ?, ?, ?, ?)',
        columns,
      )
      const bodies = blocks.map(({ place, ids: packed, bodies: texts }) => [place, packed, texts])
      db.runEach('INSERT INTO event_body (place, ids, bodies) VALUES (?, ?, ?)', bodies)
      const come = blocks.flatMap((block) => idsAt(block, block.ids))
      ids.replace(num, removedIds, come)
    })
  } catch (error) {
    ids.undone()
    throw error
  }
}

/** Without those of deleted events, which may be sent again. */
function idsAt({ place, events }: Zone, packed: Uint8Array | null): IdAt[] {
  if (packed === null) return []
  const first = seqOf(place)
  return openIds(packed, events).flatMap((id, row): IdAt[] => (id === removedId ? [] : [[first + row, id]]))
}

interface EventDigest {
  /** Events with their texts, arrival numbers and times, as bytes. */
  events: Counted
  /** In blocks. */
  ids: number
}

const digestedMax = 128

/** Digests all events of an organization in order of arrival. */
export function* digestBlocks(db: Database, num: number, meter: Meter): Sliced<EventDigest> {
  const hash = new Bun.CryptoHasher('sha256')
  const eventDigest: EventDigest = { events: { rows: 0, digest: '' }, ids: 0 }
  for (let place = placeOf(num, 0); ;) {
    const zones = zonesFrom(db, num, place, digestedMax)
    for (const block of readBlocks(db, zones)) {
      const { events, minAt, maxAt, checksum, columns, ids, bodies } = block
      hash.update(`${[seqOf(block.place), events, minAt, maxAt, checksum].join()}\n`)
      hash.update(columns).update(ids).update(bodies)
      eventDigest.events.rows += events
      eventDigest.ids += idsAt(block, ids).length
      meter.rows += events
      meter.bytes += columns.length + ids.length + bodies.length
    }
    if (zones.length < digestedMax) break
    place = zones.at(-1)!.place + 1
    yield
  }
  return { ...eventDigest, events: { ...eventDigest.events, digest: hash.digest('hex') } }
}
