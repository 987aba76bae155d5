/** `npm test [suite …]`: checks, builds, runs every suite, and says `N passed, N failed` as its last line. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildIfStale, root } from './build.ts'
import { describeCheck, runChecks } from './checks.ts'
import { ensureChromium } from './chromium.ts'
import { command } from './command.ts'
import { type Counts, addCounts, closingLine, countRun, noCounts } from './summary.ts'
import { capMs, type Suite, suites } from './suites.ts'

const oneFailed: Counts = { passed: 0, failed: 1, skipped: 0 }
const onePassed: Counts = { passed: 1, failed: 0, skipped: 0 }
const junitDir = join(root, 'out', 'junit')

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

function present(suite: Suite): string[] {
  return suite.paths.filter((path) => existsSync(join(root, path))).filter(hasTests)
}

function hasTests(path: string): boolean {
  if (path.includes('.test.')) return true
  return !new Bun.Glob('**/*.test.{ts,tsx}').scanSync({ cwd: join(root, path) }).next().done
}

async function runSuite(suite: Suite, timeoutMs: number): Promise<Counts> {
  const junit = join(junitDir, `${suite.name}.xml`)
  say(`\n== ${suite.name}`)
  const args = ['--no-orphans', 'test', `--timeout=${suite.testTimeoutMs}`, `--retry=${suite.attempts - 1}`]
  args.push('--reporter=junit', `--reporter-outfile=${junit}`, ...present(suite).map((path) => `./${path}`))
  const result = await command([process.execPath, ...args], {
    timeoutMs,
    env: { SIGHTGLASS_TEST_BINARY: 'built' }, // suites need not look for newer sources again
  })
  if (result.timedOut) say(`${suite.name} was ended after ${(timeoutMs / 60_000).toFixed(1)} minutes`)
  const text = existsSync(junit) ? readFileSync(junit, 'utf8') : null
  const counts = countRun({ junit: text, code: result.timedOut ? 1 : result.code })
  say(`== ${suite.name}: ${closingLine(counts)} in ${(result.durationMs / 1_000).toFixed(1)} s`)
  return counts
}

async function builds(): Promise<boolean> {
  try {
    const built = await buildIfStale()
    say(`ok   build${built ? '' : ' (nothing to do)'}`)
    return true
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
    say('FAIL build')
    return false
  }
}

async function main(names: string[]): Promise<Counts> {
  const unknown = names.filter((name) => !suites.some((suite) => suite.name === name))
  if (unknown.length > 0) {
    say(`no suite ${unknown.join(', ')}; there are ${suites.map((suite) => suite.name).join(', ')}`)
    return oneFailed
  }
  rmSync(junitDir, { recursive: true, force: true })
  mkdirSync(junitDir, { recursive: true })
  const chosen = suites
    .filter((suite) => names.length === 0 || names.includes(suite.name))
    .filter((suite) => present(suite).length > 0)
  let total = noCounts
  for (const check of await runChecks()) {
    process.stdout.write(describeCheck(check))
    total = addCounts(total, check.ok ? onePassed : oneFailed)
  }
  const hasBinary = await builds()
  total = addCounts(total, hasBinary ? onePassed : oneFailed)
  const noBrowser = chosen.some((suite) => suite.needsBrowser) ? await ensureChromium() : null
  if (noBrowser !== null) say(noBrowser)
  const startedMs = performance.now()
  for (const suite of chosen) {
    const lacking = (suite.needsBinary && !hasBinary) || (suite.needsBrowser && noBrowser !== null)
    if (lacking) say(`\n== ${suite.name}: not run, counts as failed`)
    total = addCounts(
      total,
      lacking ? oneFailed : await runSuite(suite, capMs(suite, performance.now() - startedMs)),
    )
  }
  return total
}

const total = await main(process.argv.slice(2))
say(`\n${closingLine(total)}`)
process.exitCode = total.failed === 0 ? 0 : 1
