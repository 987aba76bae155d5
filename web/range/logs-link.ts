/** Addresses of the Logs page that show the events behind a number. */

import { query } from '../app/router.ts'
import { canFilter, filterable, filtersOf, type LogsFilter } from './filters.ts'

export type { LogsFilter }

/** The fields are named as in GET /v1/traces. The filters of the page go along, as far as Logs has them. */
export function logsHref({ siteIds = [], ...fields }: LogsFilter): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) params.set(name, value)
  for (const { name, value } of canFilter() ? filtersOf(query.value) : []) {
    const field = filterable[name]?.logs
    // Of a value that the link names itself, the page shows what passes the filter already.
    if (field != null && !Object.hasOwn(fields, field)) params.append(field, value)
  }
  for (const siteId of siteIds) params.append('siteId', siteId)
  return `/logs?${params.toString().replaceAll('%2A', '*')}`
}
