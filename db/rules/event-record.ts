/** Rules of an event record: its values in a fixed order, the time by which it counts, and the text that is kept. */
import { eventFields, recordFields } from '../contract/event-fields.ts'
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

const ownFields = eventFields.filter(({ name }) => (recordFields as readonly string[]).includes(name))
const names = ['id', 'occurredAtMs', 'durationMs', 'network', ...ownFields.map(({ name }) => name)]

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
  let equalCount = 1
  while (equalCount < rows.length && read(rows[equalCount]!) === value) equalCount++
  return equalCount === rows.length ? [value] : rows.map(read)
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
) as (columns: RecordColumns, row: number, json: string, idAt: number, sessionAt: number) => SentEvent

/** Calls `intern` with the number and the text of each field that is there. The session has a code of its own. */
export const internFields = compile(
  'event, intern',
  ownFields
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

/* The JSON text of an event is kept without its id and session, which are stored once each. */
const idName = '"id":'
const sessionName = '"sessionId":'

export interface SplitText {
  text: string
  idAt: number // where the id belongs after the session was inserted; 0 when it stayed in the text
  sessionAt: number // where the session belongs in `text`
}

/**
 * `id` and `session` are JSON texts. Only the first field of each name is examined. It may belong to a nested object,
 * which is harmless because it is inserted at the same position.
 */
export function splitText(json: string, id: string, session: string): SplitText {
  const idAt = placeOf(json, idName, id)
  const idEnd = idAt + id.length
  const sessionAt = placeOf(json, sessionName, session)
  if (idAt === 0) return cut(json, 0, sessionAt, session)
  if (sessionAt < idEnd) return cut(json.slice(0, idAt) + json.slice(idEnd), idAt, sessionAt, session)
  const sessionEnd = sessionAt + session.length
  const text = json.slice(0, idAt) + json.slice(idEnd, sessionAt) + json.slice(sessionEnd)
  return { text, idAt, sessionAt: sessionAt - id.length }
}

function placeOf(json: string, name: string, value: string): number {
  const position = json.indexOf(name) + name.length
  return position >= name.length && json.startsWith(value, position) ? position : 0
}

/** Cuts only the session out of a text where it precedes the id, or whose id stays. */
function cut(text: string, idAt: number, sessionAt: number, session: string): SplitText {
  if (sessionAt === 0) return { text, idAt, sessionAt }
  return { text: text.slice(0, sessionAt) + text.slice(sessionAt + session.length), idAt, sessionAt }
}

/** Slices the given text only: slicing one that was just joined copies it once more. */
export function joinText({ text, idAt, sessionAt }: SplitText, id: string, session: string): string {
  if (idAt === 0) return sessionAt === 0 ? text : text.slice(0, sessionAt) + session + text.slice(sessionAt)
  if (sessionAt === 0) return text.slice(0, idAt) + id + text.slice(idAt)
  if (idAt <= sessionAt)
    return text.slice(0, idAt) + id + text.slice(idAt, sessionAt) + session + text.slice(sessionAt)
  const joinOffset = idAt - session.length
  return text.slice(0, sessionAt) + session + text.slice(sessionAt, joinOffset) + id + text.slice(joinOffset)
}
