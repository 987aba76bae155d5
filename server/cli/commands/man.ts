/** `sightglass man`: the manual page in roff, made from the tables of verbs and options. */
import { environmentTwin, optionFits, optionNames, optionOf } from '../options.ts'
import { verbNames } from '../verb-names.ts'
import { version } from '../../system/version.ts'
import { print } from '../print.ts'
import { verbTexts } from './verb-texts.ts'

export function man(): Promise<number> {
  print(manPage())
  return Promise.resolve(0)
}

export function manPage(): string {
  return [
    `.TH SIGHTGLASS 1 "" "Sightglass ${version}"`,
    '.SH NAME',
    'sightglass \\- see which AI agents visit your site, what they prove, and what they do',
    '.SH SYNOPSIS',
    '.B sightglass',
    '[\\fICOMMAND\\fR] [\\fIOPTION\\fR ...]',
    '.SH DESCRIPTION',
    roff(
      'Without a command the appliance starts. Options may stand anywhere on the line; the last repeat wins. Each can',
    ),
    roff(
      'also be an environment variable or a key in the TOML file named by --config: a flag beats the environment, the',
    ),
    roff('environment beats the file.'),
    '.SH COMMANDS',
    ...verbNames.flatMap((verb) => {
      const { summary, usage, about } = verbTexts[verb]
      return ['.TP', `.B ${roff(usage)}`, roff(`${summary}.`), ...about.map(roff)]
    }),
    '.SH OPTIONS',
    ...optionNames.flatMap((name) => {
      const { value, help, default: byDefault, environmentOnly } = optionOf(name)
      const flag = environmentOnly ? environmentTwin(name) : `--${name}${value === null ? '' : ` ${value}`}`
      const shown = value !== null && byDefault ? ` (default ${byDefault})` : ''
      const verbs = verbNames.filter((verb) => optionFits(name, verb))
      const where = verbs.length === verbNames.length ? 'every command' : verbs.join(', ')
      return ['.TP', `.B ${roff(flag)}`, roff(`${help}${shown}. For: ${where}.`)]
    }),
    '.SH EXIT STATUS',
    '0: done. 1: refused or failed. 2: the command was not understood.',
    '.SH FILES',
    '.TP',
    '.B ./sightglass\\-data',
    'The one folder that holds everything, unless \\-\\-data\\-dir names another.',
  ].join('\n')
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
