/** Reads a setup file. Every message has the file, the line and the field. */
import { dirname, resolve } from 'node:path'
import { readTextFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import { UsageError } from '../../errors.ts'
import { readSetup, type Setup } from './form.ts'

const bytesMax = 1024 * 1024

export function readSetupFile(path: string): Setup {
  const text = readText(path, path)
  const readSecret = (file: string) => readText(resolve(dirname(path), file), path)
  return readSetupText(text, path, readSecret)
}

export function readSetupText(text: string, name: string, readSecret: (file: string) => string): Setup {
  const lineOf = lineFinder(text)
  const formatPosition = (path: string) => {
    const line = lineOf(path)
    return `${name}${line === null ? '' : `:${line}`}${path === '' ? '' : `: ${path}`}`
  }
  let table: unknown
  try {
    // TOML dates are objects; the readers expect strings.
    table = JSON.parse(JSON.stringify(Bun.TOML.parse(text)))
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^TOML Parse error: /, '') : 'unreadable'
    throw new UsageError(`${name}:${brokenLine(text, parses)}: invalid TOML: ${reason}`)
  }
  return readSetup(table, { where: formatPosition, readSecret })
}

function parses(text: string): boolean {
  try {
    Bun.TOML.parse(text)
    return true
  } catch {
    return false
  }
}

function readText(path: string, setupPath: string): string {
  const from = path === setupPath ? path : `${setupPath}: ${path}`
  try {
    return readTextFile(path, bytesMax)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'EFBIG') throw new UsageError(`${from}: larger than 1 MiB`)
    const reason = code === 'ENOENT' ? 'no such file' : `cannot be read (${unreadableReason(error)})`
    throw new UsageError(`${from}: ${reason}`)
  }
}

/**
 * Finds the line, from 1, of a path such as `organizations[1].keys[0].hash`, or of the nearest table around it, because
 * the parser reports no positions. Null for tables that are not written under `[[headers]]`. The text is read once: a
 * file of 10,000 organizations asks for 10,000 lines.
 */
function lineFinder(text: string): (path: string) => number | null {
  let lines: { tables: Map<string, number>; fields: Map<string, number> } | null = null
  return (path) => {
    lines ??= linesByPath(text)
    const field = lines.fields.get(path)
    if (field !== undefined) return field
    const names = path.split('.')
    for (let depth = names.length; depth > 0; depth--) {
      const line = lines.tables.get(names.slice(0, depth).join('.'))
      if (line !== undefined) return line
    }
    return null
  }
}

function linesByPath(text: string) {
  const tables = new Map<string, number>()
  const fields = new Map<string, number>()
  const tableCounts = new Map<string, number>() // tables so far, by path
  let currentTable: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[\s*([\w.-]+)\s*\]\]/.exec(line)?.[1]
    if (header !== undefined) {
      currentTable = tablePath(header.split('.'), tableCounts)
      addFirst(tables, currentTable.join('.'), index + 1)
      continue
    }
    const name = /^\s*"?([\w-]+)"?\s*=/.exec(line)?.[1]
    if (name !== undefined) addFirst(fields, [...currentTable, name].join('.'), index + 1)
  }
  return { tables, fields }
}

function addFirst(lines: Map<string, number>, path: string, line: number): void {
  if (!lines.has(path)) lines.set(path, line)
}

/** Adds to each name of a header the index of its newest table; the last name starts a new table. */
function tablePath(names: string[], tableCounts: Map<string, number>): string[] {
  const path: string[] = []
  for (const [depth, name] of names.entries()) {
    const key = [...path, name].join('.')
    const count = (tableCounts.get(key) ?? 0) + (depth === names.length - 1 ? 1 : 0)
    tableCounts.set(key, count)
    path.push(`${name}[${Math.max(0, count - 1)}]`)
  }
  return path
}

/** Lines of a value that is cut, such as a text of several lines, before the next line with which the file parses. */
const cutLinesMax = 100

/**
 * The first line that does not parse together with the lines before it. Halves the lines that are left, because a file
 * of 1 MiB would be parsed 100,000 times.
 */
function brokenLine(text: string, parses: (text: string) => boolean): number {
  const lines = text.split('\n')
  const isWhole = (count: number) => parses(`${lines.slice(0, count).join('\n')}\n`)
  let whole = 0 // lines that parse
  for (;;) {
    let broken = lines.length + 1
    while (broken - whole > 1) {
      const middle = Math.floor((whole + broken) / 2)
      if (isWhole(middle)) whole = middle
      else broken = middle
    }
    const next = nextWhole(isWhole, whole, lines.length)
    if (next === null) return Math.min(whole + 1, lines.length)
    whole = next
  }
}

/** A value that was cut in the middle parses again with its last line. */
function nextWhole(isWhole: (count: number) => boolean, whole: number, count: number): number | null {
  const last = Math.min(whole + 1 + cutLinesMax, count)
  for (let lines = whole + 2; lines <= last; lines++) if (isWhole(lines)) return lines
  return null
}
