/** Counts what a run of `bun test` did, from the JUnit file it wrote. */

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

export const noCounts: Counts = { passed: 0, failed: 0, skipped: 0 }

export function addCounts(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

export interface SuiteRun {
  junit: string | null // text of the file, null when none was written
  code: number
}

/** A run that ended badly counts at least one failure, whatever it wrote: a crash must never look like a pass. */
export function countRun(run: SuiteRun): Counts {
  const counts = fromJunit(run.junit) ?? noCounts
  if (run.code !== 0 && counts.failed === 0) return { ...counts, failed: 1 }
  if (run.code === 0 && counts.passed + counts.failed + counts.skipped === 0) return { ...counts, failed: 1 }
  return counts
}

function fromJunit(text: string | null): Counts | null {
  const root = /<testsuites\b[^>]*>/.exec(text ?? '')?.[0]
  if (root === undefined) return null
  const attribute = (name: string): number => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(root)?.[1] ?? 0)
  const failed = attribute('failures') + attribute('errors')
  const skipped = attribute('skipped')
  return { passed: attribute('tests') - failed - skipped, failed, skipped }
}

/** The last line of `npm test`. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
