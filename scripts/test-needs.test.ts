/** What test files need, found by their imports. */
import { expect, test } from 'bun:test'
import { readNeeds } from './test-needs.ts'
import { suites } from './suites.ts'

const needsOf = readNeeds()
const suite = (name: string) => suites.find((each) => each.name === name)!

test.each([
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
