/**
 * Help made from the commands themselves: `sightglass help`, the manual page, and Markdown for the operations guide.
 */
import { UsageError } from '../../errors.ts'
import { version } from '../../system/version.ts'
import { nearest } from '../../text/text.ts'
import { command, groups, usageOf, type KnownCommand, type Noun } from '../command.ts'
import { environmentTwin, type Option } from '../option.ts'
import { print } from '../print.ts'
import { commonOptions, serveOptions } from '../options.ts'

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
        const matches = commandsNamed(words.join(' '), commands)
        if (values.json) print(JSON.stringify({ version, verbs: matches.map(json) }))
        else if (words.length === 0) print(overview(commands))
        else if (matches.length === 1 && matches[0]) print(page(matches[0]))
        else print(`${list(matches)}\n\nsightglass help ${matches[0]?.name} shows the options.`)
        return 0
      },
    }),
  ],
}

/** The command of this name, all commands of a noun, or all without a name. */
function commandsNamed(name: string, commands: readonly KnownCommand[]): readonly KnownCommand[] {
  const exact = commands.find((knownCommand) => knownCommand.name === name)
  if (exact) return [exact]
  const matches = commands.filter((knownCommand) => name === '' || knownCommand.name.startsWith(`${name} `))
  if (matches.length > 0) return matches
  const near = nearest(
    name,
    commands.map((knownCommand) => knownCommand.name),
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
      commands.filter((knownCommand) => knownCommand.group === group),
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
    '  2  usage error',
  ].join('\n')
}

function list(shownCommands: readonly KnownCommand[], allCommands = shownCommands): string {
  const width = Math.max(...allCommands.map(({ name }) => name.length))
  return shownCommands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')
}

function page(knownCommand: KnownCommand): string {
  const { name, summary, about: paragraphs = [], examples } = knownCommand
  return [
    `sightglass ${name}: ${summary}`,
    '',
    ...usageLines(knownCommand),
    ...paragraphs.flatMap((paragraph) => ['', ...wrapped(paragraph, lineCharsMax)]),
    '',
    'Options',
    ...optionLines(knownCommand),
    '',
    'Examples',
    ...examples.map((line) => `  ${line}`),
  ].join('\n')
}

/** Alternatives are separated by ` | ` in a usage; each gets its own line. */
function usageLines(knownCommand: KnownCommand): string[] {
  return usageOf(knownCommand)
    .split(' | ')
    .flatMap((line) => {
      const [first = '', ...continuationLines] = wrapped(`sightglass ${line}`, lineCharsMax - 6)
      return [`  ${first}`, ...continuationLines.map((continuation) => `      ${continuation}`)]
    })
}

function optionLines({ options }: KnownCommand): string[] {
  const entries = Object.entries(options).map(([name, option]) => {
    const { value, help: helpText, default: byDefault, needed: isRequired } = option
    const note = isRequired ? ' (required)' : value !== null && byDefault ? ` (default ${byDefault})` : ''
    return { label: labelOf(name, option), text: `${helpText}${note}` }
  })
  const width = Math.min(40, Math.max(...entries.map(({ label }) => label.length)))
  return entries.flatMap(({ label, text }) => {
    const [first = '', ...continuationLines] = wrapped(text, lineCharsMax - width - 4)
    return [
      `  ${label.padEnd(width)}  ${first}`,
      ...continuationLines.map((line) => `  ${' '.repeat(width)}  ${line}`),
    ]
  })
}

/** The flag with its placeholder, or the variable of an option without a flag. */
function labelOf(name: string, { value, environmentOnly }: Option): string {
  if (environmentOnly) return environmentTwin(name)
  return value === null ? `--${name}` : `--${name} ${value}`
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

function json(knownCommand: KnownCommand) {
  const options = Object.entries(knownCommand.options).map(
    ([name, { value, help: helpText, ...otherFields }]) => ({
      name,
      flag: otherFields.environmentOnly ? null : `--${name}`,
      environment: environmentTwin(name),
      value,
      default: otherFields.default,
      needed: otherFields.needed ?? false,
      help: helpText,
    }),
  )
  return {
    verb: knownCommand.name,
    summary: knownCommand.summary,
    usage: `sightglass ${usageOf(knownCommand)}`,
    options,
  }
}

export const man: Noun = {
  group: 'Program',
  commands: [
    command({
      name: 'man',
      summary: 'print the manual page',
      examples: ['sightglass man > /usr/local/share/man/man1/sightglass.1'],
      options: {},
      run({ commands }) {
        print(manPage(commands))
        return 0
      },
    }),
  ],
}

function manPage(commands: readonly KnownCommand[]): string {
  return [
    `.TH SIGHTGLASS 1 "" "Sightglass ${version}"`,
    '.SH NAME',
    'sightglass \\- records which AI agents visit your site, what they prove and what they do',
    '.SH SYNOPSIS',
    '.B sightglass',
    '[\\fICOMMAND\\fR] [\\fIOPTION\\fR ...]',
    '.SH DESCRIPTION',
    roff(
      'Without a command the server starts. Options may stand anywhere on the line; the last repeat wins.',
    ),
    roff('Every option is also an environment variable and a key of the TOML file named by --config.'),
    roff('A flag beats the environment, and the environment beats the file.'),
    '.SH COMMANDS',
    ...commands.flatMap(roffCommand),
    '.SH OPTIONS OF SERVE',
    roff('The commands config, doctor and service install accept them too.'),
    ...roffOptions(serveOptions),
    '.SH OPTIONS OF EVERY COMMAND',
    ...roffOptions(commonOptions),
    '.SH EXIT STATUS',
    '0: done. 1: refused or failed. 2: usage error.',
    '.SH FILES',
    '.TP',
    '.B ./sightglass\\-data',
    'The data folder, unless \\-\\-data\\-dir names another.',
  ].join('\n')
}

/** Options of serve and common options have sections of their own. */
function roffCommand(knownCommand: KnownCommand): string[] {
  const ownOptions = Object.entries(knownCommand.options).filter(
    ([name, option]) => !(name in commonOptions) && (serveOptions as Record<string, Option>)[name] !== option,
  )
  const options =
    ownOptions.length === 0 ? [] : ['.RS', ...roffOptions(Object.fromEntries(ownOptions)), '.RE']
  return [
    '.TP',
    `.B ${roff(usageOf(knownCommand))}`,
    roff(`${knownCommand.summary}.`),
    ...(knownCommand.about ?? []).map(roff),
    ...options,
  ]
}

function roffOptions(options: { readonly [name: string]: Option }): string[] {
  return Object.entries(options).flatMap(([name, option]) => {
    const { value, help, default: byDefault } = option
    const flag = labelOf(name, option)
    const note = value !== null && byDefault ? ` (default ${byDefault})` : ''
    return ['.TP', `.B ${roff(flag)}`, roff(`${help}${note}`)]
  })
}

function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(['.])/, '\\&$1')
    .replace(
      /[^\x00-\x7f]/gu,
      (letter) => `\\[u${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`,
    )
}

/** The options of serve and all commands as Markdown. */
export function commandReference(commands: readonly KnownCommand[]): string {
  return `${optionTable(commands)}\n${commandTable(commands)}`
}

function optionTable(commands: readonly KnownCommand[]): string {
  const { options = {} } = commands.find(({ name }) => name === 'serve') ?? {}
  const rows = Object.entries(options).map(([name, option]) => {
    const { default: byDefault, help } = option
    const flag = labelOf(name, option)
    return `| \`${inCell(flag)}\` | ${inCell(help)} | ${byDefault ? `\`${inCell(byDefault)}\`` : ''} |`
  })
  return `## Options of serve

Each option is also an environment variable (\`--data-dir\` is \`SIGHTGLASS_DATA_DIR\`) and a key of the TOML file in
\`--config\`. A flag overrides the environment, which overrides the file. \`sightglass config\` shows each value and its
source. To read a secret from a file, append \`_FILE\` to its variable, or name a systemd credential after the option:
\`LoadCredential=sightglass.backup-passphrase:/etc/…\`. Line ends behind a
secret and a byte order mark before it are ignored.

| Option | Description | Default |
| ------ | ----------- | ------- |
${rows.join('\n')}
`
}

function commandTable(commands: readonly KnownCommand[]): string {
  const rows = commands.map(
    (knownCommand) => `| \`sightglass ${inCell(usageOf(knownCommand))}\` | ${inCell(knownCommand.summary)} |`,
  )
  return `## Commands

\`sightglass help COMMAND\` explains a command. With \`--json\` a command prints one JSON value. Exit codes: 0 success,
1 refused or failed, 2 invalid arguments.

| Command | Description |
| ------- | ----------- |
${rows.join('\n')}
`
}

/** A bar would end the cell. */
function inCell(text: string): string {
  return text.replaceAll('|', '/')
}
