/** Groups the newest matching events by their values, for a vendor's details and the identities on Auth. */
import { type OpenBlock, storedLastSeq } from '../blocks/block-table.ts'
import type { Database } from '../../database.ts'
import type { EventPosition, Top, TopField, TopQuery } from '../../../contract/store.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { isHash, member, termTexts } from '../blocks/fields.ts'
import { fieldClause, filterClauses } from '../index/filter-codes.ts'
import { newestRows, type NewestRows } from './page.ts'

/** Rows per walk. More would keep more blocks open at a time. */
const rowsPerWalk = 1_000

interface Group {
  values: (string | null)[]
  count: number
  lastMs: number
  sum?: number
}

/** Reads values from columns. Fields that have none parse the event, on the reader thread. */
export function* readTop(db: Database, org: number, hashSeed: number, query: TopQuery): Sliced<Top> {
  const { filter, also = [], eventsMax, groups, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const indexed = filterClauses(db, org, hashSeed, filter)
  const alsoClauses = also.map(({ by: field, values }) =>
    fieldClause(db, org, hashSeed, member[field], values),
  )
  const clauses = { indexed, clauses: [...indexed, ...alsoClauses] }
  const ceilingSeq = storedLastSeq(db, org)
  const valuesOf = valueReader(db, org)
  const counts = groups.map(() => new Map<string, Group>())
  const top = noTop(query)
  let beforePosition: EventPosition | null = null
  for (;;) {
    const limit = Math.min(rowsPerWalk, eventsMax - top.events)
    const page: NewestRows = yield* newestRows(
      db,
      org,
      clauses,
      { filter, before: beforePosition, limit },
      ceilingSeq,
    )
    const { rows, next } = page
    for (const { at: atMs, block, row } of rows) {
      if (isSliceOver()) yield
      const { read, bytes } = valuesOf(block, row)
      for (const [index, { by: fields, sum }] of groups.entries()) {
        const group = count(counts[index]!, fields.map(read), atMs)
        if (sum !== undefined) group.sum = (group.sum ?? 0) + bytes()
      }
    }
    top.newestMs ??= rows[0]?.at ?? null
    top.oldestMs = rows.at(-1)?.at ?? top.oldestMs
    top.events += rows.length
    top.complete = next === null
    beforePosition = next
    if (next === null || top.events >= eventsMax || performance.now() > endMs) break
  }
  top.groups = counts.map((groupsByKey, index) => ({
    distinct: groupsByKey.size,
    rows: [...groupsByKey.values()].sort(mostFrequentFirst).slice(0, groups[index]!.max),
  }))
  return top
}

/** The result for an organization without events. */
export function noTop({ groups }: TopQuery): Top {
  const emptyGroups = groups.map(() => ({ distinct: 0, rows: [] }))
  return { events: 0, complete: true, newestMs: null, oldestMs: null, groups: emptyGroups }
}

function count(groups: Map<string, Group>, values: (string | null)[], atMs: number): Group {
  const key = values.length === 1 && values[0] !== null ? values[0]! : JSON.stringify(values)
  const existingGroup = groups.get(key)
  if (existingGroup !== undefined) {
    existingGroup.count++ // events arrive newest first
    return existingGroup
  }
  const group: Group = { values, count: 1, lastMs: atMs }
  groups.set(key, group)
  return group
}

function mostFrequentFirst(a: Group, b: Group): number {
  if (a.count !== b.count) return b.count - a.count
  const differenceIndex = a.values.findIndex((value, index) => value !== b.values[index])
  return (a.values[differenceIndex] ?? '') < (b.values[differenceIndex] ?? '') ? -1 : 1
}

interface RowReader {
  read(field: TopField): string | null
  bytes(): number // of the response; 0 if the event has none
}

function valueReader(db: Database, org: number): (block: OpenBlock, row: number) => RowReader {
  const texts = new Map<number, Map<number, string>>()
  const textsOf = (field: number) => {
    const fieldTexts = texts.get(field) ?? termTexts(db, org, field)
    texts.set(field, fieldTexts)
    return fieldTexts
  }
  return (block, row) => {
    let parsed: ParsedFields | null = null
    const json = (): ParsedFields => (parsed ??= JSON.parse(block.event(row).json) as ParsedFields)
    const read = (field: TopField): string | null => {
      if (field === 'userAgent' || field === 'error' || field === 'status') return parsedText(field, json())
      if (field === 'sessionId') return JSON.parse(block.session(row)) as string
      const code = block.code(member[field], row)
      // Before judges were recorded, the appliance's evidence was in the text alone.
      if (field === 'evidence' && code === 0 && block.code(member.judgedBy, row) === 0)
        return parsedText(field, json())
      if (code === 0) return null
      return isHash(code) ? block.hashedText(member[field], row) : (textsOf(member[field]).get(code) ?? null)
    }
    const bytes = (): number => {
      const value = json().metadata?.bytes
      return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0
    }
    return { read, bytes }
  }
}

interface ParsedFields {
  error?: unknown
  agent?: { userAgent?: unknown; evidence?: unknown } | null
  metadata?: { status?: unknown; bytes?: unknown } | null
}

function parsedText(
  field: 'userAgent' | 'error' | 'evidence' | 'status',
  { error, agent, metadata }: ParsedFields,
): string | null {
  if (field === 'status') return Number.isSafeInteger(metadata?.status) ? `${metadata?.status}` : null
  if (field === 'evidence') return agent?.evidence == null ? null : JSON.stringify(agent.evidence)
  return textOrNull(field === 'error' ? error : agent?.userAgent)
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
