/** Tests that no test file is forgotten and that all caps together leave time to spare. */
import { expect, test } from 'bun:test'
import { root } from './build.ts'
import { capMs, suites } from './suites.ts'

const files = [
  ...new Bun.Glob('{server,db,web,sdk,scripts,tests}/**/*.test.{ts,tsx}').scanSync({ cwd: root }),
]

test('every test file belongs to exactly one suite', () => {
  const owners = (file: string): string[] =>
    suites
      .filter(({ paths }) => paths.some((path) => file === path || file.startsWith(`${path}/`)))
      .map(({ name }) => name)
  const wrong = files.filter((file) => !file.includes('node_modules/') && owners(file).length !== 1)
  expect(files.length).toBeGreaterThan(10)
  expect(wrong).toEqual([])
})

test('the whole run stays under 40 minutes even when every suite hangs', () => {
  const hung = suites.reduce((sinceFirstMs, suite) => sinceFirstMs + capMs(suite, sinceFirstMs), 0)
  expect(hung).toBeLessThan(39 * 60_000)
  for (const suite of suites) expect(capMs(suite, 0)).toBe(suite.suiteTimeoutMs)
})
