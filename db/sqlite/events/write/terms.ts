/** The texts of an organization that have codes, kept in memory by the writer and in `event_term`. */
import type { Database } from 'bun:sqlite'
import type { EventRecord, GuardRail } from '../../../contract/store.ts'
import { columnCount } from '../blocks/block.ts'
import { guardRails, hashCode, member, memberAt } from '../blocks/fields.ts'

const otherTermsMax = 4_096 // ingest keys, agents

export interface Terms {
  /** The code of a text; interns it, in the open transaction, while there is room, and hashes it afterwards. */
  code(member: number, text: string): number
  /** The first member of the event that would be one value too many, or null. */
  broken(event: EventRecord): GuardRail | null
}

/** `member` in the table is one of `termMembers`. */
export function openTerms(db: Database, org: number, hashSeed: number): Terms {
  const codes = Array.from({ length: columnCount }, () => new Map<string, number>())
  const highest = codes.map(() => 0)
  const rows = db.query<{ member: number; text: string; code: number }, [number]>(
    'SELECT member, text, code FROM event_term WHERE org = ?',
  )
  for (const { member, text, code } of rows.all(org)) {
    codes[member]?.set(text, code)
    highest[member] = Math.max(highest[member] ?? 0, code)
  }
  const termsMax = codes.map((_, index) => memberAt(index)?.termsMax ?? otherTermsMax)
  const insert = db.query('INSERT INTO event_term (org, member, text, code) VALUES (?, ?, ?, ?)')

  return {
    code(member, text) {
      const known = codes[member]!
      const found = known.get(text)
      if (found !== undefined) return found
      if (known.size >= termsMax[member]!) return hashCode(text, hashSeed)
      const code = ++highest[member]!
      insert.run(org, member, text, code)
      known.set(text, code)
      return code
    },
    broken(event) {
      for (const name of guardRails) {
        const known = codes[member[name]]!
        if (known.size >= termsMax[member[name]]! && !known.has(event[name])) return name
      }
      return null
    },
  }
}
