/** Resolves every option of one invocation: flag, environment, file or default, and remembers which. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readTextFile, unreadableReason } from '../../db/rules/regular-files.ts'
import { UsageError } from '../errors.ts'
import { optionTable, readArguments, type Arguments } from './arguments.ts'
import { environmentTwin, type Option, type Options } from './option.ts'
import { hasUnreadableBytes, trimSecret } from '../text/secret-text.ts'
import { nearest } from '../text/text.ts'
import type { Environment } from '../system/environment.ts'
import type { Invocation, KnownCommand, Setting, Values } from './command.ts'

/** Environment variables that hold secrets. */
export function secretVariables(commands: readonly KnownCommand[]): string[] {
  return [...optionTable(commands)].flatMap(([name, { secret }]) => (secret ? [environmentTwin(name)] : []))
}

/** Reads a whole invocation; every mistake is a `UsageError`. */
export function readInvocation(
  args: string[],
  environment: Environment,
  commands: readonly KnownCommand[],
): Invocation {
  const parsed = readArguments(args, commands)
  const { command, words, help } = parsed
  const table = optionTable(commands)
  // Help works even when the rest is wrong.
  const onlyHelp = help || command.name === 'help'
  const sources = { parsed, environment, file: onlyHelp ? null : configFile(parsed, environment, table) }
  const settings: Setting[] = []
  const values: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(command.options)) {
    const setting = onlyHelp && name !== 'json' ? ofDefault(name, option) : resolve(name, option, sources)
    values[name] = valueOf(setting)
    settings.push(setting)
    if (!onlyHelp && setting.text === null && option.needed) {
      throw new UsageError(
        `"sightglass ${command.name}" needs --${name} ${option.value}`,
        `sightglass help ${command.name}`,
      )
    }
  }
  const warnings = unknownVariables(environment, table)
  return { command, words, help, values: values as Values<Options>, settings, warnings, commands }
}

type ConfigFile = { path: string; keys: Map<string, string> }

interface Sources {
  parsed: Arguments
  environment: Environment
  file: ConfigFile | null
}

function configFile(parsed: Arguments, environment: Environment, table: Map<string, Option>) {
  const path = valueOf(resolve('config', table.get('config')!, { parsed, environment, file: null }))
  return typeof path === 'string' ? { path, keys: readConfigFile(path, table) } : null
}

function resolve(name: string, option: Option, sources: Sources): Setting {
  const setting = givenSetting(name, option, sources)
  return option.secret && setting.text !== null
    ? { ...setting, text: secretText(setting, setting.text) }
    : setting
}

/** The same secret from each source, because each source adds other line ends and marks. */
function secretText({ name, from, source }: Setting, rawText: string): string {
  const place = source === 'file' ? `${from}: ${name}` : from
  const text = trimSecret(rawText)
  if (text === '') throw new UsageError(`${place}: the value is empty`)
  if (hasUnreadableBytes(text)) throw new UsageError(`${place}: the value is not UTF-8; save it as UTF-8`)
  return text
}

function givenSetting(name: string, option: Option, { parsed, environment, file }: Sources): Setting {
  const flag = parsed.flags.get(name)
  if (flag !== undefined) return { name, option, text: flag, source: 'flag', from: `--${name}` }
  const variable = option.flagOnly ? null : fromEnvironment(name, option, environment)
  if (variable) return { name, option, ...variable, source: 'environment' }
  const key = file?.keys.get(name)
  if (file && key !== undefined) return { name, option, text: key, source: 'file', from: file.path }
  return ofDefault(name, option)
}

function ofDefault(name: string, option: Option): Setting {
  return { name, option, text: option.default, source: 'default', from: 'default' }
}

/**
 * An empty variable counts as absent, because compose files pass such ones along. systemd puts credentials into a
 * folder: `LoadCredential=sightglass.key-ring` is the option key-ring.
 */
function fromEnvironment(
  name: string,
  { secret, alias }: Option,
  environment: Environment,
): { text: string; from: string } | null {
  const twin = environmentTwin(name)
  const whole = environment[twin] ?? ''
  // `kubectl create secret --from-file` leaves the line end of the file. Secrets are trimmed, or refused, in `resolve`.
  const text = (secret ? whole : whole.replace(/[\r\n]+$/, '')) || null
  const path = (secret && environment[`${twin}_FILE`]) || null
  if (text !== null && path !== null) throw new UsageError(`${twin} and ${twin}_FILE are both set; unset one`)
  if (text !== null) return { text, from: twin }
  const aliasText = alias === undefined ? undefined : environment[alias.variable]
  if (alias !== undefined && path === null && aliasText?.startsWith(alias.prefix))
    return { text: aliasText, from: alias.variable }
  if (path !== null) return { text: readSecret(path, `${twin}_FILE`), from: `${twin}_FILE` }
  const credential = secret ? credentialPath(`sightglass.${name}`, environment) : null
  if (credential === null) return null
  return { text: readSecret(credential, credential), from: `credential sightglass.${name}` }
}

function credentialPath(name: string, { CREDENTIALS_DIRECTORY: folder }: Environment): string | null {
  const path = folder ? join(folder, name) : null
  return path !== null && existsSync(path) ? path : null
}

function readSecret(path: string, from: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw new UsageError(`${from}: ${path} cannot be read (${unreadableReason(error)})`)
  }
}

function valueOf({ name, option, text, source, from }: Setting): unknown {
  if (text === null) return null
  try {
    return option.read(text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    // A secret never shows in a message; `from` names its source, and the help says what is accepted.
    const reason = option.secret ? 'the value is invalid' : error.message
    const hint = option.secret ? option.help : (error.hint ?? undefined)
    throw new UsageError(`${source === 'file' ? `${from}: ${name}` : from}: ${reason}`, hint)
  }
}

/** Unknown variables with our prefix are warnings, not errors, because orchestrators inject such names. */
function unknownVariables(environment: Environment, table: Map<string, Option>): string[] {
  const knownNames = new Set(
    [...table.keys()].flatMap((name) => [environmentTwin(name), `${environmentTwin(name)}_FILE`]),
  )
  const injected = /^SIGHTGLASS_(?:SERVICE_(?:HOST|PORT)|PORT(?:_|$))/
  return Object.keys(environment)
    .filter((name) => name.startsWith('SIGHTGLASS_') && !knownNames.has(name) && !injected.test(name))
    .map((name) => `unknown environment variable ${name} has no effect`)
}

type Table = ReadonlyMap<string, Option>

/** Reads the TOML file of --config: its keys are names of options. */
function readConfigFile(path: string, table: Table): Map<string, string> {
  let text: string
  try {
    text = readTextFile(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const reason = code === 'ENOENT' ? 'no such file' : `cannot be read (${unreadableReason(error)})`
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
    keys.set(key, isTables(value) ? JSON.stringify(value) : valueText(key, value, path))
  }
  return keys
}

/** `[[watch]]`: the option reads its tables as JSON. */
function isTables(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => typeof item === 'object' && item !== null)
  )
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
