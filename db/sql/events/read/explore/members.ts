/** Members of events' metadata as columns of codes, cached for sealed segments, because reading texts takes long. */
import type { Database } from '../../../database.ts'
import type { OpenBlock, Zone } from '../../blocks/block-table.ts'
import { type Dictionary, makeDictionary, memberNumber, memberText, memberTexts } from './metadata.ts'

/*
 * Exploring by one member means asking for it again and again: with another filter, range or measure. Readers cache the
 * codes of its values by block, two bytes per event. Blocks of sealed segments are final, so the cache is never stale:
 * an erased event has type 0, and no number is used twice. Values of erased events may stay in memory until they are
 * evicted.
 */
const bytesMax = 24 * 1024 * 1024
const blockBytes = 96
const notRead = 0xffff

interface Block {
  codes: Uint16Array
  left: number // rows that were not read
}

interface Path {
  isCached: boolean // false when it was evicted while a query still reads it
  bytes: number // of its blocks
  dictionary: Dictionary
  blocks: Map<number, Block> // by their key
}

/** Least recently used first. */
type Cache = Map<string, Path>

const caches = new WeakMap<Database, Cache>()

/** Enables the cache on a reader's connection. Other connections may share it. */
export function cacheMembers(db: Database, sharedWith = db): void {
  caches.set(db, caches.get(sharedWith) ?? new Map<string, Path>())
}

function pathOf(cache: Cache, key: string): Path {
  const made = { isCached: true, bytes: 0, dictionary: makeDictionary(), blocks: new Map<number, Block>() }
  const path = cache.get(key) ?? made
  cache.delete(key)
  cache.set(key, path)
  return path
}

/** Null when the block does not fit beside the paths of this query. */
function blockOf(cache: Cache, path: Path, place: number, rows: number): Block | null {
  const known = path.blocks.get(place)
  if (known !== undefined) return known
  const bytes = rows * 2 + blockBytes
  if (!path.isCached || !reserve(cache, path, bytes)) return null
  const block = { codes: new Uint16Array(rows).fill(notRead), left: rows }
  path.blocks.set(place, block)
  path.bytes += bytes
  return block
}

/** Evicts the paths that were read longest ago; false when only this one's blocks are left and the cache is full. */
function reserve(cache: Cache, path: Path, bytes: number): boolean {
  let held = bytes
  for (const one of cache.values()) held += one.bytes + one.dictionary.size()
  for (const [key, oldest] of cache) {
    if (held <= bytesMax) break
    if (oldest === path) return false
    cache.delete(key)
    oldest.isCached = false
    held -= oldest.bytes + oldest.dictionary.size()
  }
  return true
}

/** The requested members of the rows of one block after the other, one slot per path. */
export interface Members {
  /** Whether the block can be read without its texts. */
  isKnown(zone: Zone): boolean
  open(block: OpenBlock, zone: Zone): void
  /** Rows of a block in ascending order. */
  read(row: number): void
  /** The code of the value, which is the same for equal JSON texts; 0: missing; -1: no code. */
  code(slot: number): number
  /** The value as text; null when it is missing, null or ''. */
  text(slot: number): string | null
  /** The value as a whole number from 0 up; null for anything else. */
  number(slot: number): number | null
}

export function readMembers(db: Database, org: number, paths: readonly string[]): Members {
  const cache = caches.get(db) ?? new Map<string, Path>()
  const columns = paths.map((path) => pathOf(cache, `${org} ${path}`))
  const texts = memberTexts(paths)
  const codes = paths.map(() => 0)
  let known: (Block | null)[] = []
  let block: OpenBlock | null = null

  return {
    isKnown: ({ place, checksum }) =>
      checksum === undefined && columns.every(({ blocks }) => blocks.get(place)?.left === 0),
    open(opened, { place, checksum }) {
      block = opened
      // Only zones of sealed segments lack a checksum.
      known = columns.map((path) =>
        checksum === undefined ? blockOf(cache, path, place, opened.rows) : null,
      )
    },
    read(row) {
      let isComplete = true
      for (let slot = 0; slot < codes.length; slot++) {
        codes[slot] = known[slot]?.codes[row] ?? notRead
        if (codes[slot] === notRead) isComplete = false
      }
      if (isComplete) return
      texts.read(block!, row)
      for (let slot = 0; slot < codes.length; slot++) {
        if (codes[slot] !== notRead) continue
        const code = texts.code(slot, columns[slot]!.dictionary)
        codes[slot] = code
        const column = known[slot]
        if (column == null || code < 0) continue
        column.codes[row] = code
        column.left--
      }
    },
    code: (slot) => codes[slot]!,
    text(slot) {
      const code = codes[slot]!
      return code < 0 ? memberText(texts.json(slot)) : columns[slot]!.dictionary.texts[code]!
    },
    number(slot) {
      const code = codes[slot]!
      return code < 0 ? memberNumber(texts.json(slot)) : columns[slot]!.dictionary.numbers[code]!
    },
  }
}
