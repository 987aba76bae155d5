/** Which test files share a process, and whose failure a failed group is. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { tempDir } from '../tests/support/temp-dir.ts'
import { groupFiles, resultsOf } from './test-groups.ts'

const file = (path: string, seconds: number, load = 1) => ({ path, seconds, load })
const names = (groups: { files: { path: string }[] }[]) =>
  groups.map(({ files }) => files.map(({ path }) => path).join(' '))

const createLimits = (key: string) => ({ key, fileSecondsMax: 2, groupSecondsMax: 5, groupFilesMax: 10 })

test('small files with the same key share a group until it is 5 s long', () => {
  const files = [file('a', 1.9), file('b', 1.5), file('c', 1.5), file('d', 0.5), file('e', 0.5)]
  expect(names(groupFiles(files, () => createLimits('unit')))).toEqual(['a b c', 'd e'])
  expect(names(groupFiles(files, ({ path }) => createLimits(path < 'c' ? 'x' : 'y')))).toEqual([
    'a b',
    'c d e',
  ])
})

test('a file joins the first group with room for it', () => {
  const files = [
    file('a', 1.5),
    file('b', 1.9),
    file('c', 1.5),
    file('d', 1.9),
    file('e', 0.1),
    file('f', 1.9),
  ]
  expect(names(groupFiles(files, () => createLimits('unit')))).toEqual(['a b c e', 'd f'])
})

test('a group has at most ten files', () => {
  const files = Array.from({ length: 21 }, (_, n) => file(`f${n}`, 0.1))
  expect(groupFiles(files, () => createLimits('unit')).map((group) => group.files.length)).toEqual([
    10, 10, 1,
  ])
})

test('long files and files without a key have their own process', () => {
  const files = [file('a', 0.5), file('long', 2), file('e2e', 0.5), file('b', 0.5)]
  const groups = groupFiles(files, ({ path }) => (path === 'e2e' ? null : createLimits('unit')))
  expect(names(groups)).toEqual(['a b', 'long', 'e2e'])
})

test('the load of a group is the processor time of its files per second', () => {
  const [group] = groupFiles([file('a', 1, 1), file('waits', 1.5, 0)], () => createLimits('unit'))
  expect(group).toMatchObject({ path: 'a', seconds: 2.5, load: 0.4 })
})

const bodies = {
  good: "test('one', () => expect(1).toBe(1)); describe('of', () => { test('two', () => {}) })",
  bad: "test('three', () => expect(1).toBe(2))",
  throws: "test('four', () => {}); throw new Error('while loading')",
  empty: '',
  exits: "test('five', () => process.exit(0))",
}

/** Runs these files in one process of the pinned Bun. */
async function run(...chosen: (keyof typeof bodies)[]) {
  using dir = tempDir()
  const paths = chosen.map((name) => `${name}.test.ts`)
  chosen.forEach((name, n) =>
    writeFileSync(
      dir.join(paths[n]!),
      `import { describe, expect, test } from 'bun:test'\n${bodies[name]}\n`,
    ),
  )
  const args = ['--reporter=junit', `--reporter-outfile=${dir.join('out.xml')}`]
  const child = Bun.spawn([process.execPath, 'test', ...args, ...paths.map((path) => `./${path}`)], {
    cwd: dir.path,
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const code = await child.exited
  const report = Bun.file(dir.join('out.xml'))
  const junit = (await report.exists()) ? await report.text() : null
  const results = resultsOf({ paths, suite: 'unit', junit, code, seconds: 4, cpuSeconds: 2 })
  expect(results.reduce((sum, { seconds }) => sum + seconds, 0)).toBeCloseTo(4)
  return results.map(({ counts }) => [counts.passed, counts.failed])
}

test('each file has its own counts', async () => {
  expect(await run('good', 'bad', 'good')).toEqual([
    [2, 0],
    [0, 1],
    [2, 0],
  ])
})

test('a file that throws while it loads fails, and so does a file without tests', async () => {
  expect(await run('good', 'throws', 'empty')).toEqual([
    [2, 0],
    [0, 1],
    [0, 1],
  ])
})

test('all files of a process that ends early fail', async () => {
  expect(await run('good', 'exits', 'bad')).toEqual([
    [0, 1],
    [0, 1],
    [0, 1],
  ])
})

test('a bad exit code after only passing tests fails every file', () => {
  const junit = '<testsuites tests="1">\n  <testsuite name="a" file="a" tests="1" failures="0">\n'
  const results = resultsOf({ paths: ['a', 'b'], suite: 'unit', junit, code: 1, seconds: 1, cpuSeconds: 1 })
  expect(results.map(({ counts }) => counts.failed)).toEqual([0, 1])
  const combinedJunit = junit + junit.replaceAll('"a"', '"b"')
  const crashed = resultsOf({
    paths: ['a', 'b'],
    suite: 'unit',
    junit: combinedJunit,
    code: 1,
    seconds: 1,
    cpuSeconds: 1,
  })
  expect(crashed.map(({ counts }) => counts.failed)).toEqual([1, 1])
})
