/** Reads the TOML file of --config: its keys are names of options. */
import { readFileSync } from 'node:fs'
import { UsageError } from '../errors.ts'
import { nearest } from '../text/text.ts'
import type { Option } from './option.ts'

type Table = ReadonlyMap<string, Option>

export function readConfigFile(path: string, table: Table): Map<string, string> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const reason = code === 'ENOENT' ? 'no such file' : `cannot be read (${String(code)})`
    throw new UsageError(`--config ${path}: ${reason}`)
  }
  return readConfigText(text, path, table)
}

export function readConfigText(text: string, path: string, table: Table): Map<string, string> {
  let parsed: object
  try {
    parsed = Bun.TOML.parse(text)
  } catch (error) {
    throw new UsageError(`${path}: invalid TOML: ${error instanceof Error ? error.message : String(error)}`)
  }
  const keys = new Map<string, string>()
  for (const [key, value] of Object.entries(parsed)) {
    requireOption(key, path, table)
    keys.set(key, valueText(key, value, path))
  }
  return keys
}

function requireOption(key: string, path: string, table: Table): void {
  const option = table.get(key)
  if (option === undefined) {
    const near = nearest(key, [...table.keys()])
    throw new UsageError(
      `${path}: unknown option "${key}"`,
      near ? `did you mean ${near}?` : 'sightglass help',
    )
  }
  if (option.environmentOnly)
    throw new UsageError(`${path}: ${key} is read from the environment only, not from this file`)
  if (option.notInFile || option.flagOnly)
    throw new UsageError(`${path}: ${key} is not allowed in this file; use the flag --${key}`)
}

function valueText(key: string, value: unknown, path: string): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
    return String(value)
  if (Array.isArray(value) && value.every((part) => typeof part === 'string' && !part.includes(','))) {
    return value.join(',')
  }
  throw new UsageError(`${path}: ${key} must be a string, a number, a boolean or a list of strings`)
}
