/** The 53-bit fingerprint of an event id, the mark that replaces an erased id, and the stored ids that confirm both. */
import { StoreError } from '../../../contract/errors.ts'
import { idsBefore, readBlob } from '../blocks/body-table.ts'
import { openIdFrame, type IdFrame } from '../blocks/texts.ts'
import { placeOf, segmentEvents, segmentOf } from '../blocks/block.ts'
import { readZones } from '../blocks/block-table.ts'
import type { Database } from '../../database.ts'

/** The secret of the store that seeds its hashes. */
export interface Seed {
  ids: bigint // 64 bits, for fingerprints
  values: number // 32 bits, for hashed values
  erased: Uint8Array // 32 bytes, for the hashes of erased ids
}

export function readSeed(db: Database): Seed {
  return seedOf(readSeedBytes(db))
}

/** The seed also identifies the database. */
export function readSeedBytes(db: Database): Uint8Array {
  const row = db.query<{ seed: Uint8Array }, []>('SELECT seed FROM event_seed').get()
  return row?.seed ?? new Uint8Array()
}

/** Of the row of `event_seed`. */
export function seedOf(seed: Uint8Array | undefined): Seed {
  if (seed?.byteLength !== 40) throw new StoreError('corrupt', 'the seed of the event hashes is missing')
  const view = new DataView(seed.buffer, seed.byteOffset, 8)
  return { ids: view.getBigUint64(0, true), values: view.getUint32(0, true), erased: seed.slice(8) }
}

/**
 * Seeded with a secret of the store, so that nobody outside can create ids that collide. A collision costs one read,
 * because every hit is confirmed against the id. `bits` is smaller only in tests that need collisions.
 */
export function fingerprints(seed: bigint, bits = 53): (org: number, id: string) => number {
  const seeds: bigint[] = []
  const drop = BigInt(64 - bits)
  return (org, id) => {
    const orgSeed = (seeds[org] ??= Bun.hash.wyhash(`${org}`, seed) as bigint)
    return Number((Bun.hash.wyhash(id, orgSeed) as bigint) >> drop)
  }
}

/*
 * `#fingerprint hash`: the fingerprint finds the position after a restart, and the hash, an HMAC-SHA256 with a secret
 * of the store, decides. No id looks like this, because ids are JSON texts and begin with a quote. Every engine writes
 * both parts, so that a copy into another one still knows the id.
 */
const hashBytes = 16

export type EraseMark = (org: number, id: string) => string

/** Its first 16 bytes count. The secret keeps others from creating ids that collide. */
export function eraseHasher(key: Uint8Array): (org: number, id: string) => Bun.CryptoHasher {
  const keyed = new Bun.CryptoHasher('sha256', key) // a copy saves a third of the time
  return (org, id) => keyed.copy().update(`${org} ${id}`)
}

export function eraseMarks(key: Uint8Array, fingerprint: (org: number, id: string) => number): EraseMark {
  const hashed = eraseHasher(key)
  return (org, id) => {
    const hash = hashed(org, id).digest().subarray(0, hashBytes)
    return `#${fingerprint(org, id)} ${hash.toString('base64url')}`
  }
}

/** The fingerprint of an id, also of an erased one; null for a deleted one. */
export function fingerprintOf(text: string, fingerprint: (id: string) => number): number | null {
  if (text.startsWith('#')) return Number(text.slice(1, text.indexOf(' ')))
  return text === removedId ? null : fingerprint(text)
}

/** Replaces the id of a deleted event that may be sent again. */
export const removedId = '""'

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
  const startOf = blockStarts(db)

  /** The ids show how many events the block has, which saves a read of `event_block`. */
  function open(place: number, row: { place: number; ids: Uint8Array } | null): CachedIds | null {
    const ids = row === null ? null : openIdFrame(row.ids, place - row.place)
    if (row === null || ids === null) return null
    const first = row.place + ids.firstRow
    return { first, last: first + ids.rows - 1, ids }
  }

  function openAt(place: number, start: number | null): CachedIds | null {
    const ids = start === null ? null : readBlob(db, start, 'ids')
    return start === null || ids === null ? null : open(place, { place: start, ids })
  }

  function load(org: number, seq: number): CachedIds | null {
    const place = placeOf(org, seq)
    const entry = openAt(place, startOf(org, seq)) ?? open(place, idsBefore(db, place))
    if (entry === null) return null
    cached[next] = entry
    next = (next + 1) % cachedMax
    return entry
  }

  return {
    has(org, seq, id) {
      const place = placeOf(org, seq)
      const entry = cached.find(({ first, last }) => first <= place && place <= last) ?? load(org, seq)
      return entry !== null && (entry.ids.has(id) || entry.ids.has(mark(org, id)))
    },
    forget() {
      cached = []
      next = 0
    },
  }
}

/*
 * A page of the database holds about one row of event_body, and an arrival within a block leads to the page of the next
 * block, so a search for the block before it reads one page more than its key does. The segment's row lists the keys:
 * 0.6 KB of memory per sealed segment. A block that was deleted since is not found by its key, and then searched for.
 * In a row of several blocks only the first is found without that page.
 */
const segmentsMax = 8_192

/** The key of the block that contains an arrival of a sealed segment. */
function blockStarts(db: Database): (org: number, seq: number) => number | null {
  const cached = new Map<number, Uint16Array>() // positions in the segment, by its first key
  const read = db.query<{ zones: Uint8Array }, [number, number]>(
    'SELECT zones FROM event_segment WHERE org = ? AND segment = ?',
  )

  function load(org: number, segment: number, first: number): Uint16Array | null {
    const row = read.get(org, segment)
    if (row === null) return null
    if (cached.size >= segmentsMax) cached.clear()
    const starts = Uint16Array.from(readZones(row.zones), ({ place }) => place - first)
    cached.set(first, starts)
    return starts
  }

  return (org, seq) => {
    const segment = segmentOf(seq)
    const first = placeOf(org, segment * segmentEvents)
    const starts = cached.get(first) ?? load(org, segment, first)
    if (starts === null) return null
    const position = seq - segment * segmentEvents
    let low = 0
    let high = starts.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (starts[middle]! <= position) low = middle + 1
      else high = middle
    }
    return low === 0 ? null : first + starts[low - 1]!
  }
}
