/** The secret of the store that seeds its hashes. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../../contract/errors.ts'

export interface Seed {
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
