/** Seals full segments: builds their index one field at a time, in steps during later commits. */
import type { Database } from '../../database.ts'
import { indexVersion } from '../../../contract/event-fields.ts'
import { packZones, readAhead, readColumns, zonesBetween, type Zone } from '../blocks/block-table.ts'
import { members } from '../blocks/fields.ts'
import { segmentEvents, segmentOf, seqOf, type BlockContent } from '../blocks/block.ts'
import { codesInSegment, filteredFields, writeFilter, writePostings } from './posting.ts'

/*
 * A segment's row is written last, in the transaction that raises event_org.segments. Readers use the index of a
 * segment only when both exist. Work that a crash interrupted is repeated and writes the same rows.
 */
interface Sealing<Org> {
  org: Org
  segment: number
  zones: Zone[]
  columns: Uint32Array[] // codes of the indexed fields, by position in the segment
  nextZone: number // the next one whose columns are read
  nextMember: number // index into `indexed`
}

/** Fields that a filter can name. */
const indexed = members.flatMap(({ filter, number }) => (filter === null ? [] : [number]))

/** Reading the blocks of a whole segment takes as long as four commits. */
const readSteps = 8
const stepsPerSegment = readSteps + indexed.length + 2

/** What sealing needs to know of an organization, and changes. */
export interface Sealable {
  num: number
  storedSeq: number // of events in the tables
  segments: number // sealed
}

export interface Sealer<Org extends Sealable = Sealable> {
  /** A block that the open transaction wrote at the end of the organization's. */
  note(org: Org, firstSeq: number, content: Pick<BlockContent, 'events' | 'columns'>): void
  /** Inside the transaction that stores `events` new ones of the organization. */
  step(org: Org, events: number): void
  isDue(org: Org): boolean
  /** Does all due work. */
  finish(org: Org): void
  /** The organization whose segment is half built. */
  current(): Org | null
  forget(): void
}

export function sealer<Org extends Sealable = Sealable>(db: Database): Sealer<Org> {
  let sealing: Sealing<Org> | null = null
  const newest = newestColumns()

  function isDue(org: Org): boolean {
    return segmentOf(org.storedSeq + 1) > org.segments
  }

  /** Whether any work was due. */
  function sealStep(org: Org): boolean {
    if (sealing === null) {
      if (!isDue(org)) return false
      sealing = begin(db, org, newest.take(org.num, org.segments))
    } else if (sealing.nextZone < sealing.zones.length) {
      readZones(db, sealing)
    } else if (sealing.nextMember < indexed.length) {
      const listKey = { org: sealing.org.num, segment: sealing.segment, member: indexed[sealing.nextMember]! }
      writePostings(db, listKey, sealing.columns[sealing.nextMember]!, segmentEvents)
      sealing.nextMember++
    } else {
      end(db, sealing)
      sealing = null
    }
    return true
  }

  return {
    note: (org, firstSeq, content) => newest.add(org.num, firstSeq, content),
    step(org, events) {
      let steps = Math.ceil((events * 2 * stepsPerSegment) / segmentEvents)
      while (steps-- > 0 && sealStep(sealing?.org ?? org));
    },
    isDue,
    finish(org) {
      while (isDue(org)) sealStep(sealing?.org ?? org)
    },
    current: () => sealing?.org ?? null,
    forget() {
      sealing = null
      newest.forget()
    },
  }
}

/** `recentColumns`: the columns, if they need not be read. */
function begin<Org extends Sealable>(
  db: Database,
  org: Org,
  recentColumns: Uint32Array[] | null,
): Sealing<Org> {
  const segment = org.segments
  const first = segment * segmentEvents
  const zones = zonesBetween(db, org.num, first, first + segmentEvents)
  const columns = recentColumns ?? emptyColumns()
  return { org, segment, zones, columns, nextZone: recentColumns === null ? 0 : zones.length, nextMember: 0 }
}

const emptyColumns = () => indexed.map(() => new Uint32Array(segmentEvents))

/** The columns of a segment as far as its blocks were seen. */
interface SeenColumns {
  org: number
  segment: number
  columns: Uint32Array[]
  rows: number // without a gap from the first arrival on
}

/**
 * Keeps the columns of the newest segment while its blocks are written, until it is sealed. They take 4 MB and save a
 * twentieth of the writer's time. An event that is deleted meanwhile stays in the index, as one deleted later does.
 */
function newestColumns() {
  let open: SeenColumns | null = null
  let whole: SeenColumns | null = null // the end of a segment and the start of the next are often in one group
  return {
    add(org: number, firstSeq: number, content: Pick<BlockContent, 'events' | 'columns'>): void {
      const segment = segmentOf(firstSeq)
      const start = firstSeq - segment * segmentEvents
      const isFirst = start === (segment === 0 ? 1 : 0) // arrivals are numbered from 1
      if (isFirst) open = { org, segment, columns: emptyColumns(), rows: start }
      if (open === null || open.org !== org || open.segment !== segment || open.rows !== start) return
      for (let index = 0; index < indexed.length; index++)
        open.columns[index]!.set(content.columns[indexed[index]!]!.subarray(0, content.events), start)
      open.rows += content.events
      if (open.rows < segmentEvents) return
      whole = open
      open = null
    },
    /** Null when they are not there. The caller has them alone from then on. */
    take(org: number, segment: number): Uint32Array[] | null {
      if (whole === null || whole.org !== org || whole.segment !== segment) return null
      const { columns } = whole
      whole = null
      return columns
    },
    forget(): void {
      open = null
      whole = null
    },
  }
}

function readZones(db: Database, sealing: Sealing<Sealable>): void {
  const { segment, zones, columns, nextZone } = sealing
  sealing.nextZone += Math.ceil(zones.length / readSteps)
  for (const { place, events } of readAhead(db, zones.slice(nextZone, sealing.nextZone))) {
    const block = readColumns(db, place)
    if (block === null) throw new Error(`block ${place} is missing`)
    const start = seqOf(place) - segment * segmentEvents
    indexed.forEach((member, index) => columns[index]!.set(block.column(member).subarray(0, events), start))
  }
}

function end(db: Database, { org, segment, zones }: Sealing<Sealable>): void {
  const minAt = zones.reduce((low, zone) => Math.min(low, zone.minAt), Infinity)
  const maxAt = zones.reduce((high, zone) => Math.max(high, zone.maxAt), -Infinity)
  if (zones.length > 0) {
    db.query(
      `INSERT INTO event_segment (org, segment, min_at, max_at, zones, index_version) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (org, segment) DO UPDATE SET min_at = excluded.min_at, max_at = excluded.max_at,
         zones = excluded.zones, index_version = excluded.index_version`,
    ).run(org.num, segment, minAt, maxAt, packZones(zones), indexVersion)
  }
  db.query('UPDATE event_org SET segments = ? WHERE num = ?').run(segment + 1, org.num)
  org.segments = segment + 1
}

/** Filters per step; a few milliseconds. */
const stepFilters = 4

interface FilterBackfill {
  isDue(): boolean
  /** Inside a transaction: builds the filters of a few segments that an earlier schema sealed without them. */
  step(): void
  /** A transaction was rolled back, so missing filters are looked up again. */
  forget(): void
}

type Lacking = { org: number; segment: number; member: number }

export function filterBackfill(db: Database): FilterBackfill {
  let lacking = lackingFilters(db)
  return {
    isDue: () => lacking.length > 0,
    step() {
      for (const filterKey of lacking.splice(0, stepFilters)) {
        const codes = codesInSegment(db, filterKey)
        // Without codes: retention deleted the segment first.
        if (codes.length > 0) writeFilter(db, filterKey, codes, codes.length)
      }
    },
    forget() {
      lacking = lackingFilters(db)
    },
  }
}

function lackingFilters(db: Database): Lacking[] {
  const find = db.query<Omit<Lacking, 'member'>, [number]>(
    `SELECT org, segment FROM event_segment AS sealed WHERE NOT EXISTS (
       SELECT 1 FROM event_posting_filter AS filter
       WHERE filter.org = sealed.org AND filter.segment = sealed.segment AND filter.member = ?)`,
  )
  return filteredFields.flatMap((member) => find.all(member).map((filterKey) => ({ ...filterKey, member })))
}
