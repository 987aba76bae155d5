/** The texts of the codes in sessions' events, cached for one query. */
import { isHash, member, termTexts } from '../../blocks/fields.ts'
import { readBlock } from '../../blocks/open-block.ts'
import type { LogView } from './candidates.ts'
import type { SessionRow } from './rows.ts'

type Name = 'siteId' | 'type' | 'outcome' | 'class' | 'vendor' | 'trust'

/** Known trusts, ascending. Any other ranks below them. */
export const ladder: readonly string[] = ['detected', 'declared', 'verified', 'linked']

export interface SessionTexts {
  /** Of a field that always has a term. */
  term(name: Name, code: number): string
  /** Of a field of an event; null when it is missing. */
  of(name: Name, row: SessionRow): string | null
  /** The rank of an event's trust. */
  height(row: SessionRow): number
}

export function sessionTexts({ db, org }: LogView): SessionTexts {
  const texts = new Map<Name, Map<number, string>>()
  const heights = new Map<number, number>()

  function term(name: Name, code: number): string {
    let known = texts.get(name)
    if (known === undefined) texts.set(name, (known = termTexts(db, org, member[name])))
    return known.get(code) ?? ''
  }

  function of(name: Name, row: SessionRow): string | null {
    if (isHash(row[name])) return readBlock(db, row.zone)?.hashedText(member[name], row.row) ?? null
    return row[name] === 0 ? null : term(name, row[name]) || null
  }

  return {
    term,
    of,
    height(row) {
      const known = heights.get(row.trust)
      if (known !== undefined) return known
      const height = ladder.indexOf(of('trust', row) ?? '')
      if (!isHash(row.trust)) heights.set(row.trust, height) // two texts may share a hash
      return height
    },
  }
}
