/** Finds the test files that a change affects, for `npm test -- --changed`, nearest in the import graph first. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { importsOf, referencesOf } from '../tests/tidy/imports.ts'
import { root } from './build.ts'

/** Entries of the executable. A test that runs it depends on them only through the build. */
const builtBy = 'tests/support/binary.ts'
const builtFrom = ['server/main.ts', 'web/main.tsx']

/** Path → files it imports, spawns or reads by name. */
export type Graph = Map<string, string[]>

export function readGraph(): Graph {
  const knownPaths = new Set(lines('git', 'ls-files', '--cached', '--others', '--exclude-standard'))
  const graph: Graph = new Map()
  for (const path of knownPaths) {
    if (!/\.(?:tsx?|mjs|css|sql|html|json)$/.test(path) || !existsSync(join(root, path))) continue
    const source = { path, text: readFileSync(join(root, path), 'utf8') }
    const imported = importsOf(source).flatMap(({ to, typeOnly }) => (to === null || typeOnly ? [] : [to]))
    graph.set(path, [...new Set([...imported, ...referencesOf(source, knownPaths)])])
  }
  graph.get(builtBy)?.push(...builtFrom)
  return graph
}

/** Files that differ from main: committed on this branch, changed since, or new. */
export function changedFiles(): string[] {
  const base = lines('git', 'merge-base', 'HEAD', 'main')[0] ?? 'HEAD'
  return [
    ...new Set([
      ...lines('git', 'diff', '--name-only', base),
      ...lines('git', 'ls-files', '--others', '--exclude-standard'),
    ]),
  ]
}

/** The number of imports between each file and the nearest changed one. Unreachable files are omitted. */
export function distances(graph: Graph, changed: string[]): Map<string, number> {
  const importers = new Map<string, string[]>()
  for (const [path, imports] of graph)
    for (const imported of imports) importers.set(imported, [...(importers.get(imported) ?? []), path])
  const distanceByPath = new Map(changed.map((path) => [path, 0]))
  for (const [path, distance] of distanceByPath)
    // a Map yields entries that are added during the iteration
    for (const importer of importers.get(path) ?? [])
      if (!distanceByPath.has(importer)) distanceByPath.set(importer, distance + 1)
  return distanceByPath
}

function lines(...command: string[]): string[] {
  const { stdout, exitCode } = Bun.spawnSync(command, { cwd: root, stderr: 'ignore' })
  return exitCode === 0
    ? stdout
        .toString()
        .split('\n')
        .filter((line) => line !== '')
    : []
}
