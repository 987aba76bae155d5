/** Filters by sealed segment: which values it may hold, so that most segments are passed without asking their index. */
import type { Database } from 'bun:sqlite'
import { members } from './members.ts'
import { segmentEvents } from './place.ts'

/*
 * A Bloom filter of the codes of one member in one segment, 10 bits a code and 5 probes: 1 % of the codes that are not
 * there seem to be. Only members that are always hashed have one: of the others most values are in most segments, while
 * a session lives in one or two. A segment without a filter (of an earlier schema) may hold anything. Erasure leaves
 * filters as they are: they promise nothing about a value that they let pass.
 */
const bitsPerCode = 10
const probes = 5

export const filteredMembers = members.flatMap(({ termsMax }, index) => (termsMax === 0 ? [index] : []))

export function filterOf(codes: Iterable<number>, count: number): Uint8Array<ArrayBuffer> {
  const bits = new Uint8Array(Math.max(8, Math.ceil((Math.min(count, segmentEvents) * bitsPerCode) / 8)))
  for (const code of codes) {
    for (let probe = 0; probe < probes; probe++) {
      const bit = bitOf(code, probe, bits.length)
      bits[bit >>> 3]! |= 1 << (bit & 7)
    }
  }
  return bits
}

export function mayHold(bits: Uint8Array, code: number): boolean {
  for (let probe = 0; probe < probes; probe++) {
    const bit = bitOf(code, probe, bits.length)
    if ((bits[bit >>> 3]! & (1 << (bit & 7))) === 0) return false
  }
  return true
}

/** Codes are hashes themselves; two odd factors make two more of one, and the probes walk from one by the other. */
function bitOf(code: number, probe: number, bytes: number): number {
  const start = Math.imul(code, 0x9e3779b1) >>> 0
  const step = (Math.imul(code, 0x85ebca6b) >>> 0) | 1
  return ((start + probe * step) >>> 0) % (bytes * 8)
}

export function writeFilter(
  db: Database,
  at: { org: number; member: number; segment: number },
  codes: Iterable<number>,
  count: number,
): void {
  db.query(
    'INSERT OR REPLACE INTO event_posting_filter (org, member, segment, bits) VALUES (?, ?, ?, ?)',
  ).run(at.org, at.member, at.segment, filterOf(codes, count))
}
