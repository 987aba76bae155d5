/** What Logs, the live stream and saved views read from an event: filterable fields, and its time in lists. */
import { filterableFields, traceParameter } from '../../db/contract/event-fields.ts'
import type { EventProvenance, ReceivedEvent, TraceEvent } from './event-shapes.ts'

interface FieldFilter {
  parameter: string // of GET /v1/traces
  label: string
  /** The value of the field in an event, or in its record. */
  valueOf: (received: Pick<ReceivedEvent, 'event' | 'record'>) => unknown
}

/** Types and outcomes have their own controls. */
export const fieldFilters: readonly FieldFilter[] = [
  ...filterableFields
    .filter(({ name }) => name !== 'type' && name !== 'outcome')
    .map(({ name, path, label }): FieldFilter => {
      const parameter = traceParameter(name)
      // The verdict is the record's, whoever gave it.
      if (path === null || name === 'verdict')
        return { parameter, label, valueOf: ({ record }) => record?.[name as keyof EventProvenance] }
      return { parameter, label, valueOf: ({ event }) => valueAt(event, path) }
    }),
  { parameter: 'network', label: 'network', valueOf: ({ record }) => record?.network },
]

function valueAt(event: TraceEvent, path: readonly string[]): unknown {
  let value: unknown = event
  for (const name of path) value = (value as { [name: string]: unknown } | null | undefined)?.[name]
  return value
}

/** A client's clock may be ahead by this much. Beyond it, the time of receipt counts. */
const aheadMaxMs = 5 * 60_000

/** The time that orders an event in lists (contract §6). A test compares it with the server's. */
export function eventTimeMs(occurredAtMs: number, receivedAtMs: number): number {
  return aheadMs(occurredAtMs, receivedAtMs) > 0 ? receivedAtMs : occurredAtMs
}

/** How far the client's clock was ahead if that is too far, else 0. */
export function aheadMs(occurredAtMs: number, receivedAtMs: number): number {
  return occurredAtMs > receivedAtMs + aheadMaxMs ? occurredAtMs - receivedAtMs : 0
}
