/** What test files need beside the sources: finds it by their imports, and builds, installs or starts it. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { startRunCluster } from '../tests/support/postgres.ts'
import { buildIfStale } from './build.ts'
import { distances, readGraph } from './changed.ts'
import { missingChromium, whyNoChromium } from './chromium.ts'
import { missingPostgres, whyNoPostgres } from './postgres.ts'
import { installGroups, missingPrograms } from './programs.ts'
import { needsDisk, type Suite } from './suites.ts'

/** The built executable and dashboard, a browser, a database server, Debian's web servers and PHP. */
export type Need = 'build' | 'browser' | 'postgres' | 'programs'

const importedFor: Record<Need, string[]> = {
  build: ['tests/support/binary.ts', 'server/http/assets.ts', 'server/docs/routes.ts'],
  browser: ['tests/support/browser.ts'],
  postgres: ['tests/support/postgres.ts'],
  programs: ['scripts/programs.ts'],
}

/** Open a database only in suites that run on PostgreSQL, or when a run starts. */
const choosers = ['tests/support/engine.ts', 'scripts/test-needs.ts']

/** Programs that a test starts are not imported: what those of a suite may need, all of its files need. */
export function readNeeds(graph = readGraph()): (suite: Suite, file: string) => Need[] {
  for (const path of choosers) graph.set(path, [])
  const testsByNeed = Object.entries(importedFor).map(([need, imported]) => {
    return [need as Need, new Set(distances(graph, imported).keys())] as const
  })
  return ({ name, needsBinary, needsBrowser, engine }, file) => {
    if (name === 'tidy') return [] // it reads the files that it names, and runs none of them
    const ofSuite = {
      build: needsBinary,
      browser: needsBrowser,
      postgres: engine === 'postgres',
      programs: false,
    }
    return testsByNeed.filter(([need, files]) => ofSuite[need] || files.has(file)).map(([need]) => need)
  }
}

export interface Prepared {
  /** Each resolves when it is there, or to the reason why it is not. */
  ready: Record<Need, Promise<string | null>>
  /** For the environment of a test process: where the servers of this run are, and its folders. */
  env(suite: Suite): { [name: string]: string }
  end(): Promise<void>
}

/** More than all tests of a run store at a time; a machine with less memory left uses its disk. */
const memoryMinBytes = 6 * 1024 ** 3

/** A folder in memory for the folders of tests; null without room for it. Removes those of runs that were killed. */
export function memoryFolder(
  parentFolder = '/dev/shm',
  minBytes = memoryMinBytes,
  mounts = () => readFileSync('/proc/mounts', 'utf8'),
): string | null {
  if (!existsSync(parentFolder)) return null
  // Tests execute what they install; a container's shared memory may forbid that.
  if (new RegExp(`^\\S+ ${parentFolder} \\S+ \\S*\\bnoexec\\b`, 'm').test(mounts())) return null
  for (const name of readdirSync(parentFolder)) {
    const pid = /^sightglass-tests-(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) remove(join(parentFolder, name))
  }
  const { bavail, bsize } = statfsSync(parentFolder)
  const available = /^MemAvailable: +(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  if (bavail * bsize < minBytes || Number(available) * 1_024 < minBytes) return null
  const folder = join(parentFolder, `sightglass-tests-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o711) // PostgreSQL opens folders in it by another account
  process.once('exit', () => remove(folder))
  return folder
}

/** What a killed test has mounted in it remains. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // Another run tries again.
  }
}

/** Of the test processes of a suite. */
export function environmentOf(
  suite: Suite,
  { cluster, folder }: { cluster: string | null; folder: string | null },
): { [name: string]: string } {
  return {
    ...(cluster === null ? {} : { SIGHTGLASS_TEST_CLUSTER: cluster }),
    ...(folder === null || needsDisk(suite) ? {} : { SIGHTGLASS_TEST_FOLDER: folder }),
  }
}

/** Begins to prepare what is needed. Tests that need none of it run meanwhile. Their folders are made in `folder`. */
export function prepare(
  needs: ReadonlySet<Need>,
  say: (text: string) => void,
  folder: string | null,
): Prepared {
  let cluster: Awaited<ReturnType<typeof startRunCluster>> | null = null
  async function startPostgres(failure: string | null): Promise<string | null> {
    const lacking = await whyNoPostgres(failure)
    if (lacking === null) cluster = await startRunCluster(folder ?? undefined)
    return lacking
  }
  /** Tests of missing programs are skipped. */
  async function sayMissing(): Promise<null> {
    const missing = missingPrograms().join(' ')
    if (missing !== '') say(`Tests of ${missing} are skipped. Debian: apt-get install ${missing}`)
    return null
  }
  async function ifNeeded(need: Need, make: () => Promise<string | null>): Promise<string | null> {
    const lacking = needs.has(need) ? await make() : null
    if (lacking !== null) say(lacking)
    return lacking
  }
  const installed = installGroups({
    browser: needs.has('browser') ? missingChromium() : [],
    postgres: needs.has('postgres') ? missingPostgres() : [],
    programs: needs.has('programs') ? missingPrograms() : [],
  })
  const browser = ifNeeded('browser', async () => whyNoChromium((await installed).browser))
  const postgres = ifNeeded('postgres', async () => startPostgres((await installed).postgres))
  const programs = ifNeeded('programs', () => installed.then(sayMissing))
  return {
    ready: { build: build(say), browser, postgres, programs },
    env: (suite) => environmentOf(suite, { cluster: cluster?.address ?? null, folder }),
    async end() {
      await Promise.all([installed, postgres])
      await cluster?.stop()
    },
  }
}

async function build(say: (text: string) => void): Promise<string | null> {
  try {
    const built = await buildIfStale()
    say(`ok   build${built ? '' : ' (nothing to do)'}`)
    return null
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    say(`${reason}\nFAIL build`)
    return reason
  }
}
