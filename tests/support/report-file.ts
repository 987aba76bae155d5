/** A helper process's report, written before it answers, so that every answered request is in the file. */
import { appendFileSync, closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { tempDir } from './temp-dir.ts'

export interface ReportFile {
  path: string
  /** Everything so far, one line each. A line that is still being written is left for the next call. */
  lines(): string[]
  remove(): void
}

export function reportFile(): ReportFile {
  const dir = tempDir('report')
  const path = dir.join('lines')
  const file = openSync(path, 'a+')
  const lines: string[] = []
  let readTo = 0
  return {
    path,
    lines() {
      const fresh = Buffer.alloc(fstatSync(file).size - readTo)
      const bytes = fresh.subarray(0, readSync(file, fresh, 0, fresh.length, readTo))
      const end = bytes.lastIndexOf(0x0a) + 1
      if (end > 0) lines.push(...bytes.toString('utf8', 0, end - 1).split('\n'))
      readTo += end
      return lines
    },
    remove() {
      closeSync(file)
      dir.remove()
    },
  }
}

/** The helper's side. Through a pipe, a line could arrive after the answer that it reports. */
export function report(path: string, value: unknown): void {
  appendFileSync(path, `${JSON.stringify(value)}\n`)
}
