/** Prints a verb's answer and fits texts for a terminal. */
import { writeSync } from 'node:fs'

/** Writes everything before it returns, so that the process may end right after; a reader who left is no error. */
export function print(text: string | Uint8Array, fd = 1): void {
  const bytes = typeof text === 'string' ? Buffer.from(text.endsWith('\n') ? text : `${text}\n`) : text
  let from = 0
  while (from < bytes.length) {
    try {
      from += writeSync(fd, bytes, from)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : null
      if (code === 'EPIPE') return
      if (code !== 'EAGAIN') throw error
      Bun.sleepSync(2)
    }
  }
}

/** One line, so that a log or a unit's status shows the whole of it. */
export function printError(message: string, hint: string | null): void {
  print(`sightglass: ${oneLine(message)}${hint === null ? '' : ` (${oneLine(hint)})`}`, 2)
}

/** Text from elsewhere must not steer the terminal it is shown on. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ')
}

/** Rows as columns under a heading, two spaces between them. */
export function columns(heading: string[], rows: string[][]): string {
  const lines = [heading, ...rows].map((row) => row.map(oneLine))
  const widths = heading.map((_, at) => Math.max(...lines.map((row) => Bun.stringWidth(row[at] ?? ''))))
  return lines
    .map((row) =>
      row
        .map((cell, at) => cell + ' '.repeat(widths[at]! - Bun.stringWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
