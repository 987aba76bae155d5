/** The events of some sessions in one pass over the log: where each lies and what its columns say, without its text. */
import type { EventPosition } from '../../store.ts'
import type { Zone } from '../events/block-table.ts'
import { filterClauses } from '../events/filter-codes.ts'
import { member } from '../events/members.ts'
import { readBlock, type OpenBlock } from '../events/open-block.ts'
import { newestFirst } from '../events/page.ts'
import { seqOf } from '../events/place.ts'
import { partsOf } from '../events/walk.ts'
import type { LogView } from './log-view.ts'

/** Members as codes (members.ts). */
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

export interface SessionRows {
  rows: SessionRow[] // newest first by (occurredAt, arrival), `eventsMax` at most
  isCut: boolean
  newest: EventPosition | null // of those that match
}

export interface Asked {
  ids: string[]
  ceilingSeq: number
  eventsMax: number
  /** Which events `newest` is of; `noOlderThan` is a time at which each session has one. */
  matches(block: OpenBlock, row: number): boolean
  noOlderThan: number
  budgetMs: number
}

interface Gathering extends SessionRows {
  oldestAt: number // of the rows, once they are cut
}

/**
 * Whenever the budget is used up, the later half of the sessions is left out; the first one is always there. Parts come
 * newest first, so a session that has all the rows it may have closes early.
 */
export function sessionRows(log: LogView, asked: Asked): Map<string, SessionRows> {
  const { db, org, hashSeed, inTime } = log
  const { ids, ceilingSeq, eventsMax, noOlderThan, budgetMs } = asked
  const all = new Map<string, Gathering>()
  for (const id of ids)
    all.set(JSON.stringify(id), { rows: [], isCut: false, newest: null, oldestAt: -Infinity })
  let endMs = performance.now() + budgetMs
  const clauses = filterClauses(db, org, hashSeed, { sessionIds: ids })
  const parts = partsOf(db, org, clauses, 0).filter((part) => part.firstSeq <= ceilingSeq)
  for (const part of parts.sort(newestFirst)) {
    const isClosed = ({ isCut, oldestAt }: Gathering) =>
      isCut && oldestAt > part.maxAt && noOlderThan > part.maxAt
    if ([...all.values()].every(isClosed)) break
    for (const zone of part.zones().filter(({ place }) => seqOf(place) <= ceilingSeq)) {
      inTime()
      takeRows(log, zone, part.mayMatch, clauses[0]!.codes, all, asked)
      if (performance.now() < endMs || all.size === 1) continue
      for (const id of [...all.keys()].slice(Math.ceil(all.size / 2))) all.delete(id)
      endMs = performance.now() + budgetMs
    }
    for (const gathering of all.values())
      if (gathering.rows.length > eventsMax) sortAndCut(gathering, eventsMax)
  }
  for (const gathering of all.values()) sortAndCut(gathering, eventsMax)
  return new Map(Array.from(all, ([text, gathering]) => [JSON.parse(text) as string, gathering]))
}

function takeRows(
  { db }: LogView,
  zone: Zone,
  mayMatch: (zone: Zone, row: number) => boolean,
  codes: ReadonlySet<number>,
  all: ReadonlyMap<string, Gathering>,
  { ceilingSeq, matches }: Asked,
): void {
  const block = readBlock(db, zone)
  if (block === null) return
  const sessions = block.codes(member.sessionId)
  for (let row = 0; row < block.rows; row++) {
    if (!codes.has(sessions[row]!) || !mayMatch(zone, row) || block.firstSeq + row > ceilingSeq) continue
    if (block.codes(member.type)[row] === 0) continue
    const gathering = all.get(block.session(row)) // a code alone would not be sure
    if (gathering === undefined) continue
    const one = rowOf(block, zone, row)
    gathering.rows.push(one)
    const { newest } = gathering
    const isNewer =
      newest === null ||
      one.at > newest.occurredAtMs ||
      (one.at === newest.occurredAtMs && one.seq > newest.seq)
    if (isNewer && matches(block, row)) gathering.newest = { occurredAtMs: one.at, seq: one.seq }
  }
}

function rowOf(block: OpenBlock, zone: Zone, row: number): SessionRow {
  return {
    at: block.at[row]!,
    seq: block.firstSeq + row,
    zone,
    row,
    siteId: block.codes(member.siteId)[row]!,
    type: block.codes(member.type)[row]!,
    outcome: block.codes(member.outcome)[row]!,
    class: block.codes(member.class)[row]!,
    vendor: block.codes(member.vendor)[row]!,
    trust: block.codes(member.trust)[row]!,
  }
}

/** Keeps as many as are told: no session holds more, however long it is. */
function sortAndCut(gathering: Gathering, eventsMax: number): void {
  const sorted = gathering.rows.sort((a, b) => b.at - a.at || b.seq - a.seq)
  if (sorted.length <= eventsMax) return
  gathering.rows = sorted.slice(0, eventsMax)
  gathering.isCut = true
  gathering.oldestAt = gathering.rows.at(-1)!.at
}
