/** Counts events by the highest trust that any event of their session reached, of all sessions or of a sample. */
import type { TrustReached, TrustReachedQuery } from '../../../../contract/event-counts.ts'
import { type Zone, readAhead, readBlock } from '../../blocks/block-table.ts'
import { type Clause, fieldClause, filterClauses } from '../../index/filter-codes.ts'
import { hashSpan, member } from '../../blocks/fields.ts'
import { readDistinct } from '../sketches.ts'
import { type Part, partsOf } from '../walk.ts'
import { isSliceOver, type Sliced } from '../../../threads/slices.ts'
import { type LogView, type SessionRow, ladder, sessionTexts } from './rows.ts'

/** How far a session is followed before and after the range; most end after half an hour. */
const aroundMs = 24 * 3_600_000
/** Sessions in memory at once: 200 bytes each. */
const sessionsMax = 200_000
/** With twice as many and more a sample of about this size is read: shares are right within 1 %. */
const sampleMin = 20_000

interface Known {
  events: number
  height: number // rank of the trust; -1: no known trust
}

interface Reading {
  query: TrustReachedQuery
  sessions: Map<string, Known> // by session as JSON text
  byCode: Map<number, Known[]> // a code alone is ambiguous
  complete: boolean
}

/** Null when time is up. */
export function* readTrustReached(log: LogView, query: TrustReachedQuery): Sliced<TrustReached | null> {
  const endMs = performance.now() + query.deadlineMs
  const { db, org, hashSeed } = log
  const { types, siteIds, filter = {}, also = [] } = query
  const indexed = [
    ...filterClauses(db, org, hashSeed, { types, ...(siteIds && { siteIds }) }),
    ...filterClauses(db, org, hashSeed, filter),
  ]
  const clauses = [
    ...indexed,
    ...also.map(({ by, values }) => fieldClause(db, org, hashSeed, member[by], values)),
  ]
  // A filter may match few sessions, of which a sample would have none.
  const isAll = clauses.every(({ member: index }) => index === member.type || index === member.siteId)
  const sessions = isAll ? yield* sessionsIn(log, query) : 0
  if (sessions > 2 * sampleMin) {
    const oneIn = 2 ** Math.floor(Math.log2(sessions / sampleMin))
    return yield* readSample(log, query, { clauses, oneIn, endMs })
  }
  return yield* readAll(log, query, { indexed, clauses, endMs })
}

/** About as many, or more: of whole days, and those of two months count twice. */
function* sessionsIn(log: LogView, { orgId, siteIds, sinceMs, untilMs }: TrustReachedQuery): Sliced<number> {
  const query = { orgId, sinceMs, untilMs: untilMs + aroundMs, ...(siteIds && { siteIds }) }
  const { rows } = yield* readDistinct(log.db, log.org, { ...query, of: 'session', step: 'month' })
  return rows.reduce((sum, { count }) => sum + count, 0)
}

/** Reads twice: the sessions of the events, then the highest trust of each. */
function* readAll(
  log: LogView,
  query: TrustReachedQuery,
  { indexed, clauses, endMs }: { indexed: Clause[]; clauses: Clause[]; endMs: number },
): Sliced<TrustReached | null> {
  const { db, org } = log
  const { sinceMs, untilMs } = query
  const reading: Reading = { query, sessions: new Map(), byCode: new Map(), complete: true }
  for (const part of partsOf(db, org, indexed, 0)) {
    for (const zone of readAhead(log.db, overlapping(part, sinceMs, untilMs))) {
      if (performance.now() > endMs) return null
      if (isSliceOver()) yield
      find(reading, log, { part, zone, clauses })
    }
  }
  const { height } = sessionTexts(log)
  for (const part of reading.sessions.size === 0 ? [] : partsOf(db, org, [], 0)) {
    for (const zone of readAhead(log.db, overlapping(part, sinceMs - aroundMs, untilMs + aroundMs))) {
      if (performance.now() > endMs) return null
      if (isSliceOver()) yield
      raise(reading, log, zone, height)
    }
  }
  return counted(reading.sessions.values(), reading.complete)
}

/** Reads columns only, and once. Two sessions with the same hash count as one. */
function* readSample(
  log: LogView,
  query: TrustReachedQuery,
  { clauses, oneIn, endMs }: { clauses: Clause[]; oneIn: number; endMs: number },
): Sliced<TrustReached | null> {
  const { db, org } = log
  const [sinceMs, untilMs] = [query.sinceMs - aroundMs, query.untilMs + aroundMs]
  const { height } = sessionTexts(log)
  const sessions = new Map<number, Known>() // by code
  for (const part of partsOf(db, org, [], 0)) {
    for (const zone of readAhead(db, overlapping(part, sinceMs, untilMs))) {
      if (performance.now() > endMs) return null
      if (isSliceOver()) yield
      const block = readBlock(db, zone)
      block?.codes(member.sessionId).forEach((code, row) => {
        if (code % hashSpan >= hashSpan / oneIn || block.code(member.type, row) === 0) return
        const at = block.at(row)
        if (at < sinceMs || at >= untilMs) return
        const known = sessions.getOrInsertComputed(code, () => ({ events: 0, height: -1 }))
        const trust = block.code(member.trust, row)
        if (trust !== 0) known.height = Math.max(known.height, height({ ...noRow, trust, zone, row }))
        if (at >= query.sinceMs && at < query.untilMs && block.matches(row, clauses)) known.events++
      })
    }
  }
  return counted(
    [...sessions.values()].filter(({ events }) => events > 0),
    false,
  )
}

function overlapping(part: Part, sinceMs: number, untilMs: number): Zone[] {
  if (part.maxAt < sinceMs || part.minAt >= untilMs) return []
  return part.zones().filter((zone) => zone.maxAt >= sinceMs && zone.minAt < untilMs)
}

interface Place {
  part: Part
  zone: Zone
  clauses: readonly Clause[]
}

function find(reading: Reading, { db }: LogView, { part, zone, clauses }: Place): void {
  const { query, sessions, byCode } = reading
  const block = readBlock(db, zone, clauses)
  if (block === null) return
  const codes = block.codes(member.sessionId)
  for (let row = 0; row < block.rows; row++) {
    const at = block.at(row)
    if (at < query.sinceMs || at >= query.untilMs) continue
    if (!part.mayMatch(zone, row) || !block.matches(row, clauses)) continue
    const text = block.session(row)
    const known = sessions.get(text)
    if (known !== undefined) known.events++
    else if (sessions.size >= sessionsMax) reading.complete = false
    else {
      const one: Known = { events: 1, height: -1 }
      sessions.set(text, one)
      byCode.set(codes[row]!, [...(byCode.get(codes[row]!) ?? []), one])
    }
  }
}

function raise(
  { query, sessions, byCode }: Reading,
  { db }: LogView,
  zone: Zone,
  heightOf: (row: SessionRow) => number,
): void {
  const block = readBlock(db, zone)
  if (block === null) return
  const codes = block.codes(member.sessionId)
  if (!codes.some((code) => byCode.has(code))) return
  const [trusts, types] = [block.codes(member.trust), block.codes(member.type)]
  for (let row = 0; row < block.rows; row++) {
    const at = block.at(row)
    if (at < query.sinceMs - aroundMs || at >= query.untilMs + aroundMs) continue
    const sameCode = byCode.get(codes[row]!)
    if (sameCode === undefined || trusts[row] === 0 || types[row] === 0) continue
    const height = heightOf({ ...noRow, trust: trusts[row]!, zone, row })
    // Reads the name only where it can matter: at most once per trust level.
    if (sameCode.every((one) => one.height >= height)) continue
    const known = sessions.get(block.session(row))
    if (known !== undefined && height > known.height) known.height = height
  }
}

const noRow = { at: 0, seq: 0, siteId: 0, type: 0, outcome: 0, class: 0, vendor: 0 }

/** Highest trust first, sessions without a known one last. */
function counted(sessions: Iterable<Known>, complete: boolean): TrustReached {
  const rows = [...ladder.toReversed(), null].map((trust) => ({ trust, events: 0, sessions: 0 }))
  for (const { events, height } of sessions) {
    const row = rows[ladder.length - 1 - height]!
    row.events += events
    row.sessions++
  }
  return { rows: rows.filter((row) => row.sessions > 0), complete }
}
