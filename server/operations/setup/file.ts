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
  const where = (path: string) => {
    const line = lineOf(text, path)
    return `${name}${line === null ? '' : `:${line}`}${path === '' ? '' : `: ${path}`}`
  }
  let table: unknown
  try {
    // TOML dates are objects; the readers expect strings.
    table = JSON.parse(JSON.stringify(Bun.TOML.parse(text)))
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^TOML Parse error: /, '') : 'unreadable'
    throw new UsageError(`${name}:${brokenLine(text, parses)}: invalid TOML: ${why}`)
  }
  return readSetup(table, { where, readSecret })
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
 * The line, from 1, of a path such as `organizations[1].keys[0].hash`, or of the nearest table around it, because the
 * parser reports no positions. Null for tables that are not written under `[[headers]]`.
 */
function lineOf(text: string, path: string): number | null {
  const target = path.split('.')
  const seen = new Map<string, number>() // tables so far, by path
  let here: string[] = []
  let nearest: number | null = null
  let depth = 0
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[\s*([\w.-]+)\s*\]\]/.exec(line)?.[1]
    if (header !== undefined) {
      here = tablePath(header.split('.'), seen)
      if (isPrefix(here, target) && here.length > depth) {
        nearest = index + 1
        depth = here.length
      }
      continue
    }
    const name = /^\s*"?([\w-]+)"?\s*=/.exec(line)?.[1]
    if (name !== undefined && [...here, name].join('.') === path) return index + 1
  }
  return nearest
}

/** Adds to each name of a header the index of its newest table; the last name starts a new table. */
function tablePath(names: string[], seen: Map<string, number>): string[] {
  const path: string[] = []
  for (const [depth, name] of names.entries()) {
    const key = [...path, name].join('.')
    const count = (seen.get(key) ?? 0) + (depth === names.length - 1 ? 1 : 0)
    seen.set(key, count)
    path.push(`${name}[${Math.max(0, count - 1)}]`)
  }
  return path
}

function isPrefix(part: string[], whole: string[]): boolean {
  return part.length <= whole.length && part.every((name, index) => name === whole[index])
}

/** The first line that does not parse together with the lines before it. */
function brokenLine(text: string, parses: (text: string) => boolean): number {
  const lines = text.split('\n')
  let last = 0 // lines that parse
  for (let count = 1; count <= lines.length; count++)
    if (parses(`${lines.slice(0, count).join('\n')}\n`)) last = count
  return Math.min(last + 1, lines.length)
}
