/** Renders the options of serve and all commands as Markdown, for the operations guide. */
import { environmentTwin, optionFits, optionNames, optionOf, verbNames } from './options.ts'
import { verbTexts } from './commands/verb-texts.ts'

export function commandReference(): string {
  return `${everyOption()}\n${everyCommand()}`
}

function everyOption(): string {
  const rows = optionNames
    .filter((name) => optionFits(name, 'serve'))
    .map((name) => {
      const { value, default: byDefault, help, environmentOnly } = optionOf(name)
      const flag = environmentOnly ? environmentTwin(name) : `--${name}${value === null ? '' : ` ${value}`}`
      return `| \`${inCell(flag)}\` | ${inCell(help)} | ${byDefault ? `\`${inCell(byDefault)}\`` : ''} |`
    })
  return `## Options of serve

Each option is also an environment variable (\`--data-dir\` is \`SIGHTGLASS_DATA_DIR\`) and a key of the TOML file in
\`--config\`. A flag overrides the environment, which overrides the file. \`sightglass config\` shows each value and its
source. To read a secret from a file, such as a systemd credential, append \`_FILE\` to its variable.

| Option | Description | Default |
| ------ | ---------- | ---------- |
${rows.join('\n')}
`
}

function everyCommand(): string {
  const rows = verbNames.map((verb) => {
    const { summary, usage } = verbTexts[verb]
    return `| \`sightglass ${inCell(usage)}\` | ${inCell(summary)} |`
  })
  return `## Commands

\`sightglass help COMMAND\` explains a command. With \`--json\` a command prints one JSON value. Exit codes: 0 success,
1 refused or failed, 2 invalid arguments.

| Command | Description |
| ------- | ----------- |
${rows.join('\n')}
`
}

/** A bar would end the table cell. */
function inCell(text: string): string {
  return text.replaceAll('|', '/')
}
