/** Translates the texts of an event filter to the codes in blocks and segment indexes. */
import type { Database } from '../../database.ts'
import { filterableFields } from '../../../contract/event-fields.ts'
import { keylessIds } from '../../../contract/provenance.ts'
import type { EventFilter } from '../../../contract/store.ts'
import { arrivalField, hashCode, member, fieldAt, termTexts } from '../blocks/fields.ts'
import type { Clause } from '../blocks/clause.ts'
import { arrivalsOfNetworks } from '../blocks/networks.ts'

/** The clauses of a filter, all of which must match. One without codes means that nothing matches. */
export function filterClauses(db: Database, org: number, hashSeed: number, filter: EventFilter): Clause[] {
  const clauses = filterableFields.flatMap(({ filter: list, number }) => {
    const texts = filter[list]
    if (texts === undefined || texts.length === 0) return []
    return [fieldClause(db, org, hashSeed, number, texts)]
  })
  const { judges = [], verdicts = [], networks = [] } = filter
  // Events without a judge have a verdict of before, or none.
  if (judges.includes('unknown') && !judges.includes('') && verdicts.length === 0)
    clauses.push(presentClause(db, org, member.verdict))
  if (networks.length > 0) clauses.push(arrivalClause(arrivalsOfNetworks(db, org, networks)))
  return clauses
}

/** The field must have a value; of those beyond its limit, which are few, none counts. */
function presentClause(db: Database, org: number, index: number): Clause {
  return { member: index, codes: new Set(termTexts(db, org, index).keys()), hashed: new Map() }
}

function arrivalClause(arrivals: Float64Array): Clause {
  return { member: arrivalField, codes: new Set(), hashed: new Map(), arrivals }
}

/** The field must have one of the texts; '' matches a missing one, which of keys is also that of a file. */
export function fieldClause(
  db: Database,
  org: number,
  hashSeed: number,
  index: number,
  texts: string[],
): Clause {
  const codes = new Set<number>()
  const hashed = new Map<number, Set<string>>()
  const isKeyless = index === member.key && texts.includes('')
  for (const text of isKeyless ? [...texts, ...keylessIds] : texts) {
    if (text === '' || (index === member.judgedBy && text === 'unknown')) codes.add(0)
    else if (index === member.type && text.endsWith('.*')) addPrefix(db, org, text.slice(0, -1), codes)
    else {
      const code = codeOfTerm(db, org, index, text) ?? hashCode(text, hashSeed)
      if (fieldAt(index)!.termsMax > 0 && codeOfTerm(db, org, index, text) !== null) codes.add(code)
      else hashed.set(code, (hashed.get(code) ?? new Set()).add(text))
    }
  }
  for (const code of hashed.keys()) codes.add(code)
  return { member: index, codes, hashed }
}

/** The codes of ingest keys; none for a key that never sent an event. */
export function keyCodes(db: Database, org: number, hashSeed: number, keys: readonly string[]): Set<number> {
  return new Set(keys.map((key) => codeOfTerm(db, org, member.key, key) ?? hashCode(key, hashSeed)))
}

/** The code of an interned text; null when the organization has no such term. */
export function codeOfTerm(db: Database, org: number, index: number, text: string): number | null {
  const row = db
    .query<{ code: number }, [number, number, string]>(
      'SELECT code FROM event_term WHERE org = ? AND member = ? AND text = ?',
    )
    .get(org, index, text)
  return row?.code ?? null
}

/** Types that start with `prefix`, which ends in a dot. */
function addPrefix(db: Database, org: number, prefix: string, codes: Set<number>): void {
  const rows = db
    .query<{ text: string; code: number }, [number, number]>(
      'SELECT text, code FROM event_term WHERE org = ? AND member = ?',
    )
    .all(org, member.type)
  for (const { text, code } of rows) if (text.startsWith(prefix)) codes.add(code)
}
