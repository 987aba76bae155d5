/** The test suites in the order they run: cheap and telling ones first. */

export interface Suite {
  name: string
  /** Files or folders; those that do not exist are left out, and a suite without any is skipped silently. */
  paths: string[]
  testTimeoutMs: number
  /** Wall-clock cap of the whole suite; `runMsMax` caps all of them together. */
  suiteTimeoutMs: number
  needsBinary: boolean
  needsBrowser: boolean
  /** How often a failing test is tried: twice with a browser, whose timing is the machine's. Both tries are printed. */
  attempts: number
}

const minuteMs = 60_000

/** The whole run ends under 40 minutes, whatever hangs. */
export const runMsMax = 38 * minuteMs

/** How long a suite may take that starts so long after the first one; 1 ms when nothing is left. */
export function capMs(suite: Suite, sinceFirstMs: number): number {
  return Math.max(1, Math.min(suite.suiteTimeoutMs, runMsMax - sinceFirstMs))
}

function suite(name: string, paths: string[], testSeconds: number, minutes: number, needs: string): Suite {
  return {
    name,
    paths,
    testTimeoutMs: testSeconds * 1_000,
    suiteTimeoutMs: minutes * minuteMs,
    needsBinary: needs !== 'nothing',
    needsBrowser: needs === 'browser',
    attempts: needs === 'browser' ? 2 : 1,
  }
}

export const suites: Suite[] = [
  suite('tidy', ['tests/tidy.test.ts', 'tests/tidy'], 30, 1, 'nothing'),
  suite('unit', ['server', 'db', 'web', 'sdk', 'scripts'], 60, 6, 'nothing'),
  suite('support', ['tests/support'], 30, 1, 'browser'),
  suite('store', ['tests/store'], 60, 8, 'nothing'),
  suite('engine', ['tests/engine'], 120, 8, 'nothing'),
  suite('api', ['tests/api'], 60, 8, 'binary'),
  suite('e2e', ['tests/e2e'], 60, 20, 'browser'),
  suite('crash', ['tests/crash'], 120, 6, 'binary'),
  suite('fuzz', ['tests/fuzz'], 60, 2, 'binary'),
  suite('regressions', ['tests/regressions'], 60, 2, 'binary'),
  suite('bench', ['tests/bench'], 120, 8, 'browser'),
]
