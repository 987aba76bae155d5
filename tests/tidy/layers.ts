/**
 * The layers of the product from top to bottom, and two rules: no import goes up, and no two rooms import each other.
 * Imports of types count like others, because a type of a higher layer is knowledge of that layer. Tests may import
 * whatever they test.
 */
import { dirname } from 'node:path/posix'
import type { Import } from './imports.ts'
import { type Finding, isTest } from './source.ts'

/** Files and folders by layer. The longest path that names a file or a folder around it decides. */
const layers: { [tree: string]: string[][] } = {
  server: [
    ['server/main.ts'],
    ['server/cli/nouns.ts', 'server/cli/run.ts'],
    ['server/cli/commands'],
    ['server/cli'],
    ['server/runtime'],
    ['server/app.ts', 'server/jobs.ts', 'server/services.ts'],
    ['server/operations', 'server/demo'],
    // Doors and views: how events come in, and how people and programs read them.
    [
      'server/access',
      'server/api',
      'server/counts',
      'server/dashboard',
      'server/docs',
      'server/guide',
      'server/ingest',
      'server/mcp',
      'server/otlp',
      'server/parquet',
      'server/reports',
      'server/robots',
      'server/sharing',
      'server/webhooks',
    ],
    // Records: what the doors and the views rely on.
    ['server/identity/sign-in/routes.ts'], // signing in also accepts invitations
    ['server/audit', 'server/evidence', 'server/identity'],
    ['server/audit/entry.ts'], // every record has one
    ['server/http'],
    ['server/system'],
    [
      'server/clock.ts',
      'server/errors.ts',
      'server/ids.ts',
      'server/limits.ts',
      'server/log.ts',
      'server/text',
    ],
  ],
  db: [
    ['db/open.ts', 'db/copy'],
    ['db/sqlite/admin.ts', 'db/sqlite/copy.ts', 'db/postgres/admin.ts', 'db/postgres/copy.ts'],
    ['db/postgres/store.ts'],
    ['db/sqlite', 'db/postgres'],
    ['db/postgres/locks.ts'],
    ['db/postgres/connection', 'db/postgres/migrations'],
    ['db/sql/copy', 'db/sql/facts.ts', 'db/sql/reader.ts', 'db/sql/store/store.ts'],
    ['db/sql/verbs.ts'],
    // Nouns: the records beside the events, each with its verbs.
    [
      'db/sql/audit',
      'db/sql/identity',
      'db/sql/ingest-counts',
      'db/sql/nodes',
      'db/sql/pushed',
      'db/sql/retention',
      'db/sql/settings',
      'db/sql/webhooks',
    ],
    ['db/sql/contexts.ts'],
    ['db/sql/events'],
    ['db/sql/access'], // rows that are written in the transaction of their events
    ['db/sql/threads'],
    ['db/sql/database.ts', 'db/sql/judged-since.ts', 'db/sql/slices.ts'],
    ['db/rules'],
    ['db/contract'],
  ],
  web: [
    ['web/main.tsx'],
    ['web/shell.tsx', 'web/shell'],
    ['web/routes.ts'],
    ['web/pages'],
    ['web/charts'],
    ['web/range'],
    ['web/query', 'web/components'],
    ['web/text'],
    ['web/app'],
    ['web/live'],
    ['web/api'],
  ],
}

const places = new Map(
  Object.values(layers).flatMap((tree) =>
    tree.flatMap((paths, layer) => paths.map((path): [string, number] => [path, layer])),
  ),
)

/** The entry of the list that names a file, or the innermost folder around the file that is in the list. */
function placeOf(path: string): string | null {
  for (let place = path; place !== '.'; place = dirname(place)) if (places.has(place)) return place
  return null
}

/** A room is the folder of a file, or a file that the list names beside its folder. */
const roomOf = (path: string): string => (places.has(path) ? path : dirname(path))

const isProduct = ({ from, to }: Import): boolean =>
  to !== null && !isTest(from) && from.split('/')[0] === to.split('/')[0]

/** Imports from a lower layer of a higher one. */
export function upwardImports(edges: Import[]): Finding[] {
  return edges.filter(isProduct).flatMap(({ from, to, line }) => {
    const importer = places.get(placeOf(from) ?? '')
    const imported = places.get(placeOf(to ?? '') ?? '')
    if (importer === undefined || imported === undefined || imported >= importer) return []
    return [{ rule: 'upward', path: from, line, message: `imports upward: ${to}` }]
  })
}

/** Pairs of rooms that import each other, each once with an import of either direction. */
export function mutualImports(edges: Import[]): Finding[] {
  const firsts = new Map<string, Import>()
  for (const edge of edges.filter(isProduct)) {
    const importer = roomOf(edge.from)
    const imported = roomOf(edge.to ?? '')
    const key = `${importer} ${imported}`
    if (importer !== imported && placeOf(edge.from) !== null && !firsts.has(key)) firsts.set(key, edge)
  }
  return [...firsts].flatMap(([key, { from, to, line }]) => {
    const [importer = '', imported = ''] = key.split(' ')
    const back = firsts.get(`${imported} ${importer}`)
    if (back === undefined || importer > imported) return []
    const message = `${importer} and ${imported} import each other: ${to}; ${back.from} imports ${back.to}`
    return [{ rule: 'mutual', path: from, line, message }]
  })
}

/** Entries of the list that no file has any more. */
export function missingPlaces(paths: string[]): Finding[] {
  return [...places.keys()]
    .filter((place) => !paths.some((path) => path === place || path.startsWith(`${place}/`)))
    .map((path) => ({
      rule: 'upward',
      path,
      line: 1,
      message: 'is in the list of layers and does not exist',
    }))
}
