/** No test file is missing from the suites, and a run ends in time whatever hangs. */
import { expect, test } from 'bun:test'
import { root } from './build.ts'
import { capMs, coreFilesOf, everydayFilesOf, fileMsMax, filesOf, runMsMax, suites } from './suites.ts'

const files = [
  ...new Bun.Glob('{server,db,web,sdk,scripts,tests}/**/*.test.{ts,tsx}').scanSync({ cwd: root }),
]

test('every test file belongs to exactly one suite of its engine', () => {
  const owned = suites.filter(({ engine }) => engine === 'sqlite').flatMap(filesOf)
  expect(files.length).toBeGreaterThan(10)
  expect(owned.toSorted()).toEqual(files.filter((file) => !file.includes('node_modules/')).toSorted())
})

test('an everyday run leaves out only the heavy benches, which a full run has', () => {
  const ofSqlite = suites.filter(({ engine }) => engine === 'sqlite')
  const listEverydayFiles = (isFull: boolean) =>
    ofSqlite.flatMap((suite) => everydayFilesOf(suite, { isFull }))
  expect(listEverydayFiles(true)).toEqual(ofSqlite.flatMap(filesOf))
  const everyday = new Set(listEverydayFiles(false))
  expect(listEverydayFiles(true).filter((path) => !everyday.has(path))).toEqual(
    ['backup', 'explore', 'full-load', 'neighbours', 'page-change', 'postgres', 'questions'].map(
      (name) => `tests/bench/${name}.test.ts`,
    ),
  )
})

test('core has tidy, short unit tests, the store and a few of api, and nothing of other suites', () => {
  const core = suites.map((suite) => [
    suite.name,
    coreFilesOf(suite, (path) => (path === 'server/system/clock.test.ts' ? 2.1 : 2)),
  ])
  const files = Object.fromEntries(core) as { [name: string]: string[] }
  const filled = Object.keys(files).filter((name) => files[name]!.length > 0)
  expect(filled).toEqual(['tidy', 'unit', 'store', 'api'])
  const unit = suites.find(({ name }) => name === 'unit')!
  expect(filesOf(unit).filter((path) => !files['unit']!.includes(path))).toEqual([
    'server/system/clock.test.ts',
  ])
  expect(files['store']).toEqual(
    ['audit-chain', 'event-fields', 'opening', 'restore', 'setup', 'sqlite'].map(
      (name) => `tests/store/${name}.test.ts`,
    ),
  )
  expect(files['api']).toEqual(
    ['gateway-sessions', 'gateway-traces', 'identity-keys', 'ingest', 'keys'].map(
      (name) => `tests/api/${name}.test.ts`,
    ),
  )
})

test('no file gets more time than its limit, its suite and the run allow', () => {
  for (const suite of suites) {
    expect(capMs(suite, 0, 0)).toBe(Math.min(fileMsMax, suite.suiteTimeoutMs))
    expect(capMs(suite, suite.suiteTimeoutMs - 500, 0)).toBe(500)
    expect(capMs(suite, 0, runMsMax - 700)).toBe(700)
    expect(capMs(suite, suite.suiteTimeoutMs + 1, runMsMax + 1)).toBe(1)
  }
})

test('the whole run stays under 40 minutes even when every file hangs', () => {
  let sinceStartMs = 0
  for (const suite of suites) {
    let usedMs = 0
    for (const _ of filesOf(suite)) {
      const ms = capMs(suite, usedMs, sinceStartMs)
      usedMs += ms
      sinceStartMs += ms
    }
  }
  expect(sinceStartMs).toBeLessThan(39 * 60_000)
})
