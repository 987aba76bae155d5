/** Counts events by the highest trust that any event of their session reached, of all sessions or of a sample. */
import type { TrustReached, TrustReachedQuery } from '../../../../contract/event-counts.ts'
import { type Zone, readAhead, readBlock } from '../../blocks/block-table.ts'
import { fieldClause, filterClauses } from '../../index/filter-codes.ts'
import type { Clause } from '../../blocks/clause.ts'
import { member, trustHeights, trustLadder } from '../../blocks/fields.ts'
import { segmentSample } from '../../paths/columns.ts'
import { isSampled, sampledOneIn, trustHeight } from '../../paths/session-sample.ts'
import { readDistinct } from '../sketches.ts'
import { type Part, partsOf } from '../../index/walk.ts'
import { isSliceOver, type Sliced } from '../../../slices.ts'
import type { LogView } from './rows.ts'

/** How far a session is followed before and after the range; most end after half an hour. */
const aroundMs = 24 * 3_600_000
/** Sessions in memory at once: 200 bytes each. */
const sessionsMax = 200_000
/** With more a sample is read. Its shares are right within 2 % for 40,000 sessions, and within 1 % for 160,000. */
const countedMax = 40_000
/** Beyond 160,000 sessions a sample has at least as many and fewer than twice as many. */
const sampleMin = 10_000

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
    ...also.map(({ by: field, values }) => fieldClause(db, org, hashSeed, member[field], values)),
  ]
  // A filter may match few sessions, of which a sample would have none.
  const isAll = clauses.every(({ member: index }) => index === member.type || index === member.siteId)
  const sessions = isAll ? yield* sessionsIn(log, query) : 0
  if (sessions > countedMax) {
    const oneIn = Math.max(sampledOneIn, 2 ** Math.floor(Math.log2(sessions / sampleMin)))
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
  const heightOf = trustHeights(db, org)
  for (const part of reading.sessions.size === 0 ? [] : partsOf(db, org, [], 0)) {
    for (const zone of readAhead(log.db, overlapping(part, sinceMs - aroundMs, untilMs + aroundMs))) {
      if (performance.now() > endMs) return null
      if (isSliceOver()) yield
      raise(reading, log, zone, heightOf)
    }
  }
  return counted(reading.sessions.values(), reading.complete)
}

/** Reads columns only, and once: what sealed segments keep of sessions. Two with the same hash count as one. */
function* readSample(
  { db, org }: LogView,
  query: TrustReachedQuery,
  { clauses, oneIn, endMs }: { clauses: Clause[]; oneIn: number; endMs: number },
): Sliced<TrustReached | null> {
  const sinceMs = query.sinceMs - aroundMs
  const untilMs = query.untilMs + aroundMs
  const heightOf = trustHeights(db, org)
  const sessions = new Map<number, Known>() // by code
  const add = (code: number, atMs: number, height: number, isMeant: () => boolean): void => {
    if (atMs < sinceMs || atMs >= untilMs) return
    const session = sessions.getOrInsertComputed(code, () => ({ events: 0, height: -1 }))
    if (height > session.height) session.height = height
    if (atMs >= query.sinceMs && atMs < query.untilMs && isMeant()) session.events++
  }
  for (const part of partsOf(db, org, [], 0)) {
    if (part.maxAt < sinceMs || part.minAt >= untilMs) continue
    if (performance.now() > endMs) return null
    if (isSliceOver()) yield
    const sample = part.segment === null ? null : segmentSample(db, org, part.segment)
    for (let row = 0; row < (sample?.rows ?? 0); row++)
      if (isSampled(sample!.session[row]!, oneIn))
        add(sample!.session[row]!, sample!.at[row]!, sample!.height[row]!, () =>
          clauses.every(({ member: index, codes }) =>
            codes.has(index === member.type ? sample!.type[row]! : sample!.siteId[row]!),
          ),
        )
    for (const zone of sample === null ? readAhead(db, overlapping(part, sinceMs, untilMs)) : []) {
      if (performance.now() > endMs) return null
      if (isSliceOver()) yield
      const block = readBlock(db, zone)
      block?.codes(member.sessionId).forEach((code, row) => {
        if (isSampled(code, oneIn) && block.code(member.type, row) !== 0)
          add(code, block.at(row), trustHeight(heightOf, block, row), () => block.matches(row, clauses))
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
    const atMs = block.at(row)
    if (atMs < query.sinceMs || atMs >= query.untilMs) continue
    if (!part.mayMatch(zone, row) || !block.matches(row, clauses)) continue
    const text = block.session(row)
    const knownSession = sessions.get(text)
    if (knownSession !== undefined) knownSession.events++
    else if (sessions.size >= sessionsMax) reading.complete = false
    else {
      const newSession: Known = { events: 1, height: -1 }
      sessions.set(text, newSession)
      byCode.set(codes[row]!, [...(byCode.get(codes[row]!) ?? []), newSession])
    }
  }
}

function raise(
  { query, sessions, byCode }: Reading,
  { db }: LogView,
  zone: Zone,
  heightOf: ReturnType<typeof trustHeights>,
): void {
  const block = readBlock(db, zone)
  if (block === null) return
  const codes = block.codes(member.sessionId)
  if (!codes.some((code) => byCode.has(code))) return
  const trusts = block.codes(member.trust)
  const types = block.codes(member.type)
  for (let row = 0; row < block.rows; row++) {
    const atMs = block.at(row)
    if (atMs < query.sinceMs - aroundMs || atMs >= query.untilMs + aroundMs) continue
    const sameCode = byCode.get(codes[row]!)
    if (sameCode === undefined || trusts[row] === 0 || types[row] === 0) continue
    const height = trustHeight(heightOf, block, row)
    // Reads the name only where it can matter: at most once per trust level.
    if (sameCode.every((session) => session.height >= height)) continue
    const knownSession = sessions.get(block.session(row))
    if (knownSession !== undefined && height > knownSession.height) knownSession.height = height
  }
}

/** Highest trust first, sessions without a known one last. */
function counted(sessions: Iterable<Known>, complete: boolean): TrustReached {
  const rows = [...trustLadder.toReversed(), null].map((trust) => ({ trust, events: 0, sessions: 0 }))
  for (const { events, height } of sessions) {
    const row = rows[trustLadder.length - 1 - height]!
    row.events += events
    row.sessions++
  }
  return { rows: rows.filter((row) => row.sessions > 0), complete }
}
