/** Reads the filters of contract §6 from a query string into the store's `EventFilter`. */
import type { EventFilter } from '../../db/store.ts'
import { invalidQuery, type ParameterKind, type Query } from '../http/query.ts'
import { parseQueryTime } from '../http/query-time.ts'

/** The filter parameters this endpoint takes today, and whether they may repeat. */
export const filterParameters: Record<string, ParameterKind> = {
  type: 'many',
  outcome: 'many',
  since: 'one',
  until: 'one',
}

const typeForm = /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?$/

/** The filter the query asks for; throws 400 `invalid_query` naming the parameter that is malformed. */
export function readFilter(query: Query): EventFilter {
  const filter: EventFilter = {}
  const types = query.many('type')
  if (types) {
    for (const type of types) {
      if (type !== '' && (type.length > 66 || !typeForm.test(type))) {
        throw invalidQuery(
          'type',
          'type must be a dotted kind such as tool.executed, or a prefix such as tool.*',
        )
      }
    }
    filter.types = canonical(types)
  }
  const outcomes = query.many('outcome')
  if (outcomes) filter.outcomes = canonical(outcomes)
  const since = query.one('since')
  if (since !== undefined) filter.sinceMs = parseQueryTime('since', since)
  const until = query.one('until')
  if (until !== undefined) filter.untilMs = parseQueryTime('until', until)
  return filter
}

/** Order and repetition of a list do not matter, so equal filters get equal texts (a cursor compares them). */
function canonical(values: string[]): string[] {
  return [...new Set(values)].sort()
}
