/** `sightglass man`: the manual page in roff, made from the commands themselves. */
import { version } from '../../system/version.ts'
import { command, usageOf, type KnownCommand, type Noun } from '../command.ts'
import { environmentTwin, type Option } from '../option.ts'
import { commonOptions, serveOptions } from '../options.ts'
import { print } from '../print.ts'

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
    ...commands.flatMap(commandLines),
    '.SH OPTIONS OF SERVE',
    roff('The commands config, doctor and service install accept them too.'),
    ...optionLines(serveOptions),
    '.SH OPTIONS OF EVERY COMMAND',
    ...optionLines(commonOptions),
    '.SH EXIT STATUS',
    '0: done. 1: refused or failed. 2: wrong usage.',
    '.SH FILES',
    '.TP',
    '.B ./sightglass\\-data',
    'The data folder, unless \\-\\-data\\-dir names another.',
  ].join('\n')
}

/** Options of serve and common options have sections of their own. */
function commandLines(each: KnownCommand): string[] {
  const own = Object.entries(each.options).filter(
    ([name, option]) => !(name in commonOptions) && (serveOptions as Record<string, Option>)[name] !== option,
  )
  const options = own.length === 0 ? [] : ['.RS', ...optionLines(Object.fromEntries(own)), '.RE']
  return [
    '.TP',
    `.B ${roff(usageOf(each))}`,
    roff(`${each.summary}.`),
    ...(each.about ?? []).map(roff),
    ...options,
  ]
}

function optionLines(options: { readonly [name: string]: Option }): string[] {
  return Object.entries(options).flatMap(([name, { value, help, default: byDefault, environmentOnly }]) => {
    const flag = environmentOnly ? environmentTwin(name) : `--${name}${value === null ? '' : ` ${value}`}`
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
