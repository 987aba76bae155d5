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
  const table = new Map<string, { pattern: RegExp; methods: Set<string>; isLiteral: boolean }>()
  for (const { method, path } of routes) {
    let row = table.get(path)
    if (!row) {
      // The router takes a trailing slash too.
      const source = path.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : RegExp.escape(part)))
      const pattern = new RegExp(`^${source.join('/')}/?$`)
      row = { pattern, methods: new Set(), isLiteral: !path.includes('/:') }
      table.set(path, row)
    }
    row.methods.add(method)
    if (method === 'GET') row.methods.add('HEAD')
  }
  return (path) => {
    const rows = [...table.values()].filter(({ pattern }) => pattern.test(path))
    // An address with a name of its own is not an id: what ids take does not count there.
    const literal = rows.filter(({ isLiteral }) => isLiteral)
    const found = (literal.length > 0 ? literal : rows).flatMap(({ methods }) => [...methods])
    return [...new Set(found)].sort()
  }
}
