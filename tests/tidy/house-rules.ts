/** Rules about the whole house: documents, dependencies, files that nothing uses. */
import { builtinModules } from 'node:module'
import { type Import, referencesOf } from './imports.ts'
import { type Finding, isTest, type Source } from './source.ts'

const documents = [
  'README.md',
  'CHANGELOG.md',
  'tests/README.md',
  'server/DESIGN.md',
  'db/DESIGN.md',
  'web/DESIGN.md',
]

export function missingDocuments(paths: Set<string>): Finding[] {
  return documents
    .filter((path) => !paths.has(path))
    .map((path) => ({ rule: 'document', path, line: 1, message: 'is missing' }))
}

export interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  packageManager?: string
}

/** Dependencies are exact, used, and justified by a line of the table in server/DESIGN.md. */
export function dependencyRules(manifest: Manifest, design: string, edges: Import[]): Finding[] {
  const dependencies = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
  const finding = (name: string, message: string): Finding => {
    return { rule: 'dependency', path: `package.json#${name}`, line: 1, message: `${name} ${message}` }
  }
  const isUsed = (name: string): boolean =>
    // Types that tsconfig.json names are used without an import.
    name === 'bun-types' || edges.some((edge) => packageOf(edge.specifier) === name)
  const rows = new Set([...design.matchAll(/^\| `([^`]+)` +\| \S/gm)].map((match) => match[1]))
  const isJustified = (name: string): boolean => rows.has(name)
  const foreign = edges
    .filter((edge) => edge.to === null && !isBuiltIn(edge.specifier))
    .filter(
      (edge) => ![ownPackage, ...dependencies.map(([name]) => name)].includes(packageOf(edge.specifier)),
    )
  return [
    ...dependencies
      .filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))
      .map(([name]) => finding(name, 'is not pinned')),
    ...dependencies.filter(([name]) => !isJustified(name)).map(([name]) => finding(name, 'is not justified')),
    ...dependencies.filter(([name]) => !isUsed(name)).map(([name]) => finding(name, 'is used nowhere')),
    ...foreign.map((edge) => ({ ...finding(edge.specifier, 'is not in package.json'), path: edge.from })),
    ...(/^bun@\d+\.\d+\.\d+$/.test(manifest.packageManager ?? '')
      ? []
      : [finding('packageManager', 'is not pinned')]),
  ]
}

/** Examples and the programs of tests import the client package as its users do. */
const ownPackage = '@sightglass/sdk'

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function isBuiltIn(specifier: string): boolean {
  return /^(node|bun):|^bun$/.test(specifier) || builtinModules.includes(specifier)
}

const livesByItself = (path: string): boolean =>
  (isTest(path) && /\.test\.tsx?$/.test(path)) ||
  /(\.md|\.d\.ts|\.bench\.ts|\/package\.json|\/tsconfig\.json)$/.test(path) ||
  !path.includes('/')

/** Files that no entry, test or script reaches. */
export function deadFiles(sources: Source[], entries: string[]): Finding[] {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const knownPaths = new Set(byPath.keys())
  const reached = new Set<string>()
  const open = [...entries, ...sources.map((source) => source.path).filter(livesByItself)]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const source = byPath.get(path)
    if (source === undefined || reached.has(path)) continue
    reached.add(path)
    if (!/(\.md|^package\.json)$/.test(path)) open.push(...referencesOf(source, knownPaths))
  }
  return [...knownPaths]
    .filter((path) => !reached.has(path))
    .map((path) => ({ rule: 'dead-file', path, line: 1, message: 'nothing uses it' }))
}
