/** What test files need, found by their imports, and the folder in memory. */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { tempDir } from '../tests/support/temp-dir.ts'
import { environmentOf, memoryFolder, readNeeds } from './test-needs.ts'
import { suites } from './suites.ts'

const needsOf = readNeeds()
const suite = (name: string) => suites.find((candidate) => candidate.name === name)!

test.each([
  ['tidy', 'tests/tidy.test.ts', []],
  ['unit', 'server/text/csv.test.ts', []],
  ['store', 'tests/store/sqlite.test.ts', []],
  ['store', 'tests/store/postgres.test.ts', ['build', 'postgres']],
  ['store', 'tests/store/upgrade.test.ts', ['build']],
  ['api', 'tests/api/traces.test.ts', ['build']],
  ['api-postgres', 'tests/api/traces.test.ts', ['build', 'postgres']],
  ['crash', 'tests/crash/rounds.test.ts', ['build']],
  ['e2e', 'tests/e2e/pages.test.ts', ['build', 'browser']],
  ['e2e', 'tests/e2e/web-servers.test.ts', ['build', 'browser', 'programs']],
] as const)('%s: %s', (name, file, needs) => {
  expect(needsOf(suite(name), file)).toEqual([...needs])
})

test('a folder in memory replaces those of runs that were killed, and needs room', () => {
  using dir = tempDir()
  const ended = Bun.spawnSync(['true']).pid
  const killed = dir.join(`sightglass-tests-${ended}`)
  const running = dir.join(`sightglass-tests-${process.ppid}`)
  const foreign = dir.join('other')
  for (const folder of [killed, running, foreign]) mkdirSync(folder)
  writeFileSync(`${killed}/data`, 'x')
  const folder = memoryFolder(dir.path, 1)!
  expect(
    readdirSync(dir.path)
      .map((name) => dir.join(name))
      .toSorted(),
  ).toEqual([foreign, running, folder].toSorted())
  expect(statSync(folder).mode & 0o777).toBe(0o711)
  expect(memoryFolder(dir.path, Infinity)).toBeNull()
  const mounts = (options: string) => () =>
    `proc /proc proc rw,noexec 0 0\ntmpfs ${dir.path} tmpfs ${options} 0 0\n`
  expect(memoryFolder(dir.path, 1, mounts('rw,nosuid,nodev,noexec,relatime'))).toBeNull()
  expect(memoryFolder(dir.path, 1, mounts('rw,nosuid,nodev'))).toBe(folder)
  expect(memoryFolder(dir.join('missing'), 1)).toBeNull()
})

test('suites about disks are not in memory', () => {
  const names = suites.filter((candidate) => {
    const { SIGHTGLASS_TEST_FOLDER } = environmentOf(candidate, { cluster: null, folder: '/in/memory' })
    return SIGHTGLASS_TEST_FOLDER === undefined
  })
  expect(names.map(({ name }) => name)).toEqual(['crash', 'bench'])
})
