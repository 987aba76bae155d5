/** The route table of an Elysia app as data: which methods a path takes, for 405 with `Allow`. */
import type { AnyElysia } from 'elysia'

export interface Route {
  method: string
  path: string // with :parameters
}

export function routesOf(app: AnyElysia): Route[] {
  return app.routes.map(({ method, path }) => ({ method, path }))
}

/** Returns a function from a path to the methods its route takes (HEAD with GET), empty when no route matches. */
export function methodFinder(routes: Route[]): (path: string) => string[] {
  const table = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  for (const { method, path } of routes) {
    let row = table.get(path)
    if (!row) {
      // The router takes a trailing slash too.
      const source = path.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : RegExp.escape(part)))
      row = { pattern: new RegExp(`^${source.join('/')}/?$`), methods: new Set() }
      table.set(path, row)
    }
    row.methods.add(method)
    if (method === 'GET') row.methods.add('HEAD')
  }
  return (path) => {
    const found = new Set<string>()
    for (const { pattern, methods } of table.values())
      if (pattern.test(path)) for (const m of methods) found.add(m)
    return [...found].sort()
  }
}
