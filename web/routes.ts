/** The table of pages, used by the navigation, the palette, the shortcuts and the server's list of paths. */
import type { ComponentType } from 'preact'

export interface PageRoute {
  path: string
  name: string
  group: 'Start' | 'Agents' | 'Site' | 'Record' | 'Deliver' | 'Own'
  key: string // shortcut: g, then this key
  load: () => Promise<PageCode>
  counted?: string // event type whose count is shown beside the page in the navigation, or `unit`: requests or visits
  counts?: true // the page counts a range and shares its totals with the navigation (query/use-query.ts)
}

export interface PageCode {
  default: ComponentType
  /** Runs the page's first queries before it is opened, so that it opens with data. */
  prefetch?: () => Promise<unknown>
}

type Page = [path: string, name: string, group: PageRoute['group'], key: string, load: PageRoute['load']]

const page = (...[path, name, group, key, load]: Page): PageRoute => ({ path, name, group, key, load })

/** A page that counts a range. With `counted` null, the navigation shows no count. */
const counting = (counted: string | null, ...pageParts: Page): PageRoute => ({
  ...page(...pageParts),
  ...(counted !== null && { counted }),
  counts: true,
})

export const routes: PageRoute[] = [
  page('/overview', 'Overview', 'Start', 'o', () => import('./pages/overview/page.tsx')),
  counting('unit', '/detect', 'Detect', 'Agents', 'd', () => import('./pages/detect/page.tsx')),
  counting('auth.identity_presented', '/auth', 'Auth', 'Agents', 'a', () => import('./pages/auth/page.tsx')),
  counting('authz.evaluated', '/authz', 'Authz', 'Agents', 'z', () => import('./pages/authz/page.tsx')),
  counting('tool.executed', '/tools', 'WebMCP Tools', 'Site', 't', () => import('./pages/tools/page.tsx')),
  counting('memory.accessed', '/knaph', 'Knaph', 'Site', 'k', () => import('./pages/knaph/page.tsx')),
  page('/logs', 'Logs', 'Record', 'l', () => import('./pages/logs/page.tsx')),
  page('/sessions', 'Sessions', 'Record', 's', () => import('./pages/sessions/page.tsx')),
  counting(null, '/analytics', 'Analytics', 'Record', 'y', () => import('./pages/analytics/page.tsx')),
  page('/webhooks', 'Webhooks', 'Deliver', 'w', () => import('./pages/webhooks/page.tsx')),
  page('/settings', 'Settings', 'Own', ',', () => import('./pages/settings/page.tsx')),
]

/** The start page. */
export const frontPage = '/overview'

/** Paths that work without a sign-in. */
export const entryPaths = ['/setup', '/sign-in', '/reset', '/invitation']

/** Every path for which the server returns the dashboard. A page also owns the paths below its own. */
export const dashboardPaths = {
  pages: routes.map(({ path }) => path),
  exact: ['/', ...entryPaths],
}

/** The page of a path: `/settings/api-keys` belongs to Settings. */
export function routeOf(path: string): PageRoute | null {
  return routes.find((route) => path === route.path || path.startsWith(`${route.path}/`)) ?? null
}
