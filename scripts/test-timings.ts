/** Recorded durations of test files, which order the next run of `npm test`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './build.ts'

/** Wall time and processor time in seconds, measured with at most one process per core. */
export type Timings = Record<string, [seconds: number, cpuSeconds: number]>

const timingsPath = join(root, 'tests/timings.json')

/** Shorter files are not recorded, because their order does not matter. */
const recordedSecondsMin = 1
const unrecorded: [number, number] = [0.5, 0.4]

export function readTimings(): Timings {
  return existsSync(timingsPath) ? (JSON.parse(readFileSync(timingsPath, 'utf8')) as Timings) : {}
}

export function timingOf(timings: Timings, path: string): { seconds: number; load: number } {
  const [seconds, cpuSeconds] = timings[path] ?? unrecorded
  return { seconds, load: cpuSeconds / seconds }
}

/** Replaces the timings of the files that ran and drops those of deleted files. */
export function writeTimings(measured: (readonly [path: string, timing: Timings[string]])[]): void {
  const lines = Object.entries({ ...readTimings(), ...Object.fromEntries(measured) })
    .filter(
      ([path, [seconds]]) =>
        seconds >= recordedSecondsMin && existsSync(join(root, path.replace(/ on .*/, ''))),
    )
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([path, [seconds, cpuSeconds]]) =>
        `  ${JSON.stringify(path)}: [${seconds.toFixed(1)}, ${cpuSeconds.toFixed(1)}]`,
    )
  writeFileSync(timingsPath, `{\n${lines.join(',\n')}\n}\n`)
}

/** The nearest test files that fit into `seconds` of processor time, and the number of the others. */
export function nearestWithin<T extends { path: string; seconds: number; load: number }>(
  files: T[],
  distance: Map<string, number>,
  cpuSecondsMax: number,
): { within: T[]; beyond: number } {
  const far = ({ path }: T): number => distance.get(path) ?? Infinity
  const nearestFiles: T[] = []
  let usedSeconds = 0
  for (const file of files.toSorted((a, b) => far(a) - far(b) || a.seconds - b.seconds)) {
    usedSeconds += Math.max(file.seconds * file.load, file.seconds / 4)
    // A test file that changed itself always runs.
    if (usedSeconds <= cpuSecondsMax || far(file) === 0) nearestFiles.push(file)
  }
  return { within: nearestFiles, beyond: files.length - nearestFiles.length }
}
