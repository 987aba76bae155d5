/** Hashes of the ids of blocks that no id run covers, kept by a reader: an unknown id is sought in all of them. */
import type { Database } from 'bun:sqlite'
import type { Zone } from '../blocks/block-table.ts'
import { idsPerFrame, openIdFrame } from '../blocks/names.ts'

/*
 * A block that was merged or emptied has another checksum, so what is kept of it is never taken for it. Four bytes an
 * id: 2 MiB hold more than what waits for a run.
 */
const idsMax = 2 ** 19

interface Kept {
  checksum: number
  hashes: Uint32Array
}

interface KeptIds {
  blocks: Map<number, Kept> // by place, the one that was read longest ago first
  ids: number
}

const keptBy = new WeakMap<Database, KeptIds>()

/** From now on this connection keeps ids; a reader's, which is asked again and again. Another one may share them. */
export function keepIds(db: Database, sharedWith = db): void {
  keptBy.set(db, keptBy.get(sharedWith) ?? { blocks: new Map(), ids: 0 })
}

/**
 * The names of a block that may hold an id, given as JSON text; null of one that does not. A hash says so of nearly all
 * that do not, without reading them.
 */
export function namesThatMayHold(db: Database, zone: Zone, id: string): Uint8Array | null {
  const kept = keptBy.get(db)
  const { place, checksum } = zone
  if (kept === undefined || checksum === undefined) return readNames(db, place)
  const known = kept.blocks.get(place)
  if (known?.checksum === checksum)
    return known.hashes.includes(hashOf(Buffer.from(id))) ? readNames(db, place) : null
  const names = readNames(db, place)
  if (names !== null) keep(kept, place, { checksum, hashes: hashesOf(names, zone.events) })
  return names
}

function readNames(db: Database, place: number): Uint8Array | null {
  const read = db.query<{ ids: Uint8Array }, [number]>('SELECT ids FROM event_body WHERE place = ?')
  return read.get(place)?.ids ?? null
}

function keep(kept: KeptIds, place: number, block: Kept): void {
  forget(kept, place)
  kept.blocks.set(place, block)
  kept.ids += block.hashes.length
  while (kept.ids > idsMax) forget(kept, kept.blocks.keys().next().value!)
}

function forget(kept: KeptIds, place: number): void {
  kept.ids -= kept.blocks.get(place)?.hashes.length ?? 0
  kept.blocks.delete(place)
}

/** FNV-1a of each id, straight from the bytes of its frame: to make texts of them first takes ten times as long. */
function hashesOf(names: Uint8Array, events: number): Uint32Array {
  const hashes = new Uint32Array(events)
  for (let row = 0; row < events; row += idsPerFrame) {
    const frame = openIdFrame(names, row)
    if (frame === null) break
    const { rows, bytes } = frame
    for (let at = 1, of = row; of < row + rows; of++, at++) {
      let hash = hashStart
      for (; at < bytes.length && bytes[at] !== 0; at++) hash = hashed(hash, bytes[at]!)
      hashes[of] = hash
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
