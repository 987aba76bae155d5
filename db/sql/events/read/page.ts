/** Pages of events in order of time, and searches of their texts in bounded steps, for traces and Logs. */
import { type OpenBlock, type Zone, bothAhead, readBlock } from '../blocks/block-table.ts'
import { textsAhead } from '../blocks/read-ahead.ts'
import { placeOf, seqOf } from '../blocks/block.ts'
import { textFinder } from '../blocks/texts.ts'
import { partGroups, partsOf, readZonesAhead, type Part } from '../index/walk.ts'
import { provenanceReader } from './provenance.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import type { Database } from '../../database.ts'
import type {
  EventFilter,
  EventPage,
  EventPageQuery,
  EventPosition,
  StoredEvent,
} from '../../../contract/store.ts'
import type { Clause } from '../blocks/clause.ts'

interface Found {
  at: number
  seq: number
  block: OpenBlock
  row: number
}

export interface Bounds {
  sinceMs: number // inclusive
  before: EventPosition // exclusive
  ceilingSeq: number // inclusive
}

export function* readPage(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: EventPageQuery,
  ceilingSeq: number,
): Sliced<EventPage> {
  if (query.filter.text !== undefined) return yield* searchPage(db, org, clauses, query, ceilingSeq)
  const { rows, next } = yield* newestRows(db, org, { indexed: clauses, clauses }, query, ceilingSeq)
  return yield* opened(db, org, rows, { next, ceilingSeq }, query)
}

export interface NewestRows {
  rows: Found[]
  next: EventPosition | null
}

/**
 * Reads parts, and the blocks in each, newest first by (time, arrival). Once the page is full, the first block that
 * ends before its last event ends the search, also when millions of events have the same time. Rows must match
 * `clauses`; `indexed` are those of them that a segment index covers.
 */
export function* newestRows(
  db: Database,
  org: number,
  { indexed, clauses }: { indexed: readonly Clause[]; clauses: readonly Clause[] },
  query: Pick<EventPageQuery, 'filter' | 'before' | 'limit'>,
  ceilingSeq: number,
): Sliced<NewestRows> {
  const bounds = boundsOf(query, ceilingSeq)
  const best = newestOf(query.limit + 1)
  const parts = partsOf(db, org, indexed, 0).filter((part) => overlaps(part, bounds))
  // A hash that an index names is compared with the text of almost every row that has it.
  const isHashed = indexed.some(({ hashed }) => hashed.size > 0)
  for (const group of partGroups(db, parts.sort(newestFirst))) {
    if (best.isFull() && endsBefore(group[0]!, best.oldest())) break
    if (isSliceOver()) yield
    readZonesAhead(group)
    const zones = group.flatMap((part) => newestZones(part, bounds).map((zone) => ({ ...zone, part })))
    const needsTexts = ({ part }: { part: Part }) => isHashed && part.segment !== null
    for (const zone of bothAhead(db, zones.sort(newestFirst), needsTexts)) {
      if (best.isFull() && endsBefore(zone, best.oldest())) break
      if (isSliceOver()) yield
      scanBlock(db, zone.part, zone, clauses, bounds, best.add)
    }
  }
  const sortedRows = best.sorted()
  const last = sortedRows[query.limit - 1]
  const next =
    sortedRows.length > query.limit && last !== undefined ? { occurredAtMs: last.at, seq: last.seq } : null
  return { rows: sortedRows.slice(0, query.limit), next }
}

/** Inflates the texts of the rows up to the byte limit. The page ends before the first one that exceeds it. */
function* opened(
  db: Database,
  org: number,
  rows: Found[],
  { next, ceilingSeq }: Pick<EventPage, 'next' | 'ceilingSeq'>,
  { bytesMax = Infinity, provenance = false }: Pick<EventPageQuery, 'bytesMax' | 'provenance'>,
): Sliced<EventPage> {
  const provenanceOf = provenance ? provenanceReader(db, org) : null
  const events: StoredEvent[] = []
  let bytes = 0
  for (const { block, row } of textsAhead(db, rows, ({ block }) => placeOf(org, block.firstSeq))) {
    if (isSliceOver()) yield
    const event = eventAt(block, row, provenanceOf)
    bytes += Buffer.byteLength(event.json)
    const last = events.at(-1)
    if (last !== undefined && bytes > bytesMax)
      return { events, next: { occurredAtMs: last.occurredAtMs, seq: last.seq }, ceilingSeq }
    events.push(event)
  }
  return { events, next, ceilingSeq }
}

/** An event, with who says so where that is asked for. */
export function eventAt(
  block: OpenBlock,
  row: number,
  provenanceOf: ReturnType<typeof provenanceReader> | null,
): StoredEvent {
  const event = block.event(row)
  return provenanceOf === null ? event : { ...event, provenance: provenanceOf(block, row) }
}

export function boundsOf(
  { filter, before: beforePosition }: { filter: EventFilter; before: EventPosition | null },
  ceilingSeq: number,
): Bounds {
  const until = { occurredAtMs: filter.untilMs ?? Infinity, seq: 0 }
  const isEarlier = beforePosition !== null && beforePosition.occurredAtMs < until.occurredAtMs
  return { sinceMs: filter.sinceMs ?? -Infinity, before: isEarlier ? beforePosition : until, ceilingSeq }
}

/** The first and last time and arrival of a part or a block. */
export interface Span {
  minAt: number
  maxAt: number
  firstSeq: number
  lastSeq: number
}

export function overlaps(
  { minAt, maxAt, firstSeq }: Span,
  { sinceMs, before: beforePosition, ceilingSeq }: Bounds,
): boolean {
  if (maxAt < sinceMs || firstSeq > ceilingSeq) return false
  return (
    minAt < beforePosition.occurredAtMs ||
    (minAt === beforePosition.occurredAtMs && firstSeq < beforePosition.seq)
  )
}

export function newestFirst(a: Span, b: Span): number {
  return b.maxAt - a.maxAt || b.lastSeq - a.lastSeq
}

/** Whether everything in it is older, by (time, arrival), than an event. */
export function endsBefore({ maxAt, lastSeq }: Span, { occurredAtMs, seq }: EventPosition): boolean {
  return maxAt < occurredAtMs || (maxAt === occurredAtMs && lastSeq < seq)
}

/** The blocks of a part that may hold a match within the bounds, newest first. */
export function newestZones(part: Part, bounds: Bounds): (Zone & Span)[] {
  return part
    .zones()
    .map((zone) => {
      const firstSeq = seqOf(zone.place)
      return { ...zone, firstSeq, lastSeq: firstSeq + zone.events - 1 }
    })
    .filter((zone) => overlaps(zone, bounds))
    .sort(newestFirst)
}

function scanBlock(
  db: Database,
  part: Part,
  zone: Zone,
  clauses: readonly Clause[],
  { sinceMs, before: beforePosition, ceilingSeq }: Bounds,
  add: (candidate: Found) => void,
): void {
  const block = readBlock(db, zone, clauses)
  if (block === null) return
  for (let row = 0; row < block.rows; row++) {
    if (!part.mayMatch(zone, row)) continue
    const atMs = block.at(row)
    const seq = block.firstSeq + row
    if (
      atMs < sinceMs ||
      atMs > beforePosition.occurredAtMs ||
      (atMs === beforePosition.occurredAtMs && seq >= beforePosition.seq)
    )
      continue
    if (seq > ceilingSeq || !block.matches(row, clauses)) continue
    add({ at: atMs, seq, block, row })
  }
}

/** Keeps the newest `size` of the added events. */
function newestOf(size: number) {
  let candidates: Found[] = []
  let oldest: EventPosition = { occurredAtMs: -Infinity, seq: 0 }
  const order = (a: Found, b: Found) => b.at - a.at || b.seq - a.seq

  function cut(): void {
    candidates = candidates.sort(order).slice(0, size)
    const last = candidates[size - 1]
    if (last !== undefined) oldest = { occurredAtMs: last.at, seq: last.seq }
  }

  return {
    add(candidate: Found): void {
      if (
        candidate.at < oldest.occurredAtMs ||
        (candidate.at === oldest.occurredAtMs && candidate.seq < oldest.seq)
      )
        return
      candidates.push(candidate)
      if (candidates.length >= size * 4) cut()
    },
    isFull(): boolean {
      if (candidates.length < size) return false
      cut()
      return true
    },
    oldest: () => oldest,
    sorted(): Found[] {
      cut()
      return candidates
    },
  }
}

/** Limits of one step: events and time. `next` continues after them. */
const stepEventsMax = 250_000
const stepMs = 250
/** Rows between two looks at the clock. */
const rowsPerCheck = 8
/** The first rows of a search, and each further ones: finding rows takes some statements, however many they are. */
const firstRows = 1_000
const furtherRows = 4_000

/** The page may be short, or empty with a `next` that continues the search. */
function* searchPage(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  query: EventPageQuery,
  ceilingSeq: number,
): Sliced<EventPage> {
  const hasText = textFinder(query.filter.text ?? '')
  const endMs = performance.now() + stepMs
  const bytesMax = query.bytesMax ?? Infinity
  const provenanceOf = query.provenance === true ? provenanceReader(db, org) : null
  const events: StoredEvent[] = []
  let { before: beforePosition } = query
  let looked = 0
  let bytes = 0
  for (;;) {
    const pageQuery = { ...query, before: beforePosition, limit: looked === 0 ? firstRows : furtherRows }
    const { rows, next } = yield* newestRows(db, org, { indexed: clauses, clauses }, pageQuery, ceilingSeq)
    for (const candidate of textsAhead(db, rows, ({ block }) => placeOf(org, block.firstSeq))) {
      if (++looked % rowsPerCheck === 0 && isSliceOver()) yield
      if (hasText(candidate.block, candidate.row)) {
        const event = eventAt(candidate.block, candidate.row, provenanceOf)
        events.push(event)
        bytes += Buffer.byteLength(event.json)
      }
      const isFull = events.length === query.limit || bytes > bytesMax
      if (!isFull && (looked % rowsPerCheck > 0 || (looked < stepEventsMax && performance.now() <= endMs)))
        continue
      const isLast = next === null && candidate === rows.at(-1)
      return { events, next: isLast ? null : { occurredAtMs: candidate.at, seq: candidate.seq }, ceilingSeq }
    }
    beforePosition = next
    if (beforePosition === null) return { events, next: null, ceilingSeq }
  }
}
