/** Fields that are stored as numbers, their codes, and the texts of the codes. */
import { eventFields, type EventField } from '../../../contract/event-fields.ts'
import type { Database } from 'bun:sqlite'

/**
 * Every text becomes a code: 0 is "missing", 1 to 2^31 - 1 are interned in `event_term`, hashes start at 2^31. A field
 * is hashed from the start when its `termsMax` is 0, otherwise when its organization has used up its terms. Hashes can
 * collide, so a match is confirmed against the stored text (bodies.ts).
 */
export const members: readonly EventField[] = eventFields

export const member = Object.fromEntries(eventFields.map(({ name, number }) => [name, number])) as {
  [name in (typeof eventFields)[number]['name']]: number
}

/** Vendor, name and purpose together, stored as one more field so that agents are counted by vendor. */
export const agentField = 22

/** The field with a number; undefined for columns without a field. */
export function fieldAt(number: number): EventField | undefined {
  return byNumber.get(number)
}

const byNumber = new Map(members.map((field) => [field.number, field]))

/** Fields beyond whose `termsMax` an event is rejected rather than hashed (contract §4). */
export const guardRails = ['type', 'outcome', 'siteId'] as const

const hashBit = 2 ** 31

export function isHash(code: number): boolean {
  return code >= hashBit
}

/** The code of a text that is not interned. `seed` is the store's. */
export function hashCode(text: string, seed: number): number {
  return hashBit + (Bun.hash.xxHash32(text, seed) >>> 1)
}

/** The texts of a field's codes, for readers. */
export function termTexts(db: Database, org: number, index: number): Map<number, string> {
  const rows = db
    .query<{ code: number; text: string }, [number, number]>(
      'SELECT code, text FROM event_term WHERE org = ? AND member = ?',
    )
    .all(org, index)
  return new Map(rows.map(({ code, text }) => [code, text]))
}
