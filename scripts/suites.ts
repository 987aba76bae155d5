/** The test suites, their files and their time limits, for `npm test`. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './build.ts'
import { sqliteOnlyFiles } from '../tests/support/sqlite-only.ts'
import type { Sharing } from './test-groups.ts'

export interface Suite {
  name: string
  /** Files or folders; missing ones are skipped. */
  paths: string[]
  testTimeoutMs: number
  /** Limit of the suite's time; `runMsMax` limits the whole run. */
  suiteTimeoutMs: number
  needsBinary: boolean
  needsBrowser: boolean
  /** The engine on which its tests run their servers. */
  engine: Engine
}

export type Engine = 'sqlite' | 'postgres'

/** Suites whose small files share a process. */
const sharing = ['unit', 'store', 'engine', 'fuzz']
const smallFiles = { fileSecondsMax: 14, groupSecondsMax: 30, groupFilesMax: 60 }

/** Each process of these compiles the server anew, which takes 0.3 s of processor time, so more files share one. */
const sharingServer = ['api', 'e2e', 'regressions', 'crash', 'support']
const serverFiles = { fileSecondsMax: 20, groupSecondsMax: 36, groupFilesMax: 60 }

/** Loading Playwright and starting Chromium cost 1 s of processor time, so files that use a browser share one. */
const browserFiles = { fileSecondsMax: 40, groupSecondsMax: 60, groupFilesMax: 12 }

/** The name of the suite on SQLite. */
export function kindOf({ name }: Suite): string {
  return name.replace(/-postgres$/, '')
}

/** With which other files a test file may share a process; null if it runs in its own. */
export function sharingOf(suite: Suite, path: string): Sharing | null {
  const { name, engine } = suite
  const kind = kindOf(suite)
  if (kind === 'e2e' && readFileSync(join(root, path), 'utf8').includes('closeBrowser'))
    return { key: `browser ${engine}`, ...browserFiles }
  if (sharingServer.includes(kind)) return { key: name, ...serverFiles }
  return sharing.includes(kind) ? { key: name, ...smallFiles } : null
}

/** Suites about what a disk has after a crash, or how fast it is. The folders of all others may be in memory. */
const ofDisks = ['crash', 'bench']

export function needsDisk(suite: Suite): boolean {
  return ofDisks.includes(kindOf(suite))
}

const minuteMs = 60_000

/** The whole run ends within 40 minutes, whatever hangs. */
export const runMsMax = 38 * minuteMs

/** The slowest file needs a tenth of this. */
export const fileMsMax = 5 * minuteMs

/** Time limit of a file, given the time used by its suite and by the run; 1 ms if none is left. */
export function capMs(suite: Suite, usedMs: number, sinceStartMs: number): number {
  return Math.max(1, Math.min(fileMsMax, suite.suiteTimeoutMs - usedMs, runMsMax - sinceStartMs))
}

function suite(name: string, paths: string[], testSeconds: number, minutes: number, needs: string): Suite {
  return {
    name,
    paths,
    testTimeoutMs: testSeconds * 1_000,
    suiteTimeoutMs: minutes * minuteMs,
    needsBinary: needs !== 'nothing',
    needsBrowser: needs === 'browser',
    engine: 'sqlite',
  }
}

/** The same files, with a database of PostgreSQL in place of each data folder. */
function onPostgres(baseSuite: Suite): Suite {
  return { ...baseSuite, name: `${baseSuite.name}-postgres`, engine: 'postgres' }
}

const ofSqlite: Suite[] = [
  suite('tidy', ['tests/tidy.test.ts', 'tests/tidy'], 30, 1, 'nothing'),
  suite('unit', ['server', 'db', 'web', 'sdk', 'scripts'], 60, 10, 'nothing'),
  suite('support', ['tests/support', 'tests/soak'], 30, 1, 'browser'),
  suite('store', ['tests/store'], 60, 10, 'nothing'),
  suite('engine', ['tests/engine'], 120, 8, 'nothing'),
  suite('api', ['tests/api'], 60, 16, 'binary'),
  suite('e2e', ['tests/e2e'], 60, 20, 'browser'),
  suite('crash', ['tests/crash'], 120, 9, 'binary'),
  suite('fuzz', ['tests/fuzz'], 60, 5, 'binary'),
  suite('regressions', ['tests/regressions'], 60, 4, 'binary'),
  suite('bench', ['tests/bench'], 120, 8, 'browser'),
]

/** The suites that run on both engines. */
const ofBoth = ['api', 'e2e', 'regressions']

export const suites: Suite[] = [
  ...ofSqlite,
  ...ofSqlite.filter(({ name }) => ofBoth.includes(name)).map(onPostgres),
]

/** Paths of the suite's test files, from the root of the repository. */
export function filesOf(suite: Suite): string[] {
  return suite.paths
    .filter((path) => existsSync(join(root, path)))
    .flatMap((path) => {
      if (path.includes('.test.')) return [path]
      const testFiles = new Bun.Glob('**/*.test.{ts,tsx}').scanSync({ cwd: join(root, path) })
      return [...testFiles].map((name) => `${path}/${name}`)
    })
    .filter((path) => !path.includes('node_modules/'))
    .filter((path) => suite.engine === 'sqlite' || sqliteOnlyFiles[path] === undefined)
    .toSorted()
}

/** What depends most on the engine: what the API stores and answers, and the client package. */
const everydayParts = [
  'gateway-(metrics|registry|sessions|traces)|identity-(audit|keys)',
  'webhooks-deliveries|dashboard-counts|future-events|ingest|keys|live|traces',
]
const everyday = RegExp(`^tests/(api/(${everydayParts.join('|')})|e2e/sdk-gateway)\\.test`)

/**
 * Benches of whole servers or large tables, 45 s of processor time. A bench short enough for every day would mostly
 * measure the start of its processes and the filling of its tables.
 */
const heavyBenches = [
  'backup',
  'explore',
  'full-load',
  'neighbours',
  'page-change',
  'postgres',
  'questions',
].map((name) => `tests/bench/${name}.test.ts`)

/** `npm test -- core`: what most changes break first, in about a minute. */
const coreStore = /^tests\/store\/(audit-chain|event-fields|opening|restore|setup|sqlite)\.test/
const coreApi = /^tests\/api\/(gateway-(sessions|traces)|identity-keys|ingest|keys)\.test/

/** Files of the suite unit that use more processor time are left out of `core`. */
const coreUnitSecondsMax = 2

/** Files of `core`, given the processor time of each: tidy, short unit tests, the store on SQLite, a few of api. */
export function coreFilesOf(suite: Suite, cpuSecondsOf: (path: string) => number): string[] {
  if (suite.engine !== 'sqlite') return []
  if (suite.name === 'tidy') return filesOf(suite)
  if (suite.name === 'unit') return filesOf(suite).filter((path) => cpuSecondsOf(path) <= coreUnitSecondsMax)
  if (suite.name === 'store') return filesOf(suite).filter((path) => coreStore.test(path))
  return suite.name === 'api' ? filesOf(suite).filter((path) => coreApi.test(path)) : []
}

/** Those of a run that names no suites. `--full` has the heavy benches too. */
export function everydayFilesOf(suite: Suite, { isFull }: { isFull: boolean }): string[] {
  return filesOf(suite).filter(
    (path) => (suite.engine === 'sqlite' || everyday.test(path)) && (isFull || !heavyBenches.includes(path)),
  )
}
