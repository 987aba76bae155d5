/** `sightglass help`: the overview, and a page for each verb, both made from the tables of verbs and options. */
import type { Json } from '../../../db/contract/store.ts'
import { nearest } from '../../text/text.ts'
import { UsageError } from '../../errors.ts'
import { environmentTwin, optionFits, optionNames, optionOf, verbNames, type VerbName } from '../options.ts'
import { version } from '../../system/version.ts'
import { verbTexts } from './verb-texts.ts'

/** `words` is what was asked about: nothing, a noun such as `key`, or a verb such as `key create`. */
export function helpText(words: string[]): string {
  const asked = words.join(' ')
  if (asked === '') return overview()
  const verb = verbNames.find((known) => known === asked)
  if (verb) return verbPage(verb)
  const ofNoun = verbNames.filter((known) => known.startsWith(`${asked} `))
  if (ofNoun.length > 0) return `${verbList(ofNoun)}\n\nsightglass help ${ofNoun[0]} says more.`
  const near = nearest(asked, verbNames)
  throw new UsageError(
    `there is no command "${asked}"`,
    near ? `did you mean "sightglass help ${near}"?` : 'sightglass help',
  )
}

export function helpJson(words: string[]): Json {
  const asked = words.join(' ')
  const wanted = verbNames.filter((verb) => asked === '' || verb === asked || verb.startsWith(`${asked} `))
  if (wanted.length === 0) helpText(words)
  return { version, verbs: wanted.map(verbJson) }
}

function overview(): string {
  return [
    `Sightglass ${version}: see which AI agents visit your site, what they prove, and what they do.`,
    '',
    '  sightglass                start it; the first start prints a link to create the owner',
    '  sightglass COMMAND --help explain a command',
    '',
    'Commands',
    verbList(verbNames),
    '',
    'Everywhere',
    '  Options may stand anywhere on the line; the last repeat wins. Each one can also be an environment variable',
    `  (--data-dir is ${environmentTwin('data-dir')}) or a key in the TOML file named by --config. A flag beats the`,
    '  environment, the environment beats the file. --json makes every answer one JSON value.',
    '  Exit code 0: done. 1: refused or failed. 2: the command was not understood.',
  ].join('\n')
}

function verbList(verbs: readonly VerbName[]): string {
  const width = Math.max(...verbNames.map((verb) => verb.length))
  return verbs.map((verb) => `  ${verb.padEnd(width)}  ${verbTexts[verb].summary}`).join('\n')
}

function verbPage(verb: VerbName): string {
  const { summary, usage, about, examples } = verbTexts[verb]
  const parts = [`sightglass ${verb}: ${summary}`, '', `  sightglass ${usage}`]
  if (about.length > 0) parts.push('', ...about)
  parts.push('', 'Options', ...optionLines(verb))
  if (examples.length > 0) parts.push('', 'Examples', ...examples.map((line) => `  ${line}`))
  return parts.join('\n')
}

function optionLines(verb: VerbName): string[] {
  const rows = optionNames
    .filter((name) => optionFits(name, verb))
    .map((name) => {
      const { value, help, default: byDefault, environmentOnly, neededBy } = optionOf(name)
      const label = environmentOnly
        ? environmentTwin(name)
        : value === null
          ? `--${name}`
          : `--${name} ${value}`
      const shown = value !== null && byDefault ? ` (default ${byDefault})` : ''
      return { label, text: `${help}${neededBy?.includes(verb) ? ' (needed)' : shown}` }
    })
  const width = Math.max(...rows.map(({ label }) => label.length))
  return rows.flatMap(({ label, text }) => {
    const [first = '', ...rest] = wrapped(text, lineCharsMax - width - 4)
    return [`  ${label.padEnd(width)}  ${first}`, ...rest.map((line) => `  ${' '.repeat(width)}  ${line}`)]
  })
}

const lineCharsMax = 120

function wrapped(text: string, charsMax: number): string[] {
  const lines: string[] = []
  // A cron pattern stays in one piece.
  for (const word of text.split(/ (?!\*)/)) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= charsMax)
      lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines
}

function verbJson(verb: VerbName): Json {
  const { summary, usage } = verbTexts[verb]
  const options = optionNames
    .filter((name) => optionFits(name, verb))
    .map((name) => {
      const { value, help, default: byDefault, environmentOnly, neededBy } = optionOf(name)
      return {
        name,
        flag: environmentOnly ? null : `--${name}`,
        environment: environmentTwin(name),
        value,
        default: byDefault,
        needed: neededBy?.includes(verb) ?? false,
        help,
      }
    })
  return { verb, summary, usage: `sightglass ${usage}`, options }
}
