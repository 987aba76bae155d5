/** Tests of the counting behind `N passed, N failed`. */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { tempDir } from '../tests/support/temp-dir.ts'
import {
  addCounts,
  closingLine,
  countExpects,
  countRun,
  notInstalledLine,
  processorLine,
  secondAttemptsLine,
  suiteTable,
  testTimes,
} from './summary.ts'

const junit = (attributes: string): string =>
  `<?xml version="1.0"?>\n<testsuites name="bun test" ${attributes}>\n`

test('passed tests are those that neither failed nor were skipped', () => {
  const text = junit('tests="10" assertions="99" failures="2" skipped="3"')
  expect(countRun({ junit: text, code: 1 })).toEqual({ passed: 5, failed: 2, skipped: 3 })
})

test('a run that crashed without a file counts as one failure', () => {
  expect(countRun({ junit: null, code: 139 })).toEqual({ passed: 0, failed: 1, skipped: 0 })
})

test('a bad exit code after only passing tests still counts as one failure', () => {
  const text = junit('tests="4" failures="0" skipped="0"')
  expect(countRun({ junit: text, code: 1 })).toEqual({ passed: 4, failed: 1, skipped: 0 })
})

test('a successful run without tests is a failure', () => {
  expect(countRun({ junit: null, code: 0 }).failed).toBe(1)
  expect(countRun({ junit: junit('tests="0" failures="0" skipped="0"'), code: 0 }).failed).toBe(1)
})

test('processor time stands beside the floor of the same run', () => {
  const file = (cpuSeconds: number) => {
    const counts = { passed: 1, failed: 0, skipped: 0 }
    return { path: 'a', suite: 'unit', counts, expects: 0, seconds: 9, cpuSeconds, tests: [] }
  }
  const files = [file(700), file(50)]
  expect(processorLine(files, 0.5)).toBe(
    'processor time of all files: 750 s, 1,500 times the floor of this run (0.50 s for a fixed piece of work)',
  )
  expect(processorLine(files, null)).toBe('processor time of all files: 750 s')
})

test('the last line names skipped tests only if there are any', () => {
  const counts = { passed: 2, failed: 0, skipped: 0 }
  expect(closingLine(counts)).toBe('2 passed, 0 failed')
  expect(closingLine(addCounts(counts, { passed: 1, failed: 4, skipped: 1 }))).toBe(
    '3 passed, 4 failed, 1 skipped',
  )
})

test('skipped tests say what to install, once for each package', () => {
  const file = (...names: string[]) => ({
    path: 'a',
    suite: 'e2e',
    counts: { passed: 0, failed: 0, skipped: 2 },
    expects: 0,
    seconds: 1,
    cpuSeconds: 1,
    tests: names.map((name) => ({ name, seconds: 0 })),
  })
  const missing = ['nginx', 'caddy', 'nginx'].map((name) => `a test (not installed: apt-get install ${name})`)
  expect(notInstalledLine([file('a test'), file(...missing)])).toBe(
    'skipped because programs are not installed: 3 (apt-get install caddy nginx)',
  )
  expect(notInstalledLine([file('a test')])).toBeNull()
})

test('the JUnit file of the pinned Bun is parsed', () => {
  using dir = tempDir()
  const inner = [
    "test('good <&>', () => {})",
    "test('bad', () => expect(1).toBe(2))",
    "test['sk' + 'ip']('left', () => {})",
  ]
  writeFileSync(dir.join('inner.test.ts'), `import { expect, test } from 'bun:test'\n${inner.join('\n')}\n`)
  const file = dir.join('out.xml')
  const run = Bun.spawnSync(
    [process.execPath, 'test', '--reporter=junit', `--reporter-outfile=${file}`, './inner.test.ts'],
    { cwd: dir.path, stdout: 'ignore', stderr: 'ignore' },
  )
  const written = readFileSync(file, 'utf8')
  const counts = countRun({ junit: written, code: run.exitCode })
  expect(counts).toEqual({ passed: 1, failed: 1, skipped: 1 })
  expect(countExpects(written)).toBe(1)
  expect(testTimes(written)).toEqual(
    ['good <&>', 'bad', 'left'].map((name) => ({ name, seconds: expect.any(Number) as number })),
  )
})

test('second attempts are named on one line, which is absent without them', () => {
  expect(secondAttemptsLine([])).toBeNull()
  expect(secondAttemptsLine(['a.test.ts', 'b.test.ts'])).toBe(
    'second attempts: 2 (a.test.ts, b.test.ts). A test that fails once is a bug to fix.',
  )
})

test('the table sums the files of each suite', () => {
  const file = {
    path: 'a',
    suite: 'unit',
    counts: { passed: 2, failed: 1, skipped: 0 },
    expects: 5,
    seconds: 1.2,
    cpuSeconds: 0.9,
    tests: [],
  }
  const lines = suiteTable([file, { ...file, path: 'b' }, { ...file, suite: 'e2e' }]).split('\n')
  expect(lines.map((line) => line.trim().split(/ {2,}/))).toEqual([
    ['suite', 'files', 'tests', 'failed', 'expects', 'seconds', 'processor seconds'],
    ['unit', '2', '6', '2', '10', '2', '2'],
    ['e2e', '1', '3', '1', '5', '1', '1'],
  ])
})
