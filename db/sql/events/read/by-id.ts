/** Finds one event by its id: in the id runs, then in the blocks after the last run. */
import { type Zone, readBlock, zonesBetween } from '../blocks/block-table.ts'
import { chunkOf, runLookup, spansOf } from '../dedupe/id-run.ts'
import { firstOfGroup, groupLookup, groupRows } from '../dedupe/id-group.ts'
import { readBlob } from '../blocks/body-table.ts'
import { holdsId, idsPerFrame, openIdFrame, openIds } from '../blocks/texts.ts'
import { orgOf, seqMax, seqOf } from '../blocks/block.ts'
import { eventAt } from './page.ts'
import { provenanceReader } from './provenance.ts'
import type { Database } from '../../database.ts'
import type { StoredEvent } from '../../../contract/store.ts'

export function findById(
  db: Database,
  org: number,
  fingerprint: (org: number, id: string) => number,
  id: string,
): StoredEvent | null {
  const text = JSON.stringify(id)
  const print = fingerprint(org, text)
  const spans = spansOf(db, org)
  const firstSeqs = new Map(spans.map(({ run, firstSeq }) => [run, firstSeq]))
  const merged = groupRows(db).filter(({ chunks }) => chunkOf(print) < chunks)
  const isMerged = new Set(merged.map(({ firstRun }) => firstRun))
  let event: StoredEvent | null = null
  const isAt = (run: number, offset: number) => {
    const firstSeq = firstSeqs.get(run)
    if (firstSeq === undefined) return false
    event = eventWith(db, zonesBetween(db, org, firstSeq + offset, firstSeq + offset + 1), text)
    return event !== null
  }
  const inRun = runLookup(db)
  for (const { run } of spans)
    if (!isMerged.has(firstOfGroup(run)) && inRun(run, 0, print, (offset) => isAt(run, offset))) return event
  const inGroup = groupLookup(db)
  for (const { firstRun } of merged.toReversed()) if (inGroup(firstRun, print, isAt)) return event
  const flushedSeq = spans.reduce((high, { lastSeq }) => Math.max(high, lastSeq), 0)
  return eventWith(db, zonesBetween(db, org, flushedSeq + 1, seqMax).reverse(), text)
}

function eventWith(db: Database, zones: Zone[], id: string): StoredEvent | null {
  const idLookup = wantedId(id)
  for (const zone of zones) {
    const names = namesThatMayHold(db, zone, idLookup)
    if (names === null || !holdsId(names, zone.events, id)) continue
    const block = readBlock(db, zone)
    if (block === null) return null
    return eventAt(block, openIds(names, zone.events).indexOf(id), provenanceReader(db, orgOf(zone.place)))
  }
  return null
}

/*
 * A merged or emptied block has another checksum, so an entry is never stale. Four bytes per id: 2 MiB hold more than
 * the events without a run.
 */
const idsMax = 2 ** 19
/** Hashing the ids of a block takes twice as long as looking for one id, so the first reads after a start share it. */
const hashedPerRead = 256

interface CachedBlock {
  checksum: number
  hashes: Uint32Array
}

interface IdCache {
  blocks: Map<number, CachedBlock> // by block key, least recently used first
  ids: number
}

const caches = new WeakMap<Database, IdCache>()

/** Enables the cache on a reader's connection. Other connections may share it. */
export function cacheIds(db: Database, sharedWith = db): void {
  caches.set(db, caches.get(sharedWith) ?? { blocks: new Map(), ids: 0 })
}

interface WantedId {
  hash: number
  blocksToHash: number
}

/** `id`: as JSON text. */
export function wantedId(id: string): WantedId {
  return { hash: hashOf(Buffer.from(id)), blocksToHash: hashedPerRead }
}

/**
 * The names of a block that may hold an id; null when it does not. Hashes exclude nearly all other blocks without
 * reading them.
 */
export function namesThatMayHold(db: Database, zone: Zone, idLookup: WantedId): Uint8Array | null {
  const cache = caches.get(db)
  const { place, checksum } = zone
  if (cache === undefined || checksum === undefined) return readBlob(db, place, 'ids')
  const cachedBlock = cache.blocks.get(place)
  if (cachedBlock?.checksum === checksum)
    return cachedBlock.hashes.includes(idLookup.hash) ? readBlob(db, place, 'ids') : null
  const names = readBlob(db, place, 'ids')
  if (names === null || idLookup.blocksToHash === 0) return names
  idLookup.blocksToHash--
  const hashes = hashesOf(names, zone.events)
  remember(cache, place, { checksum, hashes })
  return hashes.includes(idLookup.hash) ? names : null
}

function remember(cache: IdCache, place: number, block: CachedBlock): void {
  forget(cache, place)
  cache.blocks.set(place, block)
  cache.ids += block.hashes.length
  while (cache.ids > idsMax) forget(cache, cache.blocks.keys().next().value!)
}

function forget(cache: IdCache, place: number): void {
  cache.ids -= cache.blocks.get(place)?.hashes.length ?? 0
  cache.blocks.delete(place)
}

/** FNV-1a of each id, straight from the bytes of its frame: decoding texts first takes ten times as long. */
function hashesOf(names: Uint8Array, events: number): Uint32Array {
  const hashes = new Uint32Array(events)
  for (let row = 0; row < events; row += idsPerFrame) {
    const frame = openIdFrame(names, row)
    if (frame === null) break
    const { rows } = frame
    const bytes = frame.bytes()
    for (let offset = 1, idRow = row; idRow < row + rows; idRow++, offset++) {
      let hash = hashStart
      for (; offset < bytes.length && bytes[offset] !== 0; offset++) hash = hashed(hash, bytes[offset]!)
      hashes[idRow] = hash
    }
  }
  return hashes
}

function hashOf(bytes: Uint8Array): number {
  return bytes.reduce(hashed, hashStart) >>> 0
}

const hashStart = 0x811c9dc5

function hashed(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193)
}
