/** Caches inflated columns of blocks that no segment index covers, because every filter reads them. */
import type { Database } from 'bun:sqlite'
import { columnsBlob, readColumns, type Zone } from '../blocks/block-table.ts'
import { openInflated } from '../blocks/block.ts'
import { inflateColumns, type PackedColumns } from '../blocks/number-columns.ts'

/*
 * A merged or emptied block has another checksum, so an entry is never stale. Entries are 5 KiB: 4 MiB are 200,000
 * events, three times the events without an index.
 */
const blocksMax = 768

interface Kept {
  checksum: number
  raw: Uint8Array
}

const caches = new WeakMap<Database, Map<number, Kept>>()

/** Enables the cache on a reader's connection. Other connections may share it. */
export function cacheColumns(db: Database, sharedWith = db): void {
  caches.set(db, caches.get(sharedWith) ?? new Map())
}

/** Null when the block is deleted. */
export function columnsOf(db: Database, { place, checksum }: Zone): PackedColumns | null {
  const cache = caches.get(db)
  if (cache === undefined || checksum === undefined) return readColumns(db, place)
  const known = cache.get(place)
  if (known?.checksum === checksum) return openInflated(known.raw)
  const blob = columnsBlob(db, place)
  if (blob === null) return null
  const raw = inflateColumns(blob)
  cache.delete(place)
  cache.set(place, { checksum, raw })
  if (cache.size > blocksMax) cache.delete(cache.keys().next().value!)
  return openInflated(raw)
}
