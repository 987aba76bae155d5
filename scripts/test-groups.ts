/** Groups of small test files that share a process, so that the modules they import load once, for `npm test`. */
import { countExpects, countRun, type FileResult, junitOf, testTimes } from './summary.ts'
import type { Job } from './test-pool.ts'

/** Which files share a process: those with the same key, which need the same, within these limits. */
export interface Sharing {
  key: string
  /** Longer files run in a process of their own. */
  fileSecondsMax: number
  /** Short groups run side by side until the end of a run, and lose little when their process crashes. */
  groupSecondsMax: number
  groupFilesMax: number
}

export interface Group<T extends Job> extends Job {
  files: T[]
}

/** Each file is in one group. A file without a sharing has a group of its own. */
export function groupFiles<T extends Job>(files: T[], sharing: (file: T) => Sharing | null): Group<T>[] {
  const groups: Group<T>[] = []
  const open = new Map<string, Group<T>[]>()
  for (const file of files) {
    const sharingRule = sharing(file)
    const shared = sharingRule !== null && file.seconds < sharingRule.fileSecondsMax ? sharingRule : null
    const openGroups = shared === null ? [] : (open.get(shared.key) ?? [])
    const group = openGroups.find(
      ({ files: { length }, seconds }) =>
        length < shared!.groupFilesMax && seconds + file.seconds <= shared!.groupSecondsMax,
    )
    if (group !== undefined) {
      const busy = group.seconds * group.load + file.seconds * file.load
      group.seconds += file.seconds
      group.load = busy / group.seconds
      group.files.push(file)
    } else {
      const { path, seconds, load, needs = [] } = file
      const started = { path, seconds, load, needs, files: [file] }
      groups.push(started)
      if (shared !== null) open.set(shared.key, [...openGroups, started])
    }
  }
  return groups
}

interface GroupRun {
  paths: string[]
  suite: string
  junit: string | null
  code: number
  seconds: number
  cpuSeconds: number
}

/** The result of each file of a group. A file that the report does not name failed, and so did all after a crash. */
export function resultsOf({ paths, suite, junit, code, seconds, cpuSeconds }: GroupRun): FileResult[] {
  const alone = paths.length === 1
  const results = paths.map((path) => {
    const text = alone ? junit : junitOf(junit, path)
    const counts = countRun({ junit: text, code: alone ? code : 0 })
    return { path, suite, counts, expects: countExpects(text), tests: testTimes(text) }
  })
  const crashed = code !== 0 && results.every(({ counts }) => counts.failed === 0)
  const timeOf = ({ tests }: { tests: FileResult['tests'] }): number =>
    tests.reduce((sum, test) => sum + test.seconds, 0.001)
  const timed = results.reduce((sum, result) => sum + timeOf(result), 0)
  return results.map((result) => {
    const share = timeOf(result) / timed
    const counts = crashed ? { ...result.counts, failed: 1 } : result.counts
    return { ...result, counts, seconds: seconds * share, cpuSeconds: cpuSeconds * share }
  })
}
