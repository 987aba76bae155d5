/**
 * The writer's memory of an organization between commits, and its dictionaries. All of it can be rebuilt from the
 * tables.
 */
import { StoreError } from '../../../contract/errors.ts'
import { lastSeqOf, newestBlocks, readColumns, type BlockSpan } from '../blocks/block-table.ts'
import { smallBlockEvents } from './merge.ts'
import { countUnfolded } from '../rollups/fold.ts'
import {
  type StagedBlock,
  columnCount,
  endsSegment,
  extra,
  orgsMax,
  placeOf,
  segmentOf,
  seqOf,
} from '../blocks/block.ts'
import { atOnce } from '../../slices.ts'
import { guardRails, hashCode, member, fieldAt } from '../blocks/fields.ts'
import { applianceObserver, doors, knownVerdicts } from '../../../contract/provenance.ts'
import type { NetworkRow } from '../blocks/networks.ts'
import type { Database } from '../../database.ts'
import type { RollupCounts } from '../rollups/counts.ts'
import type { EventRecord, GuardRail } from '../../../contract/store.ts'

/** What staging a batch needs to know of its organization. */
export interface Staging {
  num: number
  lastSeq: number // of staged events
  receivedMs: number // of the newest arrival; 0 when none is stored
  terms: Terms
  staged: StagedBlock[]
  networks: NetworkRow[] // of staged events
}

export interface OrgState extends Staging {
  storedSeq: number // of events in the tables
  foldedSeq: number
  segments: number // sealed
  unfolded: RollupCounts
  small: BlockSpan[] // the small blocks at the end, consecutive and in one segment
}

/** Organizations in memory; the terms of a hostile one take about 5 MB. */
const orgsLoadedMax = 32

export interface Orgs {
  of(orgId: string): OrgState
  loaded(): Iterable<OrgState>
  /** Between transactions: evicts the least recently used organizations, except one. */
  trim(keep: OrgState | null): void
  forget(): void
}

export function openOrgs(db: Database, hashSeed: number): Orgs {
  const states = new Map<string, OrgState>() // least recently used first
  const find = db.query<{ num: number; last: number; folded: number; segments: number }, [string]>(
    'SELECT num, last_seq AS last, folded_seq AS folded, segments FROM event_org WHERE org_id = ?',
  )

  function create(orgId: string): NonNullable<ReturnType<typeof find.get>> {
    db.query('INSERT INTO event_org (org_id, last_seq, folded_seq, segments) VALUES (?, 0, 0, 0)').run(orgId)
    const row = find.get(orgId)
    if (row === null || row.num >= orgsMax)
      throw new StoreError('internal', 'there are too many organizations')
    return row
  }

  function load(orgId: string): OrgState {
    const { num, last, folded, segments } = find.get(orgId) ?? create(orgId)
    const small: BlockSpan[] = []
    const newest = newestBlocks(db, num, 64)
    const storedSeq = Math.max(last, lastSeqOf(newest[0]))
    for (const block of endsSegment(storedSeq) ? [] : newest) {
      if (block.events >= smallBlockEvents || segmentOf(seqOf(block.place)) !== segmentOf(storedSeq)) break
      const next = small[0]?.place ?? placeOf(num, storedSeq + 1)
      if (block.place + block.events !== next) break
      small.unshift(block)
    }
    const terms = openTerms(db, num, hashSeed)
    const unfolded = atOnce(countUnfolded(db, num))
    return {
      num,
      lastSeq: storedSeq,
      receivedMs: receivedOf(db, newest[0]),
      storedSeq,
      foldedSeq: folded,
      segments,
      unfolded,
      terms,
      staged: [],
      networks: [],
      small,
    }
  }

  return {
    of(orgId) {
      const state = states.get(orgId) ?? load(orgId)
      states.delete(orgId)
      states.set(orgId, state)
      return state
    },
    loaded: () => states.values(),
    trim(keep) {
      for (const [orgId, state] of states) {
        if (states.size <= orgsLoadedMax) return
        if (state !== keep) states.delete(orgId)
      }
    },
    forget: () => states.clear(),
  }
}

/** The arrival time of a block's last event. */
function receivedOf(db: Database, block: BlockSpan | undefined): number {
  const columns = block === undefined ? null : readColumns(db, block.place)
  return columns?.value(extra.received, columns.rows - 1) ?? 0
}

/** The interned texts of an organization, in the writer's memory and in `event_term`. */
const otherTermsMax = 4_096 // agents, judgements

export interface Terms {
  /** The code of a text. Interns it in the open transaction up to the limit, and hashes it beyond. */
  code(member: number, text: string): number
  /** The first field of the event that exceeds its limit of values, or null. */
  broken(event: EventRecord): GuardRail | null
}

export interface Term {
  member: number // one of `termMembers`
  text: string
  code: number
}

/** Words of senders must not use up the places of the verdicts that pages count. */
const reserved = new Map<number, ReadonlySet<string>>([
  [member.verdict, new Set(knownVerdicts)],
  [member.judgedBy, new Set(['appliance', 'sender'])],
  [member.observedBy, new Set([applianceObserver])],
  [member.door, new Set(doors)],
])

const isReserved = (field: number, text: string): boolean => reserved.get(field)?.has(text) === true

/** `insert` stores a term before the events that use it are committed. */
export function interner(stored: Term[], hashSeed: number, insert: (term: Term) => void): Terms {
  const codes = Array.from({ length: columnCount }, () => new Map<string, number>())
  const highest = codes.map(() => 0)
  for (const { member, text, code } of stored) {
    codes[member]?.set(text, code)
    highest[member] = Math.max(highest[member] ?? 0, code)
  }
  const termsMax = codes.map((_, index) => fieldAt(index)?.termsMax ?? otherTermsMax)
  // The events of a batch share most values, as the same string: comparing it takes less than finding it.
  const lastText: (string | null)[] = codes.map(() => null)
  const lastCode = codes.map(() => 0)

  function codeOf(member: number, text: string): number {
    const codeByText = codes[member]!
    const existingCode = codeByText.get(text)
    if (existingCode !== undefined) return existingCode
    if (codeByText.size >= termsMax[member]! && !isReserved(member, text)) return hashCode(text, hashSeed)
    const code = ++highest[member]!
    insert({ member, text, code })
    codeByText.set(text, code)
    return code
  }

  return {
    code(member, text) {
      if (lastText[member] === text) return lastCode[member]!
      const code = codeOf(member, text)
      lastText[member] = text
      lastCode[member] = code
      return code
    },
    broken(event) {
      for (const name of guardRails) {
        const codeByText = codes[member[name]]!
        if (codeByText.size >= termsMax[member[name]]! && !codeByText.has(event[name])) return name
      }
      return null
    },
  }
}

export function openTerms(db: Database, org: number, hashSeed: number): Terms {
  const rows = db.query<Term, [number]>('SELECT member, text, code FROM event_term WHERE org = ?')
  const insert = db.query('INSERT INTO event_term (org, member, text, code) VALUES (?, ?, ?, ?)')
  return interner(rows.all(org), hashSeed, ({ member, text, code }) => insert.run(org, member, text, code))
}
