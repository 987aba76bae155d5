/** Which part of the house may know which other (design: sdk and web reach the server over HTTP only). */
import type { Import } from './imports.ts'
import { type Finding, isTest, type Source } from './source.ts'

interface Law {
  rule: string
  message: string
  /** Whether this import breaks the law. */
  breaks: (edge: Import) => boolean
}

const isWithin = (folder: string) => (path: string | null) => path?.startsWith(`${folder}/`) === true
const [inDb, inWeb, inServer, inSdk] = ['db', 'web', 'server', 'sdk'].map(isWithin) as [
  Test,
  Test,
  Test,
  Test,
]
type Test = (path: string | null) => boolean

const isPackage = (edge: Import, name: string): boolean =>
  edge.specifier === name || edge.specifier.startsWith(`${name}/`)

const speaksHttp = (path: string): boolean =>
  path === 'server/app.ts' || path.startsWith('server/http/') || /[/-](routes|model)\.ts$/.test(path)

/** Tests may also use what tests share. */
const leaves = (edge: Import, inside: Test): boolean =>
  edge.to !== null &&
  inside(edge.from) &&
  !inside(edge.to) &&
  !(isTest(edge.from) && edge.to.startsWith('tests/'))

const laws: Law[] = [
  { rule: 'db-alone', message: 'db/ imports nothing outside db/', breaks: (edge) => leaves(edge, inDb) },
  { rule: 'sdk-alone', message: 'sdk/ imports nothing outside sdk/', breaks: (edge) => leaves(edge, inSdk) },
  {
    rule: 'web-types-only',
    message:
      'web/ imports only types from server/, only in web/api/*.ts, the arithmetic of time zones, the sentences of waits, ' +
      'the table of event fields, the judges of verdicts, units and how long data is stored',
    breaks: (edge) =>
      leaves(edge, inWeb) &&
      edge.to !== 'server/text/time-zone.ts' &&
      edge.to !== 'server/text/waiting.ts' &&
      edge.to !== 'db/contract/event-fields.ts' &&
      edge.to !== 'db/contract/provenance.ts' &&
      edge.to !== 'db/contract/units.ts' &&
      edge.to !== 'db/rules/retention-days.ts' &&
      !(/^web\/api\/[^/]+\.ts$/.test(edge.from) && edge.typeOnly && inServer(edge.to)),
  },
  {
    rule: 'engine-behind-seam',
    message: 'only db/ knows an engine: use db/contract/store.ts and db/open.ts',
    breaks: (edge) =>
      inServer(edge.from) && !isTest(edge.from) && /^db\/(sql|sqlite|postgres)\//.test(edge.to ?? ''),
  },
  {
    rule: 'server-alone',
    message:
      'server/ imports from server/ and db/ only, and the list of agents and the judge, which the client package shares',
    breaks: (edge) =>
      leaves(edge, inServer) &&
      !inDb(edge.to) &&
      edge.to !== 'package.json' &&
      !/^sdk\/(agents|judge)\//.test(edge.to ?? ''),
  },
  {
    rule: 'elysia',
    message: 'only routes, models, app.ts and http/ import elysia',
    breaks: (edge) =>
      isPackage(edge, 'elysia') &&
      !isTest(edge.from) &&
      !speaksHttp(edge.from) &&
      !edge.from.startsWith('scripts/'),
  },
  {
    rule: 'driver',
    message: 'only db/sql/ and the engines import drizzle-orm, and only db/sqlite/ bun:sqlite',
    breaks: (edge) =>
      !edge.from.startsWith('tests/') &&
      ((isPackage(edge, 'drizzle-orm') && !/^db\/(sql|sqlite|postgres)\//.test(edge.from)) ||
        (edge.specifier === 'bun:sqlite' && !edge.from.startsWith('db/sqlite/'))),
  },
  {
    rule: 'extension',
    message: 'relative imports name the file with its extension',
    breaks: (edge) => edge.to !== null && !/\.\w+$/.test(edge.specifier),
  },
]

export function importRules(edges: Import[]): Finding[] {
  return edges.flatMap((edge) =>
    laws
      .filter((law) => law.breaks(edge))
      .map(({ rule, message }) => ({
        rule,
        path: edge.from,
        line: edge.line,
        message: `${message} (${edge.specifier})`,
      })),
  )
}

/** Every circle of imports once, named by its smallest path. Types count: a circle of types is a circle of ideas. */
export function cycles(edges: Import[]): Finding[] {
  const next = new Map<string, string[]>()
  for (const { from, to } of edges) if (to !== null) next.set(from, [...(next.get(from) ?? []), to])
  const cycleFindings = new Map<string, Finding>()
  const visitedPaths = new Set<string>()
  const visit = (path: string, trail: string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      const circle = trail.slice(start)
      const key = circle.toSorted().join(' ')
      const message = [...circle, path].join(' -> ')
      if (!cycleFindings.has(key))
        cycleFindings.set(key, { rule: 'cycle', path: circle.toSorted()[0] ?? path, line: 1, message })
      return
    }
    if (visitedPaths.has(path)) return
    for (const to of next.get(path) ?? []) visit(to, [...trail, path])
    visitedPaths.add(path)
  }
  for (const path of next.keys()) visit(path, [])
  return [...cycleFindings.values()]
}

/** A file that only passes on what others have: import those. */
export function barrel({ path, text }: Source, edges: Import[]): Finding[] {
  const ownText = text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^(import|export)\b[^'"=]*from\s*['"][^'"]+['"].*$/gm, '')
  const local = edges.filter((edge) => edge.from === path && edge.to !== null && /\.tsx?$/.test(edge.to))
  if (local.length === 0 || ownText.trim() !== '') return []
  return [{ rule: 'barrel', path, line: 1, message: 'only passes on what other files have' }]
}
