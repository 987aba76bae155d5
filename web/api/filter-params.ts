/** A filter as the parameters of a request. */
import type { EventFilter } from './event-shapes.ts'

export function filterParams(filter: EventFilter): URLSearchParams {
  const params = new URLSearchParams()
  for (const type of filter.types) params.append('type', type)
  for (const outcome of filter.outcomes) params.append('outcome', outcome)
  for (const { name, value } of filter.where ?? []) params.append(name, value)
  return params
}
