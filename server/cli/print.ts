/** Prints the answers of commands, and makes text safe and aligned for a terminal. */
import { writeSync } from 'node:fs'
import type { Json } from '../../db/contract/store.ts'

/** What work returns: a JSON object. */
export type Answer = { [name: string]: Json }

/** Prints the answer as one JSON value with --json, otherwise as text. */
export function printAnswer<A>({ json }: { json: boolean }, answer: A, text: (answer: A) => string): void {
  print(json ? JSON.stringify(answer) : text(answer))
}

/** Returns when everything is written, so the process may end right after. A closed pipe is not an error. */
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

/** On one line, so that the journal and `systemctl status` show all of it. */
export function printError(message: string, hint: string | null): void {
  print(`sightglass: ${oneLine(message)}${hint === null ? '' : ` (${oneLine(hint)})`}`, 2)
}

/** Removes control characters: text from elsewhere must not control the terminal. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ')
}

/** Aligned columns below a heading. */
export function columns(heading: string[], rows: string[][]): string {
  const lines = [heading, ...rows].map((row) => row.map(oneLine))
  const widths = heading.map((_, column) =>
    Math.max(...lines.map((row) => Bun.stringWidth(row[column] ?? ''))),
  )
  return lines
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat(widths[column]! - Bun.stringWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** The objects of a list in an answer. */
export function rows(value: Json | undefined): Answer[] {
  return Array.isArray(value) ? (value as Answer[]) : []
}

/** One value on one line; empty for null. */
export function cell(value: Json | undefined): string {
  return value === null || value === undefined ? '' : oneLine(String(value))
}

/** `2026-06-23 12:00`, UTC. */
export function minute(value: Json | undefined): string {
  return cell(value).slice(0, 16).replace('T', ' ')
}

/** A table of a list, or `empty` when the list is empty. */
export function table(
  value: Json | undefined,
  empty: string,
  heading: string[],
  row: (item: Answer) => string[],
): string {
  const items = rows(value)
  return items.length === 0 ? empty : columns(heading, items.map(row))
}
