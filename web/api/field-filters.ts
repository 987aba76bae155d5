/** The fields that Logs, the live stream and saved views filter events by, from the server's table of fields. */
import { filterableFields } from '../../db/contract/event-fields.ts'
import type { TraceEvent } from './event-shapes.ts'

export interface FieldFilter {
  parameter: string // of GET /v1/traces
  label: string
  /** The value of the field in an event. */
  valueOf: (event: TraceEvent) => unknown
}

/** Types and outcomes have their own controls. */
export const fieldFilters: readonly FieldFilter[] = filterableFields
  .filter(({ name }) => name !== 'type' && name !== 'outcome')
  .map(({ name, path, label }) => ({
    parameter: name === 'class' ? 'agentClass' : name,
    label,
    valueOf: (event) => valueAt(event, path),
  }))

function valueAt(event: TraceEvent, path: readonly string[]): unknown {
  let value: unknown = event
  for (const name of path) value = (value as { [name: string]: unknown } | null | undefined)?.[name]
  return value
}
