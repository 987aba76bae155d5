/** Finds files that belong inside their importer: under 60 lines and imported by a single other file. */
import { workerEntries } from '../../scripts/build.ts'
import type { Import } from './imports.ts'
import { type Finding, isCode, isTest, type Source } from './source.ts'

const linesMin = 60

/** Tables of contents: one line for each of their files, so what they import stays a file, however small. */
const tables = [
  'server/app.ts',
  'server/cli/nouns.ts',
  'server/webhooks/sinks/destination.ts',
  'web/routes.ts',
]

/** The module of a thread is a program of its own; the one that starts it imports types. */
const programs: readonly string[] = workerEntries

export function slivers(sources: Source[], edges: Import[]): Finding[] {
  const isProduct = (path: string): boolean =>
    /^(server|db|web|sdk)\//.test(path) && isCode(path) && !isTest(path)
  const importers = new Map<string, Set<string>>()
  for (const { from, to } of edges) {
    if (to === null || !isProduct(from)) continue
    const importerSet = importers.get(to) ?? new Set()
    importers.set(to, importerSet.add(from))
  }
  return sources.flatMap(({ path, text }) => {
    if (!isProduct(path) || programs.includes(path)) return []
    const lines = text.trimEnd().split('\n').length
    const [only, second] = [...(importers.get(path) ?? [])]
    if (lines >= linesMin || only === undefined || second !== undefined || tables.includes(only)) return []
    const message = `${lines} lines with one importer: belongs inside ${only}`
    return [{ rule: 'sliver', path, line: 1, message }]
  })
}
