/** Functions over all fields of a record, compiled from the table: a loop over names takes twice as long. */
import { eventFields } from '../contract/event-fields.ts'
import type { EventRecord } from '../contract/store.ts'

export type RecordValues = (string | number | null)[]

const names = ['id', 'occurredAtMs', 'durationMs', ...eventFields.map(({ name }) => name)]

/** The values of a record but its JSON, in the order in which `recordOf` expects them. */
export const valuesOf = compile('event', `return [${names.map((name) => `event.${name}`).join()}]`) as (
  event: EventRecord,
) => RecordValues

export const valuesPerRecord = names.length

export const recordOf = compile(
  'values, json',
  `return { ${names.map((name, index) => `${name}: values[${index}]`).join()}, json }`,
) as (values: RecordValues, json: string) => EventRecord

/** Calls `intern` with the number and the text of each field but the session, which has its own code. */
export const internFields = compile(
  'event, intern',
  eventFields
    .filter(({ name }) => name !== 'sessionId')
    .map(({ name, number }) => `intern(${number}, event.${name})`)
    .join('\n'),
) as (event: EventRecord, intern: (field: number, text: string | null) => void) => void

/** Of nothing but the names and numbers above. */
function compile(parameters: string, body: string): unknown {
  return new Function(parameters, body)
}
