/** The events of some sessions, told by their columns: visited in one pass over the log, or the newest of each kept. */
import type { Zone } from '../events/block-table.ts'
import { hashCode, member } from '../events/members.ts'
import { readBlock, type OpenBlock } from '../events/open-block.ts'
import { newestFirst } from '../events/page.ts'
import { seqOf } from '../events/place.ts'
import { partsOf } from '../events/walk.ts'
import type { LogView } from './log-view.ts'
import type { SessionRow } from './tally.ts'

export interface Visitor {
  /** Whether events of the session that are no newer than `maxAt` are of use; after a no it is not asked again. */
  wants(id: string, maxAt: number): boolean
  /** The row is the same object each time, filled anew. */
  visit(id: string, row: SessionRow, block: OpenBlock): void
  /** After each block. */
  block(): void
}

/** Parts come newest first, the blocks of each in order of arrival. */
export function visitSessions(log: LogView, ids: string[], ceilingSeq: number, visitor: Visitor): void {
  const { db, org, hashSeed, inTime } = log
  const idsByText = new Map(ids.map((id) => [JSON.stringify(id), id]))
  const wanted = codesOf(ids, hashSeed)
  const parts = partsOf(db, org, [wanted], 0).filter((part) => part.firstSeq <= ceilingSeq)
  for (const part of parts.sort(newestFirst)) {
    for (const [text, id] of idsByText) {
      if (visitor.wants(id, part.maxAt)) continue
      idsByText.delete(text)
      forget(wanted, hashSeed, id)
    }
    if (idsByText.size === 0) return
    for (const zone of part.zones().filter(({ place }) => seqOf(place) <= ceilingSeq)) {
      inTime()
      const block = readBlock(db, zone)
      if (block === null) continue
      const takes = (row: number) => part.mayMatch(zone, row) && block.firstSeq + row <= ceilingSeq
      visitBlock(block, zone, takes, wanted.codes, idsByText, visitor)
      visitor.block()
    }
  }
}

interface Wanted {
  member: number
  codes: Set<number>
  hashed: Map<number, Set<string>> // code -> the sessions that have it: hardly ever more than one
}

function codesOf(ids: string[], hashSeed: number): Wanted {
  const wanted: Wanted = { member: member.sessionId, codes: new Set(), hashed: new Map() }
  for (const id of ids) {
    const code = hashCode(id, hashSeed)
    wanted.codes.add(code)
    wanted.hashed.set(code, (wanted.hashed.get(code) ?? new Set()).add(id))
  }
  return wanted
}

function forget({ codes, hashed }: Wanted, hashSeed: number, id: string): void {
  const code = hashCode(id, hashSeed)
  const sessions = hashed.get(code)
  sessions?.delete(id)
  if (sessions?.size === 0) codes.delete(code)
}

function visitBlock(
  block: OpenBlock,
  zone: Zone,
  takes: (row: number) => boolean,
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
  const none = { siteId: 0, type: 0, outcome: 0, class: 0, vendor: 0, trust: 0 }
  const given: SessionRow = { at: 0, seq: 0, zone, row: 0, ...none }
  for (let row = 0; row < block.rows; row++) {
    if (!codes.has(sessions[row]!) || types[row] === 0 || !takes(row)) continue
    const id = idsByText.get(block.session(row)) // a code alone would not be sure
    if (id === undefined) continue
    given.at = block.at(row)
    given.seq = block.firstSeq + row
    given.row = row
    given.siteId = sites[row]!
    given.type = types[row]!
    given.outcome = outcomes[row]!
    given.class = classes[row]!
    given.vendor = vendors[row]!
    given.trust = trusts[row]!
    visitor.visit(id, given, block)
  }
}

export interface NewestRows {
  rows: SessionRow[] // newest first by (occurredAt, arrival), `eventsMax` at most
  isCut: boolean
}

/** The newest events of one session; what is older than all that are kept is not looked at. */
export function newestOfSession(log: LogView, id: string, ceilingSeq: number, eventsMax: number): NewestRows {
  let rows: SessionRow[] = []
  let isCut = false

  function cut(): void {
    rows.sort((a, b) => b.at - a.at || b.seq - a.seq)
    if (rows.length <= eventsMax) return
    rows = rows.slice(0, eventsMax)
    isCut = true
  }

  visitSessions(log, [id], ceilingSeq, {
    wants(_, maxAt) {
      if (rows.length > eventsMax) cut()
      return !isCut || rows[eventsMax - 1]!.at <= maxAt
    },
    visit: (_, row) => void rows.push({ ...row }),
    block: () => {},
  })
  cut()
  return { rows, isCut }
}
