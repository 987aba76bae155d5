/** The hash that stands for an event's id in `event_id`. The mark of an erased id contains it, on any engine. */
import { eraseHash, type Seed } from '../../sql/events/dedupe/fingerprints.ts'

/** 16 bytes as hexadecimal digits: PostgreSQL's `uuid` without its hyphens. */
export type IdHash = (org: number, id: string) => string

const digits = 32

export function idHashes({ erased }: Pick<Seed, 'erased'>): IdHash {
  return (org, id) => eraseHash(erased, org, id).digest('hex').slice(0, digits)
}

/** The hash of a stored id, also of an erased one; null for a deleted one, which may be sent again. */
export function hashOfStored(hash: IdHash, org: number, id: string): string | null {
  if (id.startsWith('#')) return Buffer.from(id.slice(id.indexOf(' ') + 1), 'base64url').toString('hex')
  return id === '""' ? null : hash(org, id)
}

/**
 * The rows of a list of hashes. With `h = ANY (…)` every hash is looked for in all 16 partitions; LIMIT makes it a
 * lookup of one hash each, in its own.
 */
export function eachIn(hashes: string, org: string, table = 'event_id'): string {
  return `unnest(CAST(${hashes} AS uuid[])) AS listed (h) CROSS JOIN LATERAL
    (SELECT h, seq FROM ${table} WHERE org = CAST(${org} AS bigint) AND h = listed.h LIMIT 1) AS found`
}
