/** The members of an event that are kept as numbers beside its text, in the order of their columns. */
import type { EventFilter, EventRecord } from '../../store.ts'

/**
 * Every text becomes a code: 0 is "missing", 1 to 2^31 - 1 are interned in `event_term`, and from 2^31 on stand hashes.
 * A member is hashed from the first to the last when `termsMax` is 0, or as soon as its organization has used up its
 * terms. A hash names its value only almost surely, so whoever finds one confirms it against the kept text (bodies.ts).
 */
export const members = [
  { name: 'type', filter: 'types', termsMax: 1_000 },
  { name: 'outcome', filter: 'outcomes', termsMax: 100 },
  { name: 'siteId', filter: 'siteIds', termsMax: 1_000 },
  { name: 'sessionId', filter: 'sessionIds', termsMax: 0 },
  { name: 'class', filter: 'classes', termsMax: 4_096 },
  { name: 'vendor', filter: 'vendors', termsMax: 4_096 },
  { name: 'trust', filter: 'trusts', termsMax: 4_096 },
  { name: 'tool', filter: 'tools', termsMax: 4_096 },
  { name: 'protocol', filter: 'protocols', termsMax: 4_096 },
  { name: 'subject', filter: 'subjects', termsMax: 0 },
  { name: 'decision', filter: 'decisions', termsMax: 4_096 },
  { name: 'ruleId', filter: null, termsMax: 4_096 },
  { name: 'reason', filter: null, termsMax: 4_096 },
  { name: 'page', filter: null, termsMax: 4_096 },
] as const satisfies readonly {
  name: keyof EventRecord
  filter: keyof EventFilter | null
  termsMax: number
}[]

export const member = Object.fromEntries(members.map(({ name }, index) => [name, index])) as {
  [name in (typeof members)[number]['name']]: number
}

/** Members beyond whose `termsMax` an event is refused rather than hashed (contract §4). */
export const guardRails = ['type', 'outcome', 'siteId'] as const

const hashBit = 2 ** 31

export function isHash(code: number): boolean {
  return code >= hashBit
}

/** The code of a text that is not interned; `seed` is the store's. */
export function hashCode(text: string, seed: number): number {
  return hashBit + (Bun.hash.xxHash32(text, seed) >>> 1)
}
