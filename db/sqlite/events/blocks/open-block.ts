/** An open block for readers: matches a filter against its rows, and inflates texts only when they are read. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../../contract/errors.ts'
import type { StoredEvent } from '../../../contract/store.ts'
import { type Zone, columnsOf } from './block-table.ts'
import { extra, seqOf } from './block.ts'
import { type Bodies, type Names, type Spilled, joinText, openBodies, openNames } from './texts.ts'
import type { Clause } from '../index/filter-codes.ts'
import { member } from './fields.ts'
import type { PackedColumns } from './number-columns.ts'

export interface OpenBlock {
  firstSeq: number
  rows: number
  /** occurredAt of a row, ms. */
  at(row: number): number
  /** The code of the ingest key that sent a row (`keyCodes`). */
  key(row: number): number
  /** When a row arrived, ms. */
  received(row: number): number
  /** The code of a field; 0 when it is missing, and for the type of a deleted event. */
  code(member: number, row: number): number
  /** Whether a row is an event, not a deleted one, that matches all clauses. */
  matches(row: number, clauses: readonly Clause[]): boolean
  event(row: number): StoredEvent
  /** The codes of a field, one per row. */
  codes(member: number): Float64Array
  /** The session as JSON text. */
  session(row: number): string
  /** The text of a field whose code is a hash. */
  hashedText(member: number, row: number): string | null
}

/** Codes of one clause. With more, such as a prefix of types, reading the rows costs the same. */
const codesProbedMax = 8

/** Null when the block is deleted, or when its columns show that none of its rows match. */
export function readBlock(db: Database, zone: Zone, clauses: readonly Clause[] = []): OpenBlock | null {
  const columns = columnsOf(db, zone)
  if (columns === null || !clauses.every((clause) => mayMatch(columns, clause))) return null
  const { place } = zone
  let bodies: Bodies | null = null
  let names: Names | null = null
  let spilled: Spilled[] | null = null

  function openedBodies(): Bodies {
    return (bodies ??= openBodies(blob(db, place, 'bodies'), columns!.rows))
  }

  function openedNames(): Names {
    return (names ??= openNames(blob(db, place, 'ids'), columns!.rows))
  }

  function confirmed(row: number, clause: Clause, code: number): boolean {
    const texts = clause.hashed.get(code)
    if (texts === undefined) return true
    if (clause.member === member.sessionId) return texts.has(JSON.parse(openedNames().session(row)) as string)
    const text = hashedText(clause.member, row)
    return text !== null && texts.has(text)
  }

  function hashedText(index: number, row: number): string | null {
    spilled ??= openedBodies().spilled()
    return spilled.find(([at, of]) => at === row && of === index)?.[2] ?? null
  }

  return {
    firstSeq: seqOf(place),
    rows: columns.rows,
    at: (row) => columns.value(extra.at, row),
    key: (row) => columns.value(extra.key, row),
    received: (row) => columns.value(extra.received, row),
    code: (index, row) => columns.value(index, row),
    matches(row, clauses) {
      if (columns.value(member.type, row) === 0) return false
      for (const clause of clauses) {
        const code = columns.value(clause.member, row)
        if (!clause.codes.has(code) || (clause.hashed.size > 0 && !confirmed(row, clause, code))) return false
      }
      return true
    },
    codes: (index) => columns.column(index),
    session: (row) => openedNames().session(row),
    hashedText,
    event(row) {
      const split = {
        text: openedBodies().text(row),
        idAt: columns.value(extra.idAt, row),
        sessionAt: columns.value(extra.sessionAt, row),
      }
      return {
        seq: seqOf(place) + row,
        occurredAtMs: columns.value(extra.at, row),
        receivedAtMs: columns.value(extra.received, row),
        json: joinText(split, openedNames().id(row), openedNames().session(row)),
      }
    },
  }
}

function mayMatch(columns: PackedColumns, { member: index, codes }: Clause): boolean {
  if (codes.size > codesProbedMax) return true
  for (const code of codes) if (columns.holds(index, code)) return true
  return false
}

function blob(db: Database, place: number, name: 'ids' | 'bodies'): Uint8Array {
  const sql = name === 'ids' ? 'SELECT ids AS blob FROM event_body' : 'SELECT bodies AS blob FROM event_body'
  const row = db.query<{ blob: Uint8Array }, [number]>(`${sql} WHERE place = ?`).get(place)
  if (row === null) throw new StoreError('corrupt', `the bodies of block ${place} are missing`)
  return row.blob
}
