/**
 * `bun scripts/measure-house.ts`: measures the code. Prints the number of source files, their median length, small
 * files with a single importer, the top levels, and how many files one has to read to follow five paths.
 * Part of `npm run check`: exits with 1 when a measure is beyond its goal, or, where the goal is not reached yet,
 * beyond the best value so far.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { exceptions } from '../tests/tidy/exceptions.ts'
import { importsOf } from '../tests/tidy/imports.ts'
import { slivers } from '../tests/tidy/slivers.ts'
import { isCode, isTest, readSources, root, type Source } from '../tests/tidy/source.ts'

interface Measure {
  name: string
  value: number
  goal: number
  /** What was reached where that is short of the goal, and why. Lower it with every improvement. */
  reached?: number
  reason?: string
}

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

/** Files that a reader meets: those that `starts` import, directly or not, for what they do (types left out). */
function walk(starts: string[]): { files: number; lines: number } {
  const next = new Map<string, string[]>()
  for (const { from, to, typeOnly } of edges)
    if (to !== null && !typeOnly) next.set(from, [...(next.get(from) ?? []), to])
  const seen = new Set<string>()
  const waiting = [...starts]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue
    const source = product.find((each) => each.path === path)
    if (source === undefined) {
      if (starts.includes(path)) throw new Error(`measure-house: no such file: ${path}`)
      continue
    }
    seen.add(path)
    waiting.push(...(next.get(path) ?? []))
  }
  return {
    files: seen.size,
    lines: product.filter(({ path }) => seen.has(path)).reduce((sum, each) => sum + linesOf(each), 0),
  }
}

/** Where each path begins: the code that HTTP, a queue or a thread calls. Injected parts are starts of their own. */
const walks: { name: string; goal: number; starts: string[]; reached: number; reason?: string }[] = [
  {
    name: 'POST /v1/sdk/events, from the route to the disk',
    goal: 30,
    reached: 33,
    reason:
      'a large body is decompressed, scanned, parsed and accepted in slices, by four files that a small one does not need',
    starts: ['server/ingest/routes.ts', 'db/sql/threads/append-queue.ts', 'db/sql/events/write/append.ts'],
  },
  {
    name: 'GET /v1/traces',
    goal: 22,
    reached: 29,
    reason:
      'ten are shared basics (errors, limits, clock, request, text, fields), ten the engine reading a page, five sealed blocks',
    starts: ['server/api/traces/routes.ts', 'db/sql/events/read/page.ts'],
  },
  {
    name: 'live stream',
    goal: 16,
    reached: 25,
    reason: 'eight of them are shared basics, eleven the engine reading arrivals, five sealed blocks',
    starts: ['server/api/live/routes.ts', 'db/sql/events/read/arrivals.ts'],
  },
  {
    name: 'one webhook delivery',
    goal: 15,
    reached: 25,
    reason: 'ten are shared basics, four the database, six the three sinks with their table and rules',
    starts: [
      'server/webhooks/delivery/fan-out.ts',
      'server/webhooks/delivery/dispatcher.ts',
      'db/sql/webhooks/record-and-claim.ts',
    ],
  },
  {
    name: 'Detect page in the browser',
    goal: 25,
    reached: 38,
    reason:
      'three show requests in access logs; joining more would load the HTTP client into the live worker, or the server’s fields into every page',
    starts: ['web/pages/detect/page.tsx'],
  },
]

const small = slivers(sources, edges)
const explained = small.filter(({ path }) =>
  exceptions.some((each) => each.rule === 'sliver' && each.path === path),
)

const measures: Measure[] = [
  {
    name: 'source files outside db/postgres/',
    value: product.filter(({ path }) => !path.startsWith('db/postgres/')).length,
    goal: 450,
    reached: 678,
    reason:
      'after the goal came access logs, verdicts, OpenTelemetry, robots.txt, signatures, nodes, Overview, Explore, assistants, Parquet, links, reports, alert measures, path columns, groups of ids, packages, upgrades, texts in columns and rows of several blocks',
  },
  { name: 'files under 60 lines with one importer', value: small.length - explained.length, goal: 0 },
  { name: 'longest file, lines', value: Math.max(...product.map(linesOf)), goal: 400 },
  { name: 'files directly in server/', value: topLevel('server'), goal: 10 },
  { name: 'files directly in db/', value: topLevel('db'), goal: 2 },
  { name: 'files directly in db/sqlite/', value: topLevel('db/sqlite'), goal: 4 },
  { name: 'files directly in web/', value: topLevel('web'), goal: 5 },
  ...walks.map(({ name, starts, ...bounds }) => ({
    ...{ name: `files to read: ${name}`, value: walk(starts).files },
    ...bounds,
  })),
]

process.stdout.write(`median length of a source file: ${median(product.map(linesOf))} lines\n`)
let missed = 0
for (const { name, value, goal, reached = goal, reason } of measures) {
  const max = Math.max(goal, reached)
  if (value > max) missed++
  const verdict = value <= goal ? 'ok  ' : value <= max ? 'why ' : 'MISS'
  const why = verdict === 'why ' && reason !== undefined ? `: ${reason}` : ''
  process.stdout.write(`${verdict} ${name}: ${value} (goal: at most ${goal})${why}\n`)
}
for (const { name, starts } of walks) {
  const { files, lines } = walk(starts)
  process.stdout.write(`     ${name}: ${files} files, ${lines} lines\n`)
}
if (process.argv.includes('--slivers'))
  for (const { path, message } of small) process.stdout.write(`${path}: ${message}\n`)
process.exitCode = missed === 0 ? 0 : 1
