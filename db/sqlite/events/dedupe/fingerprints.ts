/** The 53-bit fingerprint of an event id, and the marks that replace erased ids. */
import { StoreError } from '../../../contract/errors.ts'
import type { Database } from 'bun:sqlite'

/** The secret of the store that seeds its hashes. */
interface Seed {
  ids: bigint // 64 bits, for fingerprints
  values: number // 32 bits, for hashed values
  erased: Uint8Array // 32 bytes, for the hashes of erased ids
}

export function readSeed(db: Database): Seed {
  const row = db.query<{ seed: Uint8Array }, []>('SELECT seed FROM event_seed').get()
  if (row?.seed.byteLength !== 40) throw new StoreError('corrupt', 'the seed of the event hashes is missing')
  const view = new DataView(row.seed.buffer, row.seed.byteOffset, 8)
  return { ids: view.getBigUint64(0, true), values: view.getUint32(0, true), erased: row.seed.slice(8) }
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
 * of the store, decides. No id looks like this, because ids are JSON texts and begin with a quote.
 */
const hashBytes = 16

export type EraseMark = (org: number, id: string) => string

export function eraseMarks(key: Uint8Array, fingerprint: (org: number, id: string) => number): EraseMark {
  return (org, id) => {
    const hash = new Bun.CryptoHasher('sha256', key).update(`${org} ${id}`).digest().subarray(0, hashBytes)
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
