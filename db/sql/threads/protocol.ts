/**
 * The messages between the calling thread and the workers: one string each, because a string crosses threads several
 * times cheaper than the same data as an object.
 *
 * A request is a JSON list [id, verb, command]. The command of an append is the number of parts that follow, each after
 * a record separator. They are parcels: a JSON list of everything but the events' texts, then these without id and
 * session, so that they are not escaped again; JSON text cannot contain that character. So do the texts of a push,
 * which are up to 8 MiB.
 * A response is the JSON list [id, result] or [id, null, failure], after any number of [id, share, "progress"].
 * Events return in the same format: a separator, [id,
 * the result without them, their numbers], and their texts; rows of metrics without numbers, as one text.
 */
import { StoreError, type StoreErrorKind } from '../../contract/errors.ts'
import type { AccessLines } from '../../contract/access-logs.ts'
import type { MemoryPush, ToolPush } from '../../contract/registry.ts'
import type { ScopeCount } from '../../contract/ingest-counts.ts'
import type { StoredEvent } from '../../contract/event-fields.ts'
import {
  areColumnsOf,
  columnOf,
  columnsOf,
  recordAt,
  splitText,
  valueAt,
  type Column,
  type RecordColumns,
} from '../../rules/event-record.ts'
import type {
  AppendResult,
  Door,
  EventBatch,
  EventRecord,
  MetricsText,
  Provenance,
} from '../../contract/store.ts'

const separator = '\u001e'

interface Failure {
  kind: StoreErrorKind
  message: string
}

/** The outcome of one batch of a group. */
export type AppendOutcome = AppendResult | Failure

/** How many events were stored, for a batch of which nothing else is to say, as for nearly all. */
export type BriefOutcome = number | AppendOutcome

function briefly(outcome: AppendOutcome): BriefOutcome {
  if ('kind' in outcome || outcome.deduped > 0 || outcome.rejected.length > 0) return outcome
  return outcome.access === undefined ? outcome.accepted : outcome
}

export function packOutcomes(outcomes: readonly AppendOutcome[]): BriefOutcome[] {
  return outcomes.map(briefly)
}

export function unpackOutcomes(brief: unknown): AppendOutcome[] {
  return (brief as BriefOutcome[]).map((outcome) =>
    typeof outcome === 'number' ? { accepted: outcome, deduped: 0, rejected: [] } : outcome,
  )
}

type Request = [id: number, verb: string, command: unknown]
export type Answer = [id: number, result: unknown, failure?: Failure]
/** How much of a long read is done. */
export type Progress = [id: number, share: number, kind: 'progress']

/** Verbs whose result has `events`. */
const verbsOfEvents: readonly string[] = ['events.page', 'events.tail']

/** The verb whose result has `rowsJson`. */
const verbOfRows = 'events.metricsText'

type EventNumbers = [seq: number, occurredAtMs: number, receivedAtMs: number, provenance?: Provenance]

export function packAnswer(id: number, verb: string, result: unknown): string {
  if (verb === verbOfRows) {
    const { rowsJson, ...metricsFields } = result as MetricsText
    return ['', JSON.stringify([id, metricsFields]), rowsJson].join(separator)
  }
  if (!verbsOfEvents.includes(verb)) return JSON.stringify([id, result ?? null] satisfies Answer)
  const { events, ...otherFields } = result as { events: StoredEvent[] }
  const numbers = events.map(({ seq, occurredAtMs, receivedAtMs, provenance }): EventNumbers => {
    return provenance === undefined
      ? [seq, occurredAtMs, receivedAtMs]
      : [seq, occurredAtMs, receivedAtMs, provenance]
  })
  const parts = ['', JSON.stringify([id, otherFields, numbers])]
  for (const { json } of events) parts.push(json)
  return parts.join(separator)
}

export function unpackAnswer(message: string): Answer | Progress {
  if (!message.startsWith(separator)) return JSON.parse(message) as Answer | Progress
  const [head = '', ...texts] = message.slice(1).split(separator)
  const [id, otherFields, numbers] = JSON.parse(head) as [number, object, EventNumbers[]?]
  if ((numbers?.length ?? 1) !== texts.length) throw new StoreError('internal', 'an answer is incomplete')
  if (numbers === undefined) return [id, { ...otherFields, rowsJson: texts[0]! }]
  const events = numbers.map(([seq, occurredAtMs, receivedAtMs, provenance], index): StoredEvent => {
    const event = { seq, occurredAtMs, receivedAtMs, json: texts[index]! }
    return provenance === undefined ? event : { ...event, provenance }
  })
  return [id, { ...otherFields, events }]
}

export function failureOf(error: StoreError): Failure {
  return { kind: error.kind, message: error.message }
}

/** Everything of some batches but their events. Single posts share nearly all of it. */
interface BatchColumns {
  orgId: Column<string>
  keyId: Column<string>
  door: Column<Door>
  receivedAtMs: Column<number>
  events: Column<number>
  rejected: Column<number | null> // null in a batch without counts
  aheadMaxMs: Column<number>
  behindMinMs: Column<number | null>
  keptSinceMs: Column<number>
  scopes: Column<ScopeCount[] | null>
  access: Column<AccessLines | null>
}

type ParcelHead = [
  columns: RecordColumns,
  idAt: Column<number>,
  sessionAt: Column<number>,
  batches: number,
  of: BatchColumns,
]

function batchColumns(batches: readonly EventBatch[]): BatchColumns {
  return {
    orgId: columnOf(batches, ({ orgId }) => orgId),
    keyId: columnOf(batches, ({ keyId }) => keyId),
    door: columnOf(batches, ({ door }) => door),
    receivedAtMs: columnOf(batches, ({ receivedAtMs }) => receivedAtMs),
    events: columnOf(batches, ({ events }) => events.length),
    rejected: columnOf(batches, ({ count }) => count?.rejected ?? null),
    aheadMaxMs: columnOf(batches, ({ count }) => count?.aheadMaxMs ?? 0),
    behindMinMs: columnOf(batches, ({ count }) => count?.behindMinMs ?? null),
    keptSinceMs: columnOf(batches, ({ count }) => count?.keptSinceMs ?? 0),
    scopes: columnOf(batches, ({ count }) => (count?.scopes?.length ? count.scopes : null)),
    access: columnOf(batches, ({ access }) => access ?? null),
  }
}

function batchAt(columns: BatchColumns, index: number, events: EventRecord[]): EventBatch {
  const rejected = valueAt(columns.rejected, index)
  const scopes = valueAt(columns.scopes, index)
  const access = valueAt(columns.access, index)
  const batch: EventBatch = {
    orgId: valueAt(columns.orgId, index),
    keyId: valueAt(columns.keyId, index),
    door: valueAt(columns.door, index),
    receivedAtMs: valueAt(columns.receivedAtMs, index),
    events,
  }
  if (access !== null) batch.access = access
  if (rejected === null) return batch
  batch.count = {
    rejected,
    aheadMaxMs: valueAt(columns.aheadMaxMs, index),
    behindMinMs: valueAt(columns.behindMinMs, index),
    keptSinceMs: valueAt(columns.keptSinceMs, index),
  }
  if (scopes !== null) batch.count.scopes = scopes
  return batch
}

/** Batches that travel together. One text costs the garbage collector nothing; records cost a visit each. */
export interface Parcel {
  batches: { orgId: string; events: number }[]
  events: number
  text: string
}

/** The events of all batches share their columns, so a batch of one event costs little more than an event of many. */
export function packBatches(batches: readonly EventBatch[]): Parcel {
  const [only] = batches
  const events = batches.length === 1 ? only!.events : batches.flatMap((batch) => batch.events)
  // Without what is in the columns: the text is shorter, and the writer has the most to do.
  const cuts = events.map(({ id, sessionId, json }) => {
    return splitText(json, JSON.stringify(id), JSON.stringify(sessionId))
  })
  const head: ParcelHead = [
    columnsOf(events),
    columnOf(cuts, ({ idAt }) => idAt),
    columnOf(cuts, ({ sessionAt }) => sessionAt),
    batches.length,
    batchColumns(batches),
  ]
  const parts = [JSON.stringify(head)]
  for (const { text } of cuts) parts.push(text)
  return {
    batches: batches.map((batch) => ({ orgId: batch.orgId, events: batch.events.length })),
    events: events.length,
    text: parts.join(separator),
  }
}

export function packAppend(id: number, parcels: readonly Parcel[]): string {
  const parts = parcels.reduce((sum, { events }) => sum + 1 + events, 0)
  return [JSON.stringify([id, 'append', parts]), ...parcels.map(({ text }) => text)].join(separator)
}

/** Where a command has JSON texts: each of these objects has one in its field `json`. */
const textsOf: { [verb: string]: (command: unknown) => { json: string }[] } = {
  'registry.pushTools': (command) => (command as ToolPush).tools,
  'registry.pushMemory': (command) => [command as MemoryPush],
}

export function packRequest(id: number, verb: string, command: unknown): string {
  const texts = textsOf[verb]?.(command).map(({ json }) => json)
  if (texts === undefined) return JSON.stringify([id, verb, command])
  const withoutTexts = (name: string, value: unknown) => (name === 'json' ? '' : value)
  return [JSON.stringify([id, verb, command], withoutTexts), ...texts].join(separator)
}

/** The request of a message. For an append, `parts` are the batches after it. */
export function unpackRequest(message: string): { request: Request; parts: string[] } {
  const end = message.indexOf(separator)
  if (end < 0) return { request: JSON.parse(message) as Request, parts: [] }
  const parts = message.slice(end + 1).split(separator)
  const request = JSON.parse(message.slice(0, end)) as Request
  const [, verb, command] = request
  const withTexts = textsOf[verb]?.(command)
  if (withTexts === undefined) return { request, parts }
  if (withTexts.length !== parts.length) throw new StoreError('internal', 'a push is incomplete')
  for (const [index, record] of withTexts.entries()) record.json = parts[index]!
  return { request, parts: [] }
}

/** The batches of an append with this number of parts. */
export function unpackBatches(partCount: unknown, parts: string[]): EventBatch[] {
  if (parts.length !== partCount) throw new StoreError('internal', 'an append is incomplete')
  const batches: EventBatch[] = []
  for (let next = 0; next < parts.length;) {
    const [columns, idAt, sessionAt, count, batchFields] = JSON.parse(parts[next++]!) as ParcelHead
    let events = 0
    for (let index = 0; index < count; index++) events += valueAt(batchFields.events, index)
    const first = next
    next += events
    if (next > parts.length || !areColumnsOf(columns, events))
      throw new StoreError('internal', 'an append is incomplete')
    let eventIndex = 0
    for (let index = 0; index < count; index++) {
      const records: EventRecord[] = []
      for (const end = eventIndex + valueAt(batchFields.events, index); eventIndex < end; eventIndex++)
        records.push(
          recordAt(
            columns,
            eventIndex,
            parts[first + eventIndex]!,
            valueAt(idAt, eventIndex),
            valueAt(sessionAt, eventIndex),
          ),
        )
      batches.push(batchAt(batchFields, index, records))
    }
  }
  return batches
}
