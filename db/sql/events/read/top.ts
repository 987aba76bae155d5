/** Groups the newest matching events by their values, for a vendor's details and the identities on Auth. */
import { type OpenBlock, storedLastSeq } from '../blocks/block-table.ts'
import type { Database } from '../../database.ts'
import type { EventPosition, Top, TopField, TopQuery } from '../../../contract/store.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'
import { isHash, member, termTexts } from '../blocks/fields.ts'
import { fieldClause, filterClauses } from '../index/filter-codes.ts'
import { newestRows, type NewestRows } from './page.ts'

/** Rows per walk. More would keep more blocks open at a time. */
const rowsPerWalk = 1_000

interface Group {
  values: (string | null)[]
  count: number
  lastMs: number
}

/** Reads values from columns. Fields that have none parse the event, on the reader thread. */
export function* readTop(db: Database, org: number, hashSeed: number, query: TopQuery): Sliced<Top> {
  const { filter, also = [], eventsMax, groups, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const indexed = filterClauses(db, org, hashSeed, filter)
  const others = also.map(({ by, values }) => fieldClause(db, org, hashSeed, member[by], values))
  const clauses = { indexed, clauses: [...indexed, ...others] }
  const ceilingSeq = storedLastSeq(db, org)
  const valuesOf = valueReader(db, org)
  const counts = groups.map(() => new Map<string, Group>())
  const top = noTop(query)
  let before: EventPosition | null = null
  for (;;) {
    const limit = Math.min(rowsPerWalk, eventsMax - top.events)
    const found: NewestRows = yield* newestRows(db, org, clauses, { filter, before, limit }, ceilingSeq)
    const { rows, next } = found
    for (const { at, block, row } of rows) {
      if (isSliceOver()) yield
      const read = valuesOf(block, row)
      for (const [index, { by }] of groups.entries()) count(counts[index]!, by.map(read), at)
    }
    top.newestMs ??= rows[0]?.at ?? null
    top.oldestMs = rows.at(-1)?.at ?? top.oldestMs
    top.events += rows.length
    top.complete = next === null
    before = next
    if (next === null || top.events >= eventsMax || performance.now() > endMs) break
  }
  top.groups = counts.map((one, index) => ({
    distinct: one.size,
    rows: [...one.values()].sort(mostFrequentFirst).slice(0, groups[index]!.max),
  }))
  return top
}

/** The result for an organization without events. */
export function noTop({ groups }: TopQuery): Top {
  const none = groups.map(() => ({ distinct: 0, rows: [] }))
  return { events: 0, complete: true, newestMs: null, oldestMs: null, groups: none }
}

function count(groups: Map<string, Group>, values: (string | null)[], at: number): void {
  const key = values.length === 1 && values[0] !== null ? values[0]! : JSON.stringify(values)
  const known = groups.get(key)
  if (known === undefined) groups.set(key, { values, count: 1, lastMs: at })
  else known.count++ // events arrive newest first
}

function mostFrequentFirst(a: Group, b: Group): number {
  if (a.count !== b.count) return b.count - a.count
  const at = a.values.findIndex((value, index) => value !== b.values[index])
  return (a.values[at] ?? '') < (b.values[at] ?? '') ? -1 : 1
}

type ReadValue = (field: TopField) => string | null

function valueReader(db: Database, org: number): (block: OpenBlock, row: number) => ReadValue {
  const texts = new Map<number, Map<number, string>>()
  const textsOf = (field: number) => {
    const known = texts.get(field) ?? termTexts(db, org, field)
    texts.set(field, known)
    return known
  }
  return (block, row) => {
    let json: ParsedFields | null = null
    return (field) => {
      if (field === 'userAgent' || field === 'error' || field === 'evidence') {
        json ??= JSON.parse(block.event(row).json) as ParsedFields
        return parsedText(field, json)
      }
      if (field === 'sessionId') return JSON.parse(block.session(row)) as string
      const code = block.code(member[field], row)
      if (code === 0) return null
      return isHash(code) ? block.hashedText(member[field], row) : (textsOf(member[field]).get(code) ?? null)
    }
  }
}

interface ParsedFields {
  error?: unknown
  agent?: { userAgent?: unknown; evidence?: unknown } | null
}

function parsedText(
  field: 'userAgent' | 'error' | 'evidence',
  { error, agent }: ParsedFields,
): string | null {
  if (field !== 'evidence') return textOrNull(field === 'error' ? error : agent?.userAgent)
  return agent?.evidence == null ? null : JSON.stringify(agent.evidence)
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
