/** Reads the command line: which verb, its words, and the text of every flag; flags may stand anywhere. */
import { parseArgs } from 'node:util'
import { nearest } from '../text/text.ts'
import { UsageError } from '../errors.ts'
import { optionFits, optionNames, optionOf, verbNames, type OptionName, type VerbName } from './options.ts'

export interface Arguments {
  verb: VerbName
  /** What follows the verb: the key of `key revoke`, the subject of `help`. */
  words: string[]
  flags: Map<OptionName, string>
  help: boolean
}

/** Verbs that take words of their own, with how many at most. */
const wordsMax: Partial<Record<VerbName, number>> = {
  'key revoke': 1,
  'key rotate': 1,
  'key change': 1,
  'site change': 1,
  import: 1,
  'webhook test': 1,
  'webhook show': 1,
  'webhook replay': 1,
  'webhook add': 1,
  'webhook pause': 1,
  'webhook resume': 1,
  'webhook rotate-secret': 1,
  'webhook remove': 1,
  setup: 1,
  'backup verify': 1,
  restore: 1,
  completions: 1,
  'log-level': 1,
  verify: 1,
  help: 2,
}

export function readArguments(args: string[]): Arguments {
  const { tokens } = parseArgs({
    args,
    options: flagTypes(),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const flags = new Map<OptionName, string>()
  const words: string[] = []
  let asksVersion = false
  const options: FlagToken[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    if (versionNames.includes(token.name) && token.value === undefined) asksVersion = true
    else options.push(token)
  }
  const strange = options.find(({ name }) => !isOption(name))
  if (strange !== undefined) throw unknownFlag(strange, args, verbOf(words))
  for (const token of options) readFlag(token, flags)
  const help = flags.get('help') === 'true'
  if (asksVersion) words.length = 0 // whatever else stands there
  const verb = asksVersion ? 'version' : takeVerb(words, help)
  if (words.length > (wordsMax[verb] ?? 0)) {
    throw new UsageError(`"${words.at(-1)}" is one word too many for "sightglass ${verb}"`, helpHint(verb))
  }
  for (const name of flags.keys()) {
    if (!optionFits(name, verb)) {
      const near = nearest(name, flagsOf(verb))
      const hint = near === null ? helpHint(verb) : `did you mean --${near}?`
      throw new UsageError(`--${name} is not an option of "sightglass ${verb}"`, hint)
    }
  }
  return { verb, words, flags, help }
}

export function helpHint(verb: VerbName): string {
  return verb === 'serve' || verb === 'help' ? 'sightglass help' : `sightglass help ${verb}`
}

function flagTypes() {
  const types: Record<string, { type: 'string' | 'boolean'; short?: string }> = {
    version: { type: 'boolean', short: 'V' },
  }
  for (const name of optionNames) types[name] = { type: optionOf(name).value === null ? 'boolean' : 'string' }
  types['help']!.short = 'h'
  return types
}

interface FlagToken {
  name: string
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

function readFlag(token: FlagToken, flags: Map<OptionName, string>): void {
  const { name } = token
  if (!isOption(name)) return
  const { value, environmentOnly, adds } = optionOf(name)
  if (environmentOnly) {
    throw new UsageError(`--${name} cannot be a flag: everybody could read it in the list of processes`)
  }
  if (value === null) {
    flags.set(name, token.value ?? 'true')
    return
  }
  const text = token.value ?? ''
  if (text === '' && token.inlineValue !== true)
    throw new UsageError(`--${name} needs a value: --${name} ${value}`)
  if (!token.inlineValue && /^-[^\d]/.test(text)) {
    throw new UsageError(`--${name} needs a value; write --${name}=${text} if it really begins with a dash`)
  }
  const before = adds ? flags.get(name) : undefined
  flags.set(name, before === undefined ? text : `${before},${text}`)
}

const versionNames = ['version', 'v']

function isOption(name: string): name is OptionName {
  return optionNames.some((known) => known === name)
}

function flagsOf(verb: VerbName): OptionName[] {
  return optionNames.filter((name) => optionFits(name, verb) && !optionOf(name).environmentOnly)
}

/** The verb that stands there, when one does: its own flags are suggested first. */
function verbOf([first = '', second]: string[]): VerbName | null {
  if (first === '') return 'serve'
  return verbNames.find((verb) => verb === `${first} ${second}`) ?? verbNames.find((v) => v === first) ?? null
}

function unknownFlag({ rawName, name }: FlagToken, args: string[], verb: VerbName | null): UsageError {
  // A long name behind one dash was read as a row of short ones.
  const whole = rawName.startsWith('--')
    ? undefined
    : args.find((arg) => /^-[^-]{2}/.test(arg) && arg[1] === name)
  const typed = whole?.slice(1).split('=')[0] ?? name
  const near = (verb === null ? null : nearest(typed, flagsOf(verb))) ?? nearest(typed, optionNames)
  const shown = whole === undefined ? rawName : `-${typed}`
  const hint = near !== null ? `did you mean --${near}?` : verb === null ? 'sightglass help' : helpHint(verb)
  return new UsageError(`${shown} is not an option`, hint)
}

/** Takes the words of the verb from the front of `words`; no word at all means serve. */
function takeVerb(words: string[], help: boolean): VerbName {
  if (words.length === 0) return help ? 'help' : 'serve'
  const [first = '', second] = words
  const long = verbNames.find((verb) => verb === `${first} ${second}`)
  const short = verbNames.find((verb) => verb === first)
  const verb = long ?? short
  if (verb !== undefined) {
    words.splice(0, verb.split(' ').length)
    return verb
  }
  const ofNoun = verbNames.filter((known) => known.startsWith(`${first} `))
  if (ofNoun.length === 0) {
    const near = nearest(words.slice(0, 2).join(' '), verbNames) ?? nearest(first, verbNames)
    throw new UsageError(
      `there is no command "${first}"`,
      near ? `did you mean "sightglass ${near}"?` : 'sightglass help',
    )
  }
  if (help || second === 'help') {
    words.splice(0, words.length, first)
    return 'help'
  }
  const problem =
    second === undefined ? `"${first}" alone says too little` : `there is no command "${first} ${second}"`
  throw new UsageError(problem, `it is one of: ${ofNoun.join(', ')}`)
}
