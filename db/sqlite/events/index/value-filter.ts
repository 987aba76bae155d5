/** Bloom filters of the values in a sealed segment, so that most segments are skipped without reading their index. */
import { members } from '../blocks/fields.ts'
import { segmentEvents } from '../blocks/row-key.ts'
import type { Database } from 'bun:sqlite'

/*
 * A Bloom filter of the codes of one field in one segment, 10 to 20 bits per code and 5 probes: at most 1 % false hits.
 * Its length is a power of two, because a page of sessions probes it thousands of times. Only fields that are always
 * hashed have one: most values of other fields are in most segments, while a session is in one or two. A segment
 * without a filter (of an earlier schema) may hold anything. Erasure does not change filters, because a hit promises
 * nothing.
 */
const bitsPerCode = 10
const bytesMin = 8
const probes = 5

export const filteredFields = members.flatMap(({ termsMax, number }) => (termsMax === 0 ? [number] : []))

export function filterOf(codes: Iterable<number>, count: number): Uint8Array<ArrayBuffer> {
  let bytes = bytesMin
  while (bytes * 8 < Math.min(count, segmentEvents) * bitsPerCode) bytes *= 2
  const bits = new Uint8Array(bytes)
  for (const code of codes) {
    for (let probe = 0, bit = start(code); probe < probes; probe++, bit = (bit + step(code)) | 0) {
      const at = bit & (bytes * 8 - 1)
      bits[at >>> 3]! |= 1 << (at & 7)
    }
  }
  return bits
}

export function mayHold(bits: Uint8Array, code: number): boolean {
  const mask = bits.length * 8 - 1
  const distance = step(code)
  for (let probe = 0, bit = start(code); probe < probes; probe++, bit = (bit + distance) | 0) {
    const at = bit & mask
    if ((bits[at >>> 3]! & (1 << (at & 7))) === 0) return false
  }
  return true
}

/**
 * Codes are hashes already. Two odd factors make two more of each, and the probes start at one and advance by the
 * other.
 */
function start(code: number): number {
  const mixed = Math.imul(code, 0x9e3779b1)
  return mixed ^ (mixed >>> 15)
}

function step(code: number): number {
  const mixed = Math.imul(code, 0x85ebca6b)
  return (mixed ^ (mixed >>> 13)) | 1
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
