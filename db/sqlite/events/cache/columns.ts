/** Columns of blocks that a reader keeps inflated: what no segment covers yet is gone through for every filter. */
import type { Database } from 'bun:sqlite'
import { columnsBlob, readColumns, type Zone } from '../blocks/block-table.ts'
import { openInflated } from '../blocks/block.ts'
import { inflateColumns, type PackedColumns } from '../blocks/number-columns.ts'

/*
 * A block that was merged or emptied has another checksum, so what is kept of it is never taken for it. 5 KiB each:
 * 4 MiB are 200,000 events, three times what waits for an index.
 */
const blocksMax = 768

interface Kept {
  checksum: number
  raw: Uint8Array
}

const keptBy = new WeakMap<Database, Map<number, Kept>>()

/** From now on this connection keeps columns; a reader's, which is asked again and again. Others may share them. */
export function keepColumns(db: Database, sharedWith = db): void {
  keptBy.set(db, keptBy.get(sharedWith) ?? new Map())
}

/** Null when the block is gone. */
export function columnsOf(db: Database, { place, checksum }: Zone): PackedColumns | null {
  const kept = keptBy.get(db)
  if (kept === undefined || checksum === undefined) return readColumns(db, place)
  const known = kept.get(place)
  if (known?.checksum === checksum) return openInflated(known.raw)
  const blob = columnsBlob(db, place)
  if (blob === null) return null
  const raw = inflateColumns(blob)
  kept.delete(place)
  kept.set(place, { checksum, raw })
  if (kept.size > blocksMax) kept.delete(kept.keys().next().value!)
  return openInflated(raw)
}
