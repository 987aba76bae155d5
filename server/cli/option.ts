/** The shape of an option. Its flag, its environment variable and its key in the TOML file all come from it. */
import { flag, oneOf, plainText } from './option-values.ts'

export interface Option<T = unknown> {
  read: (text: string) => T
  /** Placeholder of the value in help; null for a switch without a value. */
  value: string | null
  default: string | null
  help: string
  /** Accepted values, for completion in shells; of a list, each of its items. */
  choices?: readonly string[]
  /** The command does not run without it. */
  needed?: true
  /** Never printed; may come from a file named by `…_FILE`. */
  secret?: true
  /** A secret on the command line would show in the process list. */
  environmentOnly?: true
  /** Repeats add up; otherwise the last one wins. */
  adds?: true
  /** Names the TOML file itself. */
  notInFile?: true
  /** Neither an environment variable nor a key of the TOML file. */
  flagOnly?: true
}

export type Options = { readonly [name: string]: Option }

export type OptionValue<O extends Option> = O extends { default: string } | { needed: true }
  ? ReturnType<O['read']>
  : ReturnType<O['read']> | null

/** An option without a value: given or not. */
export function toggle(help: string) {
  return { read: flag, value: null, default: 'false', help }
}

/** Any text; null when it is not given. */
export function text(value: string, help: string) {
  return { read: plainText, value, default: null, help }
}

/** One of a few words; null when it is not given. */
export function choice<const W extends string>(choices: readonly W[], help: string) {
  return { ...oneOf(...choices), value: choices.join('|'), default: null, help }
}

/** `--data-dir` is `SIGHTGLASS_DATA_DIR`. */
export function environmentTwin(name: string): string {
  return `SIGHTGLASS_${name.toUpperCase().replaceAll('-', '_')}`
}
