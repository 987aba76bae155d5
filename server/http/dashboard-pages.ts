/** The addresses that the dashboard's own router knows; every other one is answered 404, with the page that says so. */

/** Each with what lies below it. `tests/api/dashboard-addresses.test.ts` holds them against the router's table. */
const withPlaces = [
  '/detect',
  '/auth',
  '/authz',
  '/tools',
  '/knaph',
  '/logs',
  '/sessions',
  '/analytics',
  '/webhooks',
  '/settings',
]

/** The ways in. */
const alone = ['/', '/setup', '/sign-in', '/reset', '/invitation']

export function isDashboardPage(path: string): boolean {
  return alone.includes(path) || withPlaces.some((page) => path === page || path.startsWith(`${page}/`))
}
