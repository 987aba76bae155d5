/** `npm test [suite …]`: checks, builds, runs every test file, and prints `N passed, N failed` as its last line. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, workerEntries } from './build.ts'
import { changedFiles, distances, readGraph } from './changed.ts'
import { describeCheck, runChecks } from './checks.ts'
import { command } from './command.ts'
import { measureFloor } from './processor-floor.ts'
import {
  addCounts,
  closingLine,
  type Counts,
  type FileResult,
  notInstalledLine,
  processorLine,
  secondAttemptsLine,
  slowestLines,
  suiteTable,
  totalOf,
} from './summary.ts'
import { shortProcess } from '../tests/support/process.ts'
import {
  capMs,
  coreFilesOf,
  everydayFilesOf,
  filesOf,
  kindOf,
  sharingOf,
  type Suite,
  suites,
} from './suites.ts'
import { type Group, groupFiles, resultsOf } from './test-groups.ts'
import { type Capacity, idleCores, type Job, runPool } from './test-pool.ts'
import { memoryFolder, type Need, type Prepared, prepare, readNeeds } from './test-needs.ts'
import { nearestWithin, readTimings, timingOf, writeTimings } from './test-timings.ts'

const usage = `npm test [-- [suite …] [option …]]
suites: ${suites.map(({ name }) => name).join(', ')}
core       alone, for about a minute: tidy, short unit tests, the store on SQLite, a few of api
--changed  only the test files nearest to what differs from main, for about a minute
--engine sqlite    without the tests that need PostgreSQL
--engine postgres  only those, with all of their files
--full     all cases of random tests, of which other runs try a third, segments of the size that ships, longer and
           heavier benches, all on the disk
--timings  print the slowest files and tests at the end
--record   run fewer files at a time and write tests/timings.json, which orders the next run`

const options = ['--changed', '--engine', '--full', '--timings', '--record']

/** More failed files than this are not flaky, so they get no second attempt. */
const secondAttemptsMax = 12

const changedSecondsMax = 50

const cores = availableParallelism()
/** With three or four processes per core at all times a run took longer, but files that wait leave cores idle. */
const capacity: Capacity = { load: cores * 1.1, jobs: cores * 2, jobsMax: cores * 3, idleCores }

/** Files that wait for each other's cores would record too long a time and too small a load. */
const uncrowded: Capacity = { load: cores, jobs: cores }

const oneFailed: Counts = { passed: 0, failed: 1, skipped: 0 }
const onePassed: Counts = { passed: 1, failed: 0, skipped: 0 }
const junitDir = join(root, 'out', 'junit')

interface FileJob extends Job {
  suite: Suite
  file: string // `path`, without the engine
  needed: Need[]
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Which files of the suites run. */
type Choice = 'named' | 'everyday' | 'core'

function jobsOf(
  chosen: Suite[],
  { choice, isFull, changedOnly }: { choice: Choice; isFull: boolean; changedOnly: boolean },
): FileJob[] {
  const timings = readTimings()
  const cpuSecondsOf = (path: string): number => {
    const { seconds, load } = timingOf(timings, path)
    return seconds * load
  }
  const choose: Record<Choice, (suite: Suite) => string[]> = {
    named: filesOf,
    everyday: (suite) => everydayFilesOf(suite, { isFull }),
    core: (suite) => coreFilesOf(suite, cpuSecondsOf),
  }
  const graph = readGraph()
  const needsOf = readNeeds(new Map(graph))
  const jobs = chosen.flatMap((suite) =>
    choose[choice](suite).map((file) => {
      const path = suite.engine === 'sqlite' ? file : `${file} on PostgreSQL`
      const timing = timingOf(timings, path in timings ? path : file)
      return { path, file, suite, needed: needsOf(suite, file), ...timing }
    }),
  )
  if (!changedOnly) return jobs
  const near = distances(graph, changedFiles())
  const concerned = jobs.filter(({ file, suite }) => suite.engine === 'sqlite' && near.has(file))
  const { within: nearestJobs, beyond } = nearestWithin(concerned, near, changedSecondsMax * cores)
  say(
    `${nearestJobs.length} test files import what changed most directly; ${beyond} more do from farther away`,
  )
  return nearestJobs
}

async function checked(): Promise<Counts> {
  const results = await runChecks()
  for (const check of results) process.stdout.write(describeCheck(check))
  return results.map(({ ok }) => (ok ? onePassed : oneFailed)).reduce(addCounts)
}

/**
 * Test files end before JavaScriptCore's compilers have earned their time: without the last tier, and with compilation
 * after ten times as many calls, they take a sixth less. Memory that is never returned to the system saves a tenth.
 * The programs of a test get the same, see `tests/support/process.ts`. Benches run as an operator's server does.
 */
function quickToCompile({ name }: Suite): Record<string, string> {
  return name === 'bench' ? {} : { BUN_JSC_useFTLJIT: '0', ...shortProcess }
}

/** A quarter of the size that ships, which all other suites use. */
const smallSegments = '--define=SIGHTGLASS_TEST_SEGMENT=16384'

/** Runs the files of a group in one process and prints its output in one piece. */
async function runGroup(
  { path, files }: Group<FileJob>,
  timeoutMs: number,
  runnerArgs: string[],
  { ready, env }: Prepared,
): Promise<FileResult[]> {
  const { suite, needed: needs } = files[0]!
  // Without PostgreSQL its tests say themselves what to install.
  const lacking = await Promise.all(needs.map((need) => (need === 'postgres' ? null : ready[need])))
  if (lacking.some((reason) => reason !== null)) {
    for (const file of files) say(`\n== ${file.path}: not run, counts as failed`)
    return files.map((file) => notRun(file))
  }
  const junit = join(junitDir, `${path.replaceAll('/', '-')}.xml`)
  rmSync(junit, { force: true })
  const args = ['--no-orphans', 'test', ...runnerArgs, `--timeout=${suite.testTimeoutMs}`]
  if (suite.name === 'engine' && !process.argv.includes('--full')) args.push(smallSegments)
  args.push('--reporter=junit', `--reporter-outfile=${junit}`, ...files.map(({ file }) => `./${file}`))
  const result = await command([process.execPath, ...args], {
    timeoutMs,
    // Files need not check for newer sources again, and only the last one closes the browser.
    env: {
      SIGHTGLASS_TEST_BINARY: 'built',
      SIGHTGLASS_TEST_FILES: `${files.length}`,
      SIGHTGLASS_TEST_ENGINE: suite.engine,
      ...(process.argv.includes('--full') ? { SIGHTGLASS_TEST_FULL: '1' } : quickToCompile(suite)),
      ...env(suite),
    },
  })
  const results = resultsOf({
    paths: files.map(({ file }) => file),
    suite: suite.name,
    junit: existsSync(junit) ? readFileSync(junit, 'utf8') : null,
    code: result.timedOut ? 1 : result.code,
    seconds: result.durationMs / 1_000,
    cpuSeconds: result.cpuMs / 1_000,
  }).map((file, index) => ({ ...file, path: files[index]!.path }))
  const late = result.timedOut ? `\nended after ${(timeoutMs / 60_000).toFixed(1)} minutes` : ''
  const output = result.output.replace(/^bun test v.*\n+/, '').replace(/\n \d+ pass\n[^]*?\nRan .*\n*$/, '')
  const lines = results.map(
    (file) => `== ${file.path}: ${closingLine(file.counts)} in ${file.seconds.toFixed(1)} s`,
  )
  say(`\n${output.trim()}${late}\n${lines.join('\n')}`)
  return results
}

function notRun({ path, suite }: FileJob): FileResult {
  return { path, suite: suite.name, counts: oneFailed, expects: 0, seconds: 0, cpuSeconds: 0, tests: [] }
}

/** Runs all groups, then each failed file again, alone. Returns the last result of each file. */
async function runAll(groups: Group<FileJob>[], width: Capacity, runnerArgs: string[], prepared: Prepared) {
  const startedMs = performance.now()
  const usedMs = new Map<Suite, number>()
  const results = new Map<string, FileResult>()
  let running = 0
  const run = async (group: Group<FileJob>): Promise<void> => {
    const { suite } = group.files[0]!
    const groupStartedMs = performance.now()
    running++
    const timeoutMs = capMs(suite, usedMs.get(suite) ?? 0, groupStartedMs - startedMs)
    const ended = await runGroup(group, timeoutMs, runnerArgs, prepared)
    // Groups that run side by side share the remaining time.
    usedMs.set(suite, (usedMs.get(suite) ?? 0) + (performance.now() - groupStartedMs) / running)
    running--
    for (const result of ended) results.set(result.path, result)
  }
  await runPool(groups, width, run)
  const files = groups.flatMap((group) => group.files)
  const failed = files.filter(({ path }) => results.get(path)!.counts.failed > 0)
  const again = failed.length > secondAttemptsMax ? [] : failed
  for (const file of again) {
    say(`\n== ${file.path}: second attempt`)
    await run({ ...file, files: [file] })
  }
  const passedThen = again.filter(({ path }) => results.get(path)!.counts.failed === 0)
  return {
    results: files.map(({ path }) => results.get(path)!),
    secondAttempts: passedThen.map(({ path }) => path),
  }
}

const threadsDir = join(root, 'out', 'threads')
const threadsPreload = './tests/support/bundled-threads.ts'

/**
 * Bundles the store's threads, and returns the arguments of `bun test` that make it use the bundle. Without one,
 * threads start from their sources: a store that a test opens then costs twice the processor time, 260 ms and not 120.
 */
async function bundleThreads(): Promise<string[]> {
  rmSync(threadsDir, { recursive: true, force: true })
  const { success } = await Bun.build({
    entrypoints: workerEntries.map((path) => join(root, path)),
    outdir: threadsDir,
    root, // as in the executable, entries keep their path below the repository
    target: 'bun',
    format: 'cjs',
    bytecode: true,
    sourcemap: 'linked',
    // Threads that start a thread look for it beside themselves.
    define: {
      'import.meta.url': JSON.stringify(pathToFileURL(join(threadsDir, workerEntries.at(-1)!)).href),
    },
    throw: false,
  })
  return success ? [`--preload=${threadsPreload}`] : []
}

async function main(args: string[]): Promise<{ total: Counts; notes: string[] }> {
  const engineIndex = args.indexOf('--engine')
  const engine = engineIndex < 0 ? null : args[engineIndex + 1]
  const names = args.filter(
    (arg, index) => !options.includes(arg) && (engineIndex < 0 || index !== engineIndex + 1),
  )
  const isCore = names.length === 1 && names[0] === 'core' && engine !== 'postgres'
  const isUnknown = !isCore && names.some((name) => !suites.some((suite) => suite.name === name))
  if (isUnknown || (engine !== null && engine !== 'sqlite' && engine !== 'postgres'))
    return { total: oneFailed, notes: [usage] }
  rmSync(junitDir, { recursive: true, force: true })
  mkdirSync(junitDir, { recursive: true })
  const records = args.includes('--record')
  const isNamed = (suite: Suite) =>
    isCore ||
    names.length === 0 ||
    names.includes(suite.name) ||
    (engine !== null && names.includes(kindOf(suite)))
  const chosen = suites.filter((suite) => isNamed(suite) && (engine ?? suite.engine) === suite.engine)
  let choice: Choice = isCore ? 'core' : 'named'
  if (names.length === 0 && engine !== 'postgres') choice = 'everyday'
  const isFull = args.includes('--full')
  // The checks, the build and what is installed end beside the first tests.
  const checking = checked()
  const bundling = bundleThreads()
  const jobs = jobsOf(chosen, { choice, isFull, changedOnly: args.includes('--changed') }).filter(
    ({ needed: needs }) => !(isCore || engine === 'sqlite') || !needs.includes('postgres'),
  )
  const runnerArgs = await bundling
  const folder = isFull ? null : memoryFolder()
  const prepared = prepare(new Set(jobs.flatMap(({ needed: needs }) => needs)), say, folder)
  const ready = jobs.map((job) => ({ ...job, needs: job.needed.map((need) => prepared.ready[need]) }))
  const groups = groupFiles(ready, ({ suite, file, needed: needs }) => {
    const sharing = sharingOf(suite, file)
    return sharing === null ? null : { ...sharing, key: [sharing.key, ...needs].join(' ') }
  })
  const floor = measureFloor() // beside the tests, on cores as busy as theirs
  const { results, secondAttempts } = await runAll(
    groups,
    records ? uncrowded : capacity,
    runnerArgs,
    prepared,
  )
  if (records)
    writeTimings(results.map(({ path, seconds, cpuSeconds }) => [path, [seconds, cpuSeconds]] as const))
  const failed = results.filter((result) => result.counts.failed > 0).map(({ path }) => `failed: ${path}`)
  const notes = [
    suiteTable(results),
    processorLine(results, await floor),
    ...(args.includes('--timings') || records ? slowestLines(results) : []),
    ...failed,
    notInstalledLine(results),
    secondAttemptsLine(secondAttempts),
  ]
  const built = (await prepared.ready.build) === null ? onePassed : oneFailed
  const total = [await checking, built, totalOf(results)].reduce(addCounts)
  await prepared.end()
  return { total, notes: notes.filter((note) => note !== null) }
}

// An interrupted run removes its folder in memory as it exits.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const { total, notes } = await main(process.argv.slice(2))
say(`\n${[...notes, closingLine(total)].join('\n')}`)
process.exitCode = total.failed === 0 ? 0 : 1
