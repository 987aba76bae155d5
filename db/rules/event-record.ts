/** Rules of an event record: its values in a fixed order, and the time that orders and counts it. */
import { eventFields } from '../contract/event-fields.ts'
import type { EventRecord } from '../contract/store.ts'

/** An event as it crosses to the thread that stores it: with these, its JSON lacks the id and the session. */
export interface SentEvent extends EventRecord {
  idAt?: number
  sessionAt?: number
}

type Value = string | number | null

/** The values of each field of some records, except their JSON. */
export type RecordColumns = Column<Value>[]

/** The values of some rows. A list with one value holds for all of them. */
export type Column<T> = T[]

const names = ['id', 'occurredAtMs', 'durationMs', ...eventFields.map(({ name }) => name)]

/*
 * These functions are compiled from the table, because a loop over names takes twice as long.
 */

const readers = names.map((name) => compile('event', `return event.${name}`)) as ((
  event: EventRecord,
) => Value)[]

/** Events of one batch share most of their values, which are then written and parsed once. */
export function columnsOf(events: readonly EventRecord[]): RecordColumns {
  return readers.map((read) => columnOf(events, read))
}

/** Reads one value of each row. */
export function columnOf<Row, T>(rows: readonly Row[], read: (row: Row) => T): Column<T> {
  if (rows.length === 0) return []
  const value = read(rows[0]!)
  let same = 1
  while (same < rows.length && read(rows[same]!) === value) same++
  return same === rows.length ? [value] : rows.map(read)
}

/** The value of a row of which the column has one. */
export function valueAt<T>(column: Column<T>, row: number): T {
  return column[column.length === 1 ? 0 : row]!
}

export function areColumnsOf(columns: RecordColumns, events: number): boolean {
  return columns.length === names.length && columns.every(({ length }) => length === events || length === 1)
}

export const recordAt = compile(
  'columns, at, json, idAt, sessionAt',
  `return { ${names
    .map((name, index) => `${name}: columns[${index}][columns[${index}].length === 1 ? 0 : at]`)
    .join()}, json, idAt, sessionAt }`,
) as (columns: RecordColumns, at: number, json: string, idAt: number, sessionAt: number) => SentEvent

/** Calls `intern` with the number and the text of each field that is there. The session has a code of its own. */
export const internFields = compile(
  'event, intern',
  eventFields
    .filter(({ name }) => name !== 'sessionId')
    .map(({ name, number }) => `if (event.${name} !== null) intern(${number}, event.${name})`)
    .join('\n'),
) as (event: EventRecord, intern: (field: number, text: string) => void) => void

/** The source consists of the names and numbers above only. */
function compile(parameters: string, body: string): unknown {
  return new Function(parameters, body)
}

/** The most that a sender's clock may be ahead. Beyond it the arrival time counts. */
const aheadMaxMs = 5 * 60_000

/** The time by which an event is ordered, filtered and counted (contract §6). */
export function eventTimeMs(occurredAtMs: number, receivedAtMs: number): number {
  return occurredAtMs > receivedAtMs + aheadMaxMs ? receivedAtMs : occurredAtMs
}

/** Clocks of nodes that are further apart are not both right, and a clock may have been corrected since. */
const skewMaxMs = 60 * 60_000

/**
 * The arrival time that is stored: it does not fall while arrival numbers rise, although the clocks of nodes differ.
 * After a clock that was more than an hour ahead, arrivals show their own time again.
 */
export function arrivalTimeMs(stampMs: number, newestMs: number): number {
  return newestMs - stampMs <= skewMaxMs ? Math.max(stampMs, newestMs) : stampMs
}
