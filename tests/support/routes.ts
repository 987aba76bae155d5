/** The route table of the whole appliance, as data, for tests that must cover every route. */
import { createApp } from '../../server/app.ts'
import type { Route } from '../../server/app.ts'
import type { Services } from '../../server/services.ts'

/** Building the routes reads the services of a server, but uses none of them. */
function untouchedServices(): Services {
  const placeholder: unknown = new Proxy(() => placeholder, {
    get: () => placeholder,
    apply: () => placeholder,
  })
  return placeholder as Services
}

export function allRoutes(): Route[] {
  return createApp(untouchedServices()).routes.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`
}
