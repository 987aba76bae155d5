/** Parses the command line: the command, its arguments, and the text of every flag. Flags may stand anywhere. */
import { parseArgs } from 'node:util'
import { UsageError } from '../errors.ts'
import { nearest } from '../text/text.ts'
import type { KnownCommand } from './command.ts'
import type { Option } from './option.ts'

export interface Arguments {
  command: KnownCommand
  words: string[] // after the name of the command
  flags: Map<string, string>
  help: boolean
}

type Commands = readonly KnownCommand[]

/** Every option of every command by name. Commands that share a name agree on whether it takes a value. */
export function optionTable(commands: Commands): Map<string, Option> {
  const table = new Map<string, Option>()
  for (const { options } of commands)
    for (const [name, option] of Object.entries(options)) if (!table.has(name)) table.set(name, option)
  return table
}

export function readArguments(args: string[], commands: Commands): Arguments {
  const table = optionTable(commands)
  const { tokens } = parseArgs({
    args,
    options: flagTypes(table),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const words: string[] = []
  const flagTokens: FlagToken[] = []
  let version = false
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    if (versionNames.includes(token.name) && token.value === undefined) version = true
    else flagTokens.push(token)
  }
  const unknown = flagTokens.find(({ name }) => !table.has(name))
  if (unknown !== undefined) throw unknownFlag(unknown, args, commands, words)
  const helpFlag = flagTokens.findLast(({ name }) => name === 'help')
  const help = helpFlag !== undefined && (helpFlag.value ?? 'true') === 'true'
  if (version) words.length = 0 // --version wins over everything else
  const command = version ? commandNamed('version', commands)! : commandIn(words, help, commands)
  const { name, options } = command
  const flags = new Map<string, string>()
  for (const token of flagTokens) readFlag(token, options[token.name] ?? table.get(token.name)!, flags)
  if (words.length > (command.argumentsMax ?? (command.arguments === undefined ? 0 : 1)))
    throw new UsageError(`unexpected argument "${words.at(-1)}" for "sightglass ${name}"`, helpHint(name))
  for (const flag of flags.keys()) {
    if (flag in options) continue
    const near = nearest(flag, flagsOf(command))
    const hint = near === null ? helpHint(name) : `did you mean --${near}?`
    throw new UsageError(`--${flag} is not an option of "sightglass ${name}"`, hint)
  }
  return { command, words, flags, help }
}

function helpHint(name: string): string {
  return name === 'serve' || name === 'help' ? 'sightglass help' : `sightglass help ${name}`
}

function commandNamed(name: string, commands: Commands): KnownCommand | undefined {
  return commands.find((command) => command.name === name)
}

/** Names of the options that may stand on the command line. */
export function flagsOf({ options }: KnownCommand): string[] {
  return Object.entries(options).flatMap(([name, { environmentOnly }]) => (environmentOnly ? [] : [name]))
}

function flagTypes(table: Map<string, Option>) {
  const types: Record<string, { type: 'string' | 'boolean'; short?: string }> = {
    version: { type: 'boolean', short: 'V' },
  }
  for (const [name, { value }] of table) types[name] = { type: value === null ? 'boolean' : 'string' }
  types['help']!.short = 'h'
  return types
}

interface FlagToken {
  name: string
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

const versionNames = ['version', 'v']

function readFlag(token: FlagToken, option: Option, flags: Map<string, string>): void {
  const { name } = token
  const { value, environmentOnly, adds } = option
  if (environmentOnly) {
    throw new UsageError(
      `--${name} cannot be a flag, because every user of the machine can read the command line`,
    )
  }
  if (value === null) {
    flags.set(name, token.value ?? 'true')
    return
  }
  const text = token.value ?? ''
  if (text === '' && token.inlineValue !== true)
    throw new UsageError(`--${name} needs a value: --${name} ${value}`)
  // A public key may begin with a dash. An option is a dash and a letter, or begins with two dashes.
  if (!token.inlineValue && /^(--|-[a-z]$)/i.test(text)) {
    throw new UsageError(`--${name} needs a value; write --${name}=${text} if the value begins with a dash`)
  }
  const previousText = adds ? flags.get(name) : undefined
  flags.set(name, previousText === undefined ? text : `${previousText},${text}`)
}

/** Suggests options of the given command first, then any option. */
function unknownFlag(
  { rawName, name }: FlagToken,
  args: string[],
  commands: Commands,
  [first = 'serve', second]: string[],
): UsageError {
  // A long name behind one dash was parsed as a row of short names.
  const whole = rawName.startsWith('--')
    ? undefined
    : args.find((arg) => /^-[^-]{2}/.test(arg) && arg[1] === name)
  const typed = whole?.slice(1).split('=')[0] ?? name
  const command = commandNamed(`${first} ${second}`, commands) ?? commandNamed(first, commands)
  const near =
    (command === undefined ? null : nearest(typed, flagsOf(command))) ??
    nearest(typed, [...optionTable(commands).keys()])
  const shown = whole === undefined ? rawName : `-${typed}`
  const page = command === undefined ? 'sightglass help' : helpHint(command.name)
  return new UsageError(`unknown option ${shown}`, near === null ? page : `did you mean --${near}?`)
}

/** Removes the name of the command from the front of `words`. No words mean serve. */
function commandIn(words: string[], help: boolean, commands: Commands): KnownCommand {
  const helpCommand = commandNamed('help', commands)!
  if (words.length === 0) return help ? helpCommand : commandNamed('serve', commands)!
  const [first = '', second] = words
  const command = commandNamed(`${first} ${second}`, commands) ?? commandNamed(first, commands)
  if (command !== undefined) {
    words.splice(0, command.name.split(' ').length)
    return command
  }
  const ofNoun = commands.map(({ name }) => name).filter((name) => name.startsWith(`${first} `))
  if (ofNoun.length === 0) {
    const names = commands.map(({ name }) => name)
    const near = nearest(words.slice(0, 2).join(' '), names) ?? nearest(first, names)
    throw new UsageError(
      `unknown command "${first}"`,
      near ? `did you mean "sightglass ${near}"?` : 'sightglass help',
    )
  }
  if (help || second === 'help') {
    words.splice(0, words.length, first)
    return helpCommand
  }
  const problem = second === undefined ? `"${first}" is incomplete` : `unknown command "${first} ${second}"`
  throw new UsageError(problem, `commands: ${ofNoun.join(', ')}`)
}
