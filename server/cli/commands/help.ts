/** `sightglass help`: an overview, and a page for each command, made from the commands themselves. */
import { UsageError } from '../../errors.ts'
import { version } from '../../system/version.ts'
import { nearest } from '../../text/text.ts'
import { command, groups, usageOf, type KnownCommand, type Noun } from '../command.ts'
import { environmentTwin } from '../option.ts'
import { print } from '../print.ts'

const lineCharsMax = 110

export const help: Noun = {
  group: 'Program',
  commands: [
    command({
      name: 'help',
      summary: 'show the commands, or the help of one',
      arguments: '[COMMAND]',
      argumentsMax: 2,
      examples: ['sightglass help key create'],
      options: {},
      run({ words, commands, values }) {
        const found = commandsNamed(words.join(' '), commands)
        if (values.json) print(JSON.stringify({ version, verbs: found.map(json) }))
        else if (words.length === 0) print(overview(commands))
        else if (found.length === 1 && found[0]) print(page(found[0]))
        else print(`${list(found)}\n\nsightglass help ${found[0]?.name} shows the options.`)
        return 0
      },
    }),
  ],
}

/** The command of this name, all commands of a noun, or all without a name. */
function commandsNamed(name: string, commands: readonly KnownCommand[]): readonly KnownCommand[] {
  const exact = commands.find((each) => each.name === name)
  if (exact) return [exact]
  const found = commands.filter((each) => name === '' || each.name.startsWith(`${name} `))
  if (found.length > 0) return found
  const near = nearest(
    name,
    commands.map((each) => each.name),
  )
  throw new UsageError(
    `unknown command "${name}"`,
    near ? `did you mean "sightglass help ${near}"?` : 'sightglass help',
  )
}

function overview(commands: readonly KnownCommand[]): string {
  const sections = groups.flatMap((group) => [
    '',
    group,
    list(
      commands.filter((each) => each.group === group),
      commands,
    ),
  ])
  return [
    `Sightglass ${version} records which AI agents visit your site, what they prove and what they do.`,
    '',
    'Usage: sightglass [COMMAND] [ARGUMENTS] [OPTIONS]',
    '',
    '  sightglass                start the server; the first start prints a link to create the owner',
    '  sightglass help COMMAND   show the options of a command',
    ...sections,
    '',
    'Options',
    '  Options may stand anywhere on the line; the last repeat wins. Every option is also an environment variable',
    `  (--data-dir is ${environmentTwin('data-dir')}) and a key of the TOML file named by --config.`,
    '  A flag beats the environment, and the environment beats the file. --json prints one JSON value.',
    '',
    'Exit codes',
    '  0  done',
    '  1  refused or failed',
    '  2  wrong usage',
  ].join('\n')
}

function list(some: readonly KnownCommand[], all = some): string {
  const width = Math.max(...all.map(({ name }) => name.length))
  return some.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')
}

function page(each: KnownCommand): string {
  const { name, summary, about = [], examples } = each
  return [
    `sightglass ${name}: ${summary}`,
    '',
    ...usageLines(each),
    ...about.flatMap((paragraph) => ['', ...wrapped(paragraph, lineCharsMax)]),
    '',
    'Options',
    ...optionLines(each),
    '',
    'Examples',
    ...examples.map((line) => `  ${line}`),
  ].join('\n')
}

/** Alternatives, separated by ` | sightglass`-less bars between spaces, each on a line of its own. */
function usageLines(each: KnownCommand): string[] {
  return usageOf(each)
    .split(' | ')
    .flatMap((line) => {
      const [first = '', ...rest] = wrapped(`sightglass ${line}`, lineCharsMax - 6)
      return [`  ${first}`, ...rest.map((more) => `      ${more}`)]
    })
}

function optionLines({ options }: KnownCommand): string[] {
  const entries = Object.entries(options).map(
    ([name, { value, help: about, default: byDefault, ...more }]) => {
      const flag = value === null ? `--${name}` : `--${name} ${value}`
      const label = more.environmentOnly ? environmentTwin(name) : flag
      const note = more.needed ? ' (required)' : value !== null && byDefault ? ` (default ${byDefault})` : ''
      return { label, text: `${about}${note}` }
    },
  )
  const width = Math.min(40, Math.max(...entries.map(({ label }) => label.length)))
  return entries.flatMap(({ label, text }) => {
    const [first = '', ...rest] = wrapped(text, lineCharsMax - width - 4)
    return [`  ${label.padEnd(width)}  ${first}`, ...rest.map((line) => `  ${' '.repeat(width)}  ${line}`)]
  })
}

function wrapped(text: string, charsMax: number): string[] {
  const lines: string[] = []
  // A cron pattern and an option with its value stay in one piece.
  for (const word of text.split(/ (?!\*|[^\[\]]*\])/)) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length <= charsMax)
      lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines
}

function json(each: KnownCommand) {
  const options = Object.entries(each.options).map(([name, { value, help: about, ...more }]) => ({
    name,
    flag: more.environmentOnly ? null : `--${name}`,
    environment: environmentTwin(name),
    value,
    default: more.default,
    needed: more.needed ?? false,
    help: about,
  }))
  return { verb: each.name, summary: each.summary, usage: `sightglass ${usageOf(each)}`, options }
}
