/** Reads the optional TOML file: keys are the names of options, values their text, numbers, switches or lists. */
import { readFileSync } from 'node:fs'
import { nearest } from '../text/text.ts'
import { UsageError } from '../errors.ts'
import { optionNames, optionOf, type OptionName } from './options.ts'

export function readConfigFile(path: string): Map<OptionName, string> {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const reason = code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${String(code)})`
    throw new UsageError(`--config ${path}: ${reason}`)
  }
  return readConfigText(text, path)
}

export function readConfigText(text: string, path: string): Map<OptionName, string> {
  let table: object
  try {
    table = Bun.TOML.parse(text)
  } catch (error) {
    throw new UsageError(`${path}: not valid TOML: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
  const keys = new Map<OptionName, string>()
  for (const [key, value] of Object.entries(table))
    keys.set(optionNamed(key, path), valueText(key, value, path))
  return keys
}

function optionNamed(key: string, path: string): OptionName {
  const name = optionNames.find((known) => known === key)
  if (name === undefined) {
    const near = nearest(key, optionNames)
    throw new UsageError(
      `${path}: "${key}" is not an option`,
      near ? `did you mean ${near}?` : 'sightglass help',
    )
  }
  const { environmentOnly, notInFile, flagOnly } = optionOf(name)
  if (environmentOnly)
    throw new UsageError(`${path}: ${key} is read from the environment only, never from this file`)
  if (notInFile || flagOnly) throw new UsageError(`${path}: ${key} makes no sense inside the file`)
  return name
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
