/** What the pages that are not built yet will show, and which kept events belong to them. */
import type { SampleKind } from '../../curl.ts'

export interface PlannedPage {
  path: string
  name: string // its title, as in the table of pages; told again here because that table loads this code
  shows: string
  prefix: string | null // first word of its event types; null: all events
  sample: SampleKind
  missing: string // title of its empty state
}

export const plannedPages: PlannedPage[] = [
  {
    path: '/tools',
    name: 'WebMCP Tools',
    shows: 'the synced tool registry, page by page, with token cost',
    prefix: 'tool',
    sample: 'tool',
    missing: 'No tools yet',
  },
  {
    path: '/knaph',
    name: 'Knaph',
    shows: 'site-memory snapshots and their quality score',
    prefix: 'memory',
    sample: 'memory',
    missing: 'No site memory yet',
  },
  {
    path: '/sessions',
    name: 'Sessions',
    shows: 'each session from detection to its last tool call',
    prefix: null,
    sample: 'agent',
    missing: 'No sessions yet',
  },
  {
    path: '/webhooks',
    name: 'Webhooks',
    shows: 'deliveries to your endpoints, with retries and dead letters',
    prefix: null,
    sample: 'agent',
    missing: 'Nothing to deliver yet',
  },
]

export interface KeptType {
  type: string
  count: number
}

/** The kept types of a page, most first. */
export function keptTypes(byType: { [type: string]: number }, prefix: string | null): KeptType[] {
  return Object.entries(byType)
    .filter(([type]) => prefix === null || type === prefix || type.startsWith(`${prefix}.`))
    .map(([type, count]) => ({ type, count }))
    .sort((a, b) => b.count - a.count || (a.type < b.type ? -1 : 1))
}
