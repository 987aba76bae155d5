/**
 * `bun scripts/measure-house.ts`: prints how large the code is and its longest files, for people to look at. Part of
 * `npm run check`; no number fails it.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { exceptions } from '../tests/tidy/exceptions.ts'
import { importsOf } from '../tests/tidy/imports.ts'
import { mutualImports, upwardImports } from '../tests/tidy/layers.ts'
import { declaredNames, packedLines } from '../tests/tidy/plain-code.ts'
import { slivers } from '../tests/tidy/slivers.ts'
import { type Finding, isCode, isTest, readSources, root, type Source } from '../tests/tidy/source.ts'

const sources = readSources()
const product = sources.filter(
  ({ path }) => /^(server|db|web|sdk)\//.test(path) && isCode(path) && !isTest(path),
)
const edges = sources.flatMap(importsOf)
const linesOf = ({ text }: Source): number => text.trimEnd().split('\n').length

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const topLevel = (folder: string): number =>
  readdirSync(join(root, folder), { withFileTypes: true }).filter((entry) => entry.isFile()).length

const longestShown = 10

const longest = product
  .map((source) => ({ path: source.path, lines: linesOf(source) }))
  .toSorted((a, b) => b.lines - a.lines)
  .slice(0, longestShown)

const small = slivers(sources, edges)
const explained = small.filter(({ path }) =>
  exceptions.some((exception) => exception.rule === 'sliver' && exception.path === path),
)

const upward = upwardImports(edges)
const mutual = mutualImports(edges)
const countWithin = (folder: string, findings: Finding[]): number =>
  findings.filter(({ path }) => path.startsWith(`${folder}/`)).length

const names = product.flatMap(declaredNames)
const vagueShare = names.filter(({ isVague }) => isVague).length / names.length

const measures: { name: string; value: number }[] = [
  { name: 'product files', value: product.length },
  { name: 'product lines', value: product.reduce((sum, source) => sum + linesOf(source), 0) },
  { name: 'median length of a file, lines', value: median(product.map(linesOf)) },
  { name: 'pronouns and participles among names, per cent', value: Math.round(vagueShare * 10_000) / 100 },
  { name: 'packed lines', value: product.flatMap(packedLines).length },
  { name: 'files under 60 lines with one importer', value: small.length - explained.length },
  ...['server', 'db', 'db/sqlite', 'web'].map((folder) => ({
    name: `files directly in ${folder}/`,
    value: topLevel(folder),
  })),
  ...['server', 'db', 'db/sql', 'web'].flatMap((folder) => [
    { name: `imports up in ${folder}/`, value: countWithin(folder, upward) },
    { name: `pairs of rooms that import each other in ${folder}/`, value: countWithin(folder, mutual) },
  ]),
]

for (const { name, value } of measures) process.stdout.write(`${name}: ${value}\n`)
process.stdout.write(`the ${longestShown} longest files:\n`)
for (const { path, lines } of longest) process.stdout.write(`  ${path}: ${lines} lines\n`)
if (process.argv.includes('--slivers'))
  for (const { path, message } of small) process.stdout.write(`${path}: ${message}\n`)
if (process.argv.includes('--layers'))
  for (const { path, line, message } of [...upward, ...mutual])
    process.stdout.write(`${path}:${line} ${message}\n`)
