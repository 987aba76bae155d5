/** The hash that stands for an event's id in `event_id`, and the mark that replaces an erased id in a block. */
import type { EraseMark, Seed } from '../../sql/events/dedupe/fingerprints.ts'

/** 16 bytes of SHA-256 as hexadecimal digits: PostgreSQL's `uuid` without its hyphens. */
export type IdHash = (org: number, id: string) => string

const digits = 32

/** The secret of the seed keeps others from creating ids that collide. */
export function idHashes({ erased }: Pick<Seed, 'erased'>): IdHash {
  const secret = Buffer.from(erased).toString('hex')
  return (org, id) => Bun.SHA256.hash(`${secret} ${org} ${id}`, 'hex').slice(0, digits)
}

/** A mark begins with `#`, which no id does: ids are JSON texts. */
export function hashMarks(hash: IdHash): EraseMark {
  return (org, id) => `#${hash(org, id)}`
}

/** The hash of a stored id, also of an erased one; null for a deleted one, which may be sent again. */
export function hashOfStored(hash: IdHash, org: number, id: string): string | null {
  if (id.startsWith('#')) return id.slice(1)
  return id === '""' ? null : hash(org, id)
}
