/** The layers of the product from top to bottom, and the rule that no import goes up. */
import type { Import } from './imports.ts'
import { type Finding, isTest } from './source.ts'

/** A file belongs to the first entry whose path it equals, or below which it lies. */
const layers: [paths: string[], layer: number][] = [
  [['server/main.ts'], 0],
  [['server/cli'], 1],
  [['server/runtime'], 2],
  [['server/app.ts', 'server/jobs.ts', 'server/services.ts'], 3],
  [['server/http'], 5],
  [['server/system'], 6],
  [['server/text', 'server/errors.ts', 'server/limits.ts', 'server/clock.ts'], 7],
  [['server/ids.ts', 'server/log.ts'], 7],
  [['server'], 4], // every other folder is a feature
  [['db/open.ts', 'db/copy'], 8],
  [['db/sqlite', 'db/postgres'], 9],
  [['db/sql'], 10], // what engines share
  [['db'], 11], // contract and rules
  [['web/main.tsx'], 0],
  [['web/shell.tsx', 'web/shell'], 1],
  [['web/routes.ts'], 2],
  [['web/pages'], 3],
  [['web/charts'], 4],
  [['web/range', 'web/query', 'web/components'], 5],
  [['web'], 6], // app, api, live, text
]

const layerOf = (path: string): number | null =>
  layers.find(([paths]) => paths.some((each) => path === each || path.startsWith(`${each}/`)))?.[1] ?? null

/** Imports from a lower layer of a higher one, types included. Tests may import whatever they test. */
export function upwardImports(edges: Import[]): Finding[] {
  return edges.flatMap(({ from, to, line }) => {
    if (to === null || isTest(from) || from.split('/')[0] !== to.split('/')[0]) return []
    const [own, other] = [layerOf(from), layerOf(to)]
    if (own === null || other === null || other >= own) return []
    return [{ rule: 'upward', path: from, line, message: `imports upward: ${to}` }]
  })
}
