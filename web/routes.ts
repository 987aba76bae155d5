/** The table of pages: their names as the specification has them, their groups, and the code each needs. */
import type { ComponentType } from 'preact'

export interface PageRoute {
  path: string
  name: string
  group: 'Agents' | 'Site' | 'Record' | 'Deliver' | 'Own'
  prefix: string | null // first word of the event types that fill the page
  counted?: string // the type that its headline counts
  counts?: true // it counts a range, and gives the navigation its totals (range/totals.ts)
  key: string // g and then this letter goes there
  load: () => Promise<PageCode>
}

export interface PageCode {
  default: ComponentType
  /** Asks what the page would ask first if it were opened now, so that it then opens with an answer (`seen.ts`). */
  ahead?: () => Promise<unknown>
}

export const routes: PageRoute[] = [
  {
    path: '/detect',
    name: 'Detect',
    group: 'Agents',
    prefix: 'agent',
    counted: 'agent.detected',
    counts: true,
    key: 'd',
    load: () => import('./pages/detect/page.tsx'),
  },
  {
    path: '/auth',
    name: 'Auth',
    group: 'Agents',
    prefix: 'auth',
    counted: 'auth.identity_presented',
    counts: true,
    key: 'a',
    load: () => import('./pages/auth/page.tsx'),
  },
  {
    path: '/authz',
    name: 'Authz',
    group: 'Agents',
    prefix: 'authz',
    counted: 'authz.evaluated',
    counts: true,
    key: 'z',
    load: () => import('./pages/authz/page.tsx'),
  },
  {
    path: '/tools',
    name: 'WebMCP Tools',
    group: 'Site',
    prefix: 'tool',
    counted: 'tool.executed',
    counts: true,
    key: 't',
    load: () => import('./pages/tools/page.tsx'),
  },
  {
    path: '/knaph',
    name: 'Knaph',
    group: 'Site',
    prefix: 'memory',
    counted: 'memory.accessed',
    counts: true,
    key: 'k',
    load: () => import('./pages/knaph/page.tsx'),
  },
  {
    path: '/logs',
    name: 'Logs',
    group: 'Record',
    prefix: null,
    key: 'l',
    load: () => import('./pages/logs/page.tsx'),
  },
  {
    path: '/sessions',
    name: 'Sessions',
    group: 'Record',
    prefix: null,
    key: 's',
    load: () => import('./pages/sessions/page.tsx'),
  },
  {
    path: '/analytics',
    name: 'Analytics',
    group: 'Record',
    prefix: null,
    counts: true,
    key: 'y',
    load: () => import('./pages/analytics/page.tsx'),
  },
  {
    path: '/webhooks',
    name: 'Webhooks',
    group: 'Deliver',
    prefix: null,
    key: 'w',
    load: () => import('./pages/webhooks/page.tsx'),
  },
  {
    path: '/settings',
    name: 'Settings',
    group: 'Own',
    prefix: null,
    key: ',',
    load: () => import('./pages/settings/page.tsx'),
  },
]

/** Where the dashboard opens. */
export const frontPage = '/logs'

/** The page of an address: `/settings/api-keys` belongs to Settings. */
export function routeOf(path: string): PageRoute | null {
  return routes.find((route) => path === route.path || path.startsWith(`${route.path}/`)) ?? null
}
