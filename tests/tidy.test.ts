/** The rules of the house over every source file; `tidy/proof.test.ts` proves that each can fail. */
import { describe, expect, test } from 'bun:test'
import { workerEntries } from '../scripts/build.ts'
import { sqliteOnlyFiles, sqliteOnlyTests } from './support/sqlite-only.ts'
import { bothEngines } from './tidy/both-engines.ts'
import { exceptions } from './tidy/exceptions.ts'
import { deadFiles, dependencyRules, type Manifest, missingDocuments } from './tidy/house-rules.ts'
import { barrel, cycles, importRules } from './tidy/import-rules.ts'
import { importsOf } from './tidy/imports.ts'
import { engineWordsIn } from './tidy/engine-words.ts'
import { deadExports } from './tidy/exports.ts'
import { missingPlaces, mutualImports, upwardImports } from './tidy/layers.ts'
import { insideImports } from './tidy/modules.ts'
import { packedLines, vagueNames } from './tidy/plain-code.ts'
import { slivers } from './tidy/slivers.ts'
import { words } from './tidy/words.ts'
import { type Finding, isCode, readSources } from './tidy/source.ts'
import { bannedCode, fileName, header, leftovers, lineLength } from './tidy/text-rules.ts'

const sources = readSources()
const edges = sources.flatMap(importsOf)
const textOf = (path: string): string => sources.find((source) => source.path === path)?.text ?? ''
const verbs = [...textOf('scripts/run.mjs').matchAll(/'(\w+)'/g)].map((match) => `scripts/${match[1]}.ts`)
const entries = [
  'server/main.ts',
  'scripts/pictures.ts',
  ...workerEntries,
  'web/index.html',
  'sdk/build.ts',
  'scripts/run.mjs',
  'scripts/measure-house.ts',
  'scripts/user-strings.ts',
  'scripts/evidence-pack.ts',
  'tests/soak/soak.ts',
  ...verbs,
]

const findings: Finding[] = [
  ...[header, lineLength, fileName, bannedCode, leftovers].flatMap((rule) => sources.flatMap(rule)),
  ...sources.filter((source) => isCode(source.path)).flatMap((source) => barrel(source, edges)),
  ...importRules(edges),
  ...upwardImports(edges),
  ...mutualImports(edges),
  ...missingPlaces(sources.map(({ path }) => path)),
  ...insideImports(edges),
  ...slivers(sources, edges),
  ...vagueNames(sources),
  ...sources.flatMap(packedLines),
  ...sources.flatMap(words),
  ...sources.flatMap(engineWordsIn),
  ...bothEngines(sources, { files: sqliteOnlyFiles, tests: sqliteOnlyTests }),
  ...deadExports(sources, (path) => entries.includes(path) || path.startsWith('sdk/')),
  ...cycles(edges),
  ...deadFiles(sources, entries),
  ...dependencyRules(JSON.parse(textOf('package.json')) as Manifest, textOf('server/DESIGN.md'), edges),
  ...missingDocuments(new Set(sources.map((source) => source.path))),
]

const isException = (finding: Finding): boolean =>
  exceptions.some(({ rule, path }) => rule === finding.rule && path === finding.path)

describe('the house', () => {
  const broken = findings.filter((finding) => !isException(finding))
  const rules = [
    'header',
    'line-length',
    'file-name',
    'empty-name',
    'barrel',
    'leftover',
    'environment',
    'time',
    'random',
    'console',
    'any',
    'enum',
    'namespace',
    'class',
    'focus',
    'type-escape',
    'stored-json',
    'db-alone',
    'sdk-alone',
    'web-types-only',
    'server-alone',
    'engine-behind-seam',
    'elysia',
    'driver',
    'extension',
    'module',
    'upward',
    'mutual',
    'sliver',
    'vague-name',
    'packed-line',
    'words',
    'engine-words',
    'both-engines',
    'dead-export',
    'cycle',
    'dead-file',
    'dependency',
    'document',
  ]
  test.each(rules)('%s', (rule) => {
    const lines = broken
      .filter((finding) => finding.rule === rule)
      .map(({ path, line, message }) => `${path}:${line} ${message}`)
    expect(lines).toEqual([])
  })

  test('every finding belongs to a rule listed here', () => {
    expect(findings.map((finding) => finding.rule).filter((rule) => !rules.includes(rule))).toEqual([])
  })

  test('every exception is still needed', () => {
    const unneeded = exceptions.filter(
      ({ rule, path }) => !findings.some((finding) => finding.rule === rule && finding.path === path),
    )
    expect(unneeded).toEqual([])
  })
})

test('the import scanner sees every import the transpiler sees', () => {
  const missed = sources
    .filter((source) => /\.tsx?$/.test(source.path))
    .flatMap((source) => {
      const transpiler = new Bun.Transpiler({
        loader: source.path.endsWith('x') ? 'tsx' : 'ts',
        tsconfig: { compilerOptions: { jsx: 'react-jsx', jsxImportSource: 'preact' } },
      })
      const specifiers = new Set(importsOf(source).map((edge) => edge.specifier))
      return transpiler
        .scanImports(source.text.replace(/^#!.*/, ''))
        .filter(
          (importRecord) => !/^react$|jsx/.test(importRecord.path) && !specifiers.has(importRecord.path),
        )
        .map((importRecord) => `${source.path}: ${importRecord.path}`)
    })
  expect(missed).toEqual([])
})
