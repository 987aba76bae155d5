/** The hash that stands for an event's id in `event_id`. The mark of an erased id contains it, on any engine. */
import { eraseHasher, type Seed } from '../../sql/events/dedupe/fingerprints.ts'

/** 16 bytes as hexadecimal digits: PostgreSQL's `uuid` without its hyphens. */
export type IdHash = (org: number, id: string) => string

/** 2 bytes of the organization's number, so that its ids are next to each other in the index, and 14 of the hash. */
const orgDigits = 4
const digits = 28

const prefixOf = (org: number) => org.toString(16).padStart(orgDigits, '0')

export function idHashes({ erased }: Pick<Seed, 'erased'>): IdHash {
  const hashed = eraseHasher(erased)
  return (org, id) => prefixOf(org) + hashed(org, id).digest('hex').slice(0, digits)
}

/** The hash of a stored id, also of an erased one; null for a deleted one, which may be sent again. */
export function hashOfStored(hash: IdHash, org: number, id: string): string | null {
  if (id === '""') return null
  if (!id.startsWith('#')) return hash(org, id)
  const marked = Buffer.from(id.slice(id.indexOf(' ') + 1), 'base64url').toString('hex')
  return prefixOf(org) + marked.slice(0, digits)
}

/** A condition for the rows of an organization, whose number is a parameter. */
export function ofOrg(org: string): string {
  const filled = (digit: string) =>
    `CAST(lpad(to_hex(CAST(${org} AS bigint)), ${orgDigits}, '0') || repeat('${digit}', ${digits}) AS uuid)`
  return `h BETWEEN ${filled('0')} AND ${filled('f')}`
}

/**
 * The rows of a list of hashes. With `h = ANY (…)` every hash is looked for in all 16 partitions; LIMIT makes it a
 * lookup of one hash each, in its own.
 */
export function eachIn(hashes: string, table = 'event_id'): string {
  return `unnest(CAST(${hashes} AS uuid[])) AS listed (h) CROSS JOIN LATERAL
    (SELECT h, seq FROM ${table} WHERE h = listed.h LIMIT 1) AS found`
}
