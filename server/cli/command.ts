/** The shape of a command. Files in commands/ describe them; help, parsing and the rest derive from that. */
import type { Work } from '../runtime/work.ts'
import type { Option, Options, OptionValue } from './option.ts'
import type { commonOptions } from './options.ts'

/** Sections of the help, in its order. */
export const groups = [
  'Server',
  'Operations',
  'Data',
  'People',
  'Sites and keys',
  'Webhooks',
  'Program',
] as const

/** The commands of one noun, in the order help lists them. */
export interface Noun {
  group: (typeof groups)[number]
  commands: Command[]
}

export interface CommandText {
  name: string // one or two words: `serve`, `key create`
  summary: string // imperative, lower case, without a period
  /** Positional arguments, such as `KEY_ID` or `[FILE]`. */
  arguments?: string
  argumentsMax?: number // 1 when `arguments` is given
  /** Everything after the name; derived from arguments and options when left out. */
  usage?: string
  about?: string[] // paragraphs
  examples: string[]
}

export interface Command<O extends Options = Options> extends CommandText {
  options: O
  /** False for output with a form of its own. */
  json?: false
  /** Of commands that work on the data: what they need the folder for. */
  access?: 'read' | 'write' | 'create'
  /** Work that the server can do for this command, by step; '' is the command itself. */
  work?: { readonly [step: string]: Work }
  /** Prints its answer and returns the exit code. */
  run(invocation: Invocation<O>): number | Promise<number>
}

/** Lets TypeScript derive the values of a command from its options. */
export function command<const O extends Options>(definition: Command<O>): Command {
  return definition
}

/** A command of the table, with the options that every command has. */
export type KnownCommand = Command & { group: Noun['group'] }

/** Where a value came from, for `sightglass config`. */
export interface Setting {
  name: string
  option: Option
  text: string | null // null: not given, no default
  source: 'flag' | 'environment' | 'file' | 'default'
  from: string // --listen, SIGHTGLASS_LISTEN, path of the file, or default
}

export type Values<O extends Options> = { [N in keyof O]: OptionValue<O[N]> } & {
  [N in keyof typeof commonOptions]: OptionValue<(typeof commonOptions)[N]>
}

export interface Invocation<O extends Options = Options> {
  command: KnownCommand
  words: string[]
  help: boolean
  values: Values<O>
  settings: Setting[] // of this command, in the order of its options
  warnings: string[]
  commands: readonly KnownCommand[]
}

/** The value when the user gave the option, otherwise null: a change leaves the rest as it is. */
export function explicitValue<T>(
  { settings }: Pick<Invocation, 'settings'>,
  name: string,
  value: T,
): T | null {
  return settings.some((setting) => setting.name === name && setting.source !== 'default') ? value : null
}

/** Command, arguments and options on one line. */
export function usageOf({ name, usage, arguments: words, options }: Command): string {
  if (usage !== undefined) return usage === '' ? name : `${name} ${usage}`
  const listedOptions = Object.entries(options).filter(
    ([option, { environmentOnly }]) => !environmentOnly && !unlisted.includes(option),
  )
  const parts = listedOptions.map(([option, { value, needed: isRequired, adds }]) => {
    const flag = `--${option}${value === null ? '' : ` ${value}`}${adds ? ' …' : ''}`
    return isRequired ? flag : `[${flag}]`
  })
  return [name, ...(words === undefined ? [] : [words]), ...parts].join(' ')
}

/** Options of every command, and options of serve that some commands need when no server runs. */
const unlisted = [
  'data-dir',
  'key-file',
  'database',
  'config',
  'json',
  'help',
  'listen',
  'public-url',
  'base-path',
  'webhook-allow',
  'sink-dir',
]
