/** The selection of test files by `npm test -- --changed`. */
import { expect, test } from 'bun:test'
import { distances, readGraph } from './changed.ts'
import { nearestWithin } from './test-timings.ts'

test('distance counts the imports to the nearest changed file', () => {
  const graph = new Map([
    ['a.test.ts', ['a.ts']],
    ['a.ts', ['b.ts']],
    ['b.ts', []],
    ['b.test.ts', ['b.ts', 'a.ts']],
    ['other.test.ts', ['c.ts']],
    ['c.ts', ['c.ts']],
  ])
  expect(Object.fromEntries(distances(graph, ['b.ts']))).toEqual({
    'b.ts': 0,
    'a.ts': 1,
    'b.test.ts': 1,
    'a.test.ts': 2,
  })
})

test('a test that runs the executable depends on the sources of the server and of the dashboard', () => {
  const graph = readGraph()
  const distancesFrom = (changed: string) => distances(graph, [changed])
  expect(distancesFrom('scripts/suites.ts').get('scripts/suites.test.ts')).toBe(1)
  expect(distancesFrom('server/app.ts').get('tests/e2e/dashboard.test.ts')).toBeGreaterThan(2)
  expect(distancesFrom('web/shell.tsx').get('tests/e2e/dashboard.test.ts')).toBeGreaterThan(2)
  expect(distancesFrom('tests/e2e/dashboard.test.ts').get('scripts/suites.test.ts')).toBeUndefined()
})

test('the nearest files that fit into the time run, and changed test files always run', () => {
  const files = [
    { path: 'far', seconds: 1, load: 1 },
    { path: 'near and long', seconds: 9, load: 1 },
    { path: 'near', seconds: 4, load: 1 },
    { path: 'changed', seconds: 50, load: 1 },
  ]
  const distance = new Map([
    ['far', 5],
    ['near and long', 1],
    ['near', 1],
    ['changed', 0],
  ])
  const paths = (max: number) => nearestWithin(files, distance, max).within.map(({ path }) => path)
  expect(paths(60)).toEqual(['changed', 'near'])
  expect(paths(1)).toEqual(['changed'])
  expect(nearestWithin(files, distance, 64)).toMatchObject({ within: { length: 4 }, beyond: 0 })
})
