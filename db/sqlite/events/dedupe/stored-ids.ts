/** Confirms a fingerprint: whether the stored block has the same id. */
import type { Database } from 'bun:sqlite'
import type { EraseMark } from './fingerprints.ts'
import { hasId, openIdFrame, type IdFrame } from '../blocks/texts.ts'
import { placeOf } from '../blocks/block.ts'

/** Open frames of ids, about 3 KB each: a resent batch reads the same few repeatedly. */
const cachedMax = 64

interface CachedIds {
  first: number // block keys
  last: number
  ids: IdFrame
}

export interface StoredIds {
  has(org: number, seq: number, id: string): boolean
  /** Blocks were merged, deleted or rolled back. */
  forget(): void
}

/** A resend of an erased event is recognized by the mark that replaced its id. */
export function storedIds(db: Database, mark: EraseMark): StoredIds {
  let cached: CachedIds[] = []
  let next = 0
  // The ids tell how many events the block has, which saves a read of `event_block`.
  const read = db.query<{ place: number; ids: Uint8Array }, [number, number]>(
    'SELECT place, ids FROM event_body WHERE place <= ? AND place >= ? ORDER BY place DESC LIMIT 1',
  )

  function load(org: number, place: number): CachedIds | null {
    const row = read.get(place, placeOf(org, 0))
    const ids = row === null ? null : openIdFrame(row.ids, place - row.place)
    if (row === null || ids === null) return null
    const first = row.place + ids.firstRow
    const entry = { first, last: first + ids.rows - 1, ids }
    cached[next] = entry
    next = (next + 1) % cachedMax
    return entry
  }

  return {
    has(org, seq, id) {
      const place = placeOf(org, seq)
      const entry = cached.find(({ first, last }) => first <= place && place <= last) ?? load(org, place)
      return entry !== null && (hasId(entry.ids, id) || hasId(entry.ids, mark(org, id)))
    },
    forget() {
      cached = []
      next = 0
    },
  }
}
