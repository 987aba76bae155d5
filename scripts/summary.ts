/** Counts the results of a `bun test` run from its JUnit file, for the summary of `npm test`. */

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

const noCounts: Counts = { passed: 0, failed: 0, skipped: 0 }

export function addCounts(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

export interface FileRun {
  junit: string | null // text of the file; null if none was written
  code: number
}

/** A run with a failing exit code counts at least one failure, so that a crash never passes. */
export function countRun(run: FileRun): Counts {
  const counts = fromJunit(run.junit) ?? noCounts
  if (run.code !== 0 && counts.failed === 0) return { ...counts, failed: 1 }
  if (run.code === 0 && counts.passed + counts.failed + counts.skipped === 0) return { ...counts, failed: 1 }
  return counts
}

function fromJunit(text: string | null): Counts | null {
  const root = rootOf(text)
  if (root === null) return null
  const failed = attribute(root, 'failures') + attribute(root, 'errors')
  const skipped = attribute(root, 'skipped')
  return { passed: attribute(root, 'tests') - failed - skipped, failed, skipped }
}

/** One file's part of the report on several files, as a report of its own; null if the report does not name it. */
export function junitOf(junit: string | null, path: string): string | null {
  const parts = (junit ?? '').split(/^ {2}(?=<testsuite )/m).slice(1)
  const part = parts.find((text) => /^[^>]* file="([^"]*)"/.exec(text)?.[1] === path)
  return part?.replace('<testsuite ', '<testsuites ') ?? null
}

/** The number of `expect` calls of a run. */
export function countExpects(junit: string | null): number {
  return attribute(rootOf(junit) ?? '', 'assertions')
}

export interface FileResult {
  path: string
  suite: string
  counts: Counts
  expects: number
  seconds: number
  cpuSeconds: number
  tests: TestTime[]
}

export function totalOf(results: FileResult[]): Counts {
  return results.reduce((sum, { counts }) => addCounts(sum, counts), noCounts)
}

export interface TestTime {
  name: string
  seconds: number
}

/** The tests of a run with their durations. */
export function testTimes(junit: string | null): TestTime[] {
  const cases = (junit ?? '').matchAll(/<testcase name="([^"]*)"[^>]*? time="([\d.]+)"/g)
  return [...cases].map(([, name, seconds]) => ({
    name: unescapeXml(name ?? ''),
    seconds: Number(seconds),
  }))
}

function rootOf(text: string | null): string | null {
  return /<testsuites\b[^>]*>/.exec(text ?? '')?.[0] ?? null
}

function attribute(tag: string, name: string): number {
  return Number(new RegExp(`\\b${name}="(\\d+)"`).exec(tag)?.[1] ?? 0)
}

const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }

function unescapeXml(text: string): string {
  return text.replaceAll(/&(\w+);/g, (whole, name: string) => entities[name] ?? whole)
}

/** The last line of `npm test`. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** The line before the last one; null if no file needed a second attempt. */
export function secondAttemptsLine(paths: string[]): string | null {
  if (paths.length === 0) return null
  return `second attempts: ${paths.length} (${paths.join(', ')}). A test that fails once is a bug to fix.`
}

/** What to install for the tests that were skipped (`tests/support/installed.ts`); null without one. */
export function notInstalledLine(results: FileResult[]): string | null {
  const names = results.flatMap(({ tests }) => tests.map(({ name }) => name))
  const packages = names.flatMap((name) => /\(not installed: apt-get install (\S+)\)$/.exec(name)?.[1] ?? [])
  if (packages.length === 0) return null
  const install = [...new Set(packages)].toSorted().join(' ')
  return `skipped because programs are not installed: ${packages.length} (apt-get install ${install})`
}

/** One line per suite: files, tests, `expect` calls, and the summed seconds of its files. */
export function suiteTable(results: FileResult[]): string {
  const rows = [...Map.groupBy(results, ({ suite }) => suite)].map(([name, files]) => {
    const { passed, failed, skipped } = totalOf(files)
    const sum = (getValue: (file: FileResult) => number): number =>
      files.reduce((total, file) => total + getValue(file), 0)
    return [
      name,
      files.length,
      passed + failed + skipped,
      failed,
      sum(({ expects }) => expects),
      sum(({ seconds }) => seconds).toFixed(0),
      sum(({ cpuSeconds }) => cpuSeconds).toFixed(0),
    ]
  })
  const heads = ['suite', 'files', 'tests', 'failed', 'expects', 'seconds', 'processor seconds']
  const table = [heads, ...rows].map((row) => row.map(String))
  const widths = heads.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
  return table
    .map((row) =>
      row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join('  '),
    )
    .join('\n')
}

/**
 * The processor time of all files, in seconds and as a multiple of a fixed piece of work in the same run: the number of
 * seconds depends on the machine, the multiple hardly. Nothing fails by either.
 */
export function processorLine(results: FileResult[], floorSeconds: number | null): string {
  const seconds = results.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  const text = `processor time of all files: ${seconds.toFixed(0)} s`
  if (floorSeconds === null || floorSeconds === 0) return text
  const multiple = Math.round(seconds / floorSeconds).toLocaleString('en-US')
  return `${text}, ${multiple} times the floor of this run (${floorSeconds.toFixed(2)} s for a fixed piece of work)`
}

const slowestShown = 25

/** The slowest files with their processor time, and the slowest tests. */
export function slowestLines(results: FileResult[]): string[] {
  const files = results
    .toSorted((a, b) => b.seconds - a.seconds)
    .map(
      ({ path, seconds, cpuSeconds }) =>
        `${seconds.toFixed(1)} s (processor ${cpuSeconds.toFixed(1)} s) ${path}`,
    )
  const tests = results
    .flatMap(({ path, tests }) => tests.map((test) => ({ path, ...test })))
    .toSorted((a, b) => b.seconds - a.seconds)
    .map(({ path, name, seconds }) => `${seconds.toFixed(1)} s ${path}: ${name}`)
  return [
    '\nslowest files:',
    ...files.slice(0, slowestShown),
    '\nslowest tests:',
    ...tests.slice(0, slowestShown),
    '',
  ]
}
