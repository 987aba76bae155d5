/** The events of sessions by their columns, in one pass over the log or the newest of each, and their texts. */
import { hashCode, isHash, member, termTexts, trustHeights } from '../../blocks/fields.ts'
import { type OpenBlock, type Zone, readAhead, readBlock } from '../../blocks/block-table.ts'
import { endsBefore, newestFirst, newestZones, overlaps, type Span } from '../page.ts'
import { partsOf } from '../../index/walk.ts'
import { isSliceOver, type Sliced } from '../../../slices.ts'
import type { Database } from '../../../database.ts'
import type { EventPosition } from '../../../../contract/store.ts'

/** What a query of sessions needs of one snapshot of an organization's log. */
export interface LogView {
  db: Database
  org: number
  hashSeed: number
}

/** An event's position and its fields as codes (blocks/fields.ts). */
export interface SessionRow {
  at: number
  seq: number
  zone: Zone
  row: number
  siteId: number
  type: number
  outcome: number
  class: number
  vendor: number
  trust: number
}

export interface Totals {
  events: number
  firstAt: number
  lastAt: number
  sites: Map<number, EventPosition> // where each appears first
  types: Map<number, number> // event counts
  outcomes: Map<number, number>
  agent: (SessionRow & { height: number }) | null // the latest with the highest trust
}

export function emptyTotals(): Totals {
  return {
    events: 0,
    firstAt: Infinity,
    lastAt: -Infinity,
    sites: new Map(),
    types: new Map(),
    outcomes: new Map(),
    agent: null,
  }
}

/** `heightOf` ranks trusts. The caller may reuse the row. */
export function accumulate(totals: Totals, row: SessionRow, heightOf: (row: SessionRow) => number): void {
  const { at: atMs, seq } = row
  totals.events++
  if (atMs < totals.firstAt) totals.firstAt = atMs
  if (atMs > totals.lastAt) totals.lastAt = atMs
  totals.types.set(row.type, (totals.types.get(row.type) ?? 0) + 1)
  totals.outcomes.set(row.outcome, (totals.outcomes.get(row.outcome) ?? 0) + 1)
  const site = totals.sites.get(row.siteId)
  if (site === undefined) totals.sites.set(row.siteId, { occurredAtMs: atMs, seq })
  else if (atMs < site.occurredAtMs || (atMs === site.occurredAtMs && seq < site.seq)) {
    site.occurredAtMs = atMs
    site.seq = seq
  }
  if (row.class === 0 && row.vendor === 0 && row.trust === 0) return
  const height = heightOf(row)
  const { agent } = totals
  const isBetter =
    agent === null ||
    height > agent.height ||
    (height === agent.height && (atMs > agent.at || (atMs === agent.at && seq > agent.seq)))
  if (isBetter) totals.agent = { ...row, height }
}

interface Visitor {
  /** Whether events of the session in the remaining parts are needed. After false it is not called again. */
  wants(id: string, remainingSpan: Span): boolean
  /** All events of the session in one block. */
  visit(id: string, rows: SessionRow[], block: OpenBlock): void
  /** After each block. */
  block(): void
}

/** Visits blocks newest first. `visitor` is called for every block, with or without matching sessions. */
export function* visitSessions(
  log: LogView,
  ids: string[],
  ceilingSeq: number,
  visitor: Visitor,
): Sliced<void> {
  const { db, org, hashSeed } = log
  const idsByText = new Map(ids.map((id) => [JSON.stringify(id), id]))
  const clause = codesOf(ids, hashSeed)
  const bounds = { sinceMs: -Infinity, before: { occurredAtMs: Infinity, seq: 0 }, ceilingSeq }
  const parts = partsOf(db, org, [clause], 0).filter((part) => overlaps(part, bounds))
  for (const [index, part] of parts.sort(newestFirst).entries()) {
    if (isSliceOver()) yield
    for (const zone of readAhead(db, newestZones(part, bounds))) {
      const remainingSpan = newestOf(zone, parts[index + 1]) ?? zone
      for (const [text, id] of idsByText) {
        if (visitor.wants(id, remainingSpan)) continue
        idsByText.delete(text)
        forget(clause, hashSeed, id)
      }
      if (idsByText.size === 0) return
      if (isSliceOver()) yield
      const block = readBlock(db, zone)
      if (block === null) continue
      const isIncluded = (row: number) => part.mayMatch(zone, row) && block.firstSeq + row <= ceilingSeq
      visitBlock(block, zone, isIncluded, clause.codes, idsByText, visitor)
      visitor.block()
    }
  }
}

interface SessionClause {
  member: number
  codes: Set<number>
  hashed: Map<number, Set<string>> // code -> the sessions that have it, hardly ever more than one
}

function codesOf(ids: string[], hashSeed: number): SessionClause {
  const clause: SessionClause = { member: member.sessionId, codes: new Set(), hashed: new Map() }
  for (const id of ids) {
    const code = hashCode(id, hashSeed)
    clause.codes.add(code)
    clause.hashed.set(code, (clause.hashed.get(code) ?? new Set()).add(id))
  }
  return clause
}

function forget({ codes, hashed }: SessionClause, hashSeed: number, id: string): void {
  const code = hashCode(id, hashSeed)
  const sessions = hashed.get(code)
  sessions?.delete(id)
  if (sessions?.size === 0) codes.delete(code)
}

function visitBlock(
  block: OpenBlock,
  zone: Zone,
  isIncluded: (row: number) => boolean,
  codes: ReadonlySet<number>,
  idsByText: ReadonlyMap<string, string>,
  visitor: Visitor,
): void {
  const sessions = block.codes(member.sessionId)
  if (!sessions.some((code) => codes.has(code))) return
  const types = block.codes(member.type)
  const sites = block.codes(member.siteId)
  const outcomes = block.codes(member.outcome)
  const classes = block.codes(member.class)
  const vendors = block.codes(member.vendor)
  const trusts = block.codes(member.trust)
  const rowsById = new Map<string, SessionRow[]>()
  for (let row = 0; row < block.rows; row++) {
    if (!codes.has(sessions[row]!) || types[row] === 0 || !isIncluded(row)) continue
    const id = idsByText.get(block.session(row)) // a code alone is ambiguous
    if (id === undefined) continue
    const sessionRow: SessionRow = {
      at: block.at(row),
      seq: block.firstSeq + row,
      zone,
      row,
      siteId: sites[row]!,
      type: types[row]!,
      outcome: outcomes[row]!,
      class: classes[row]!,
      vendor: vendors[row]!,
      trust: trusts[row]!,
    }
    const rows = rowsById.get(id)
    if (rows === undefined) rowsById.set(id, [sessionRow])
    else rows.push(sessionRow)
  }
  for (const [id, rows] of rowsById) visitor.visit(id, rows, block)
}

export const newestRowFirst = (a: SessionRow, b: SessionRow): number => b.at - a.at || b.seq - a.seq

export interface NewestRows {
  rows: SessionRow[] // newest first by (occurredAt, arrival), at most `eventsMax`
  isCut: boolean
}

/** The newest events of one session. Skips what is older than all collected events. */
export function* newestOfSession(
  log: LogView,
  id: string,
  ceilingSeq: number,
  eventsMax: number,
): Sliced<NewestRows> {
  let rows: SessionRow[] = []
  let oldest: EventPosition | null = null // of the collected ones, once there are more than enough

  function cut(): void {
    rows.sort(newestRowFirst)
    if (rows.length <= eventsMax) return
    rows.length = eventsMax
    const { at: atMs, seq } = rows[eventsMax - 1]!
    oldest = { occurredAtMs: atMs, seq }
  }

  yield* visitSessions(log, [id], ceilingSeq, {
    wants: (_, remainingSpan) => oldest === null || !endsBefore(remainingSpan, oldest),
    visit(_, blockRows) {
      for (const row of blockRows) if (oldest === null || isAfter(row, oldest)) rows.push(row)
      if (rows.length > (oldest === null ? eventsMax : eventsMax * 1.5)) cut()
    },
    block: () => {},
  })
  cut()
  return { rows, isCut: oldest !== null }
}

export function isAfter(
  { at: atMs, seq }: SessionRow,
  { occurredAtMs, seq: positionSeq }: EventPosition,
): boolean {
  return atMs > occurredAtMs || (atMs === occurredAtMs && seq > positionSeq)
}

/** The texts of the codes in sessions' events, cached for one query. */
type Name = 'siteId' | 'type' | 'outcome' | 'class' | 'vendor' | 'trust'

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
  const heightOf = trustHeights(db, org)

  function term(name: Name, code: number): string {
    let fieldTexts = texts.get(name)
    if (fieldTexts === undefined) texts.set(name, (fieldTexts = termTexts(db, org, member[name])))
    return fieldTexts.get(code) ?? ''
  }

  function readText(name: Name, row: SessionRow): string | null {
    if (isHash(row[name])) return readBlock(db, row.zone)?.hashedText(member[name], row.row) ?? null
    return row[name] === 0 ? null : term(name, row[name]) || null
  }

  return {
    term,
    of: readText,
    height: (row) => heightOf(row.trust, () => readText('trust', row)),
  }
}

export function newestOf(zone: Span | undefined, part: Span | undefined): Span | null {
  if (zone === undefined || part === undefined) return zone ?? part ?? null
  return newestFirst(zone, part) <= 0 ? zone : part
}
