/** Renders the options of serve and all commands as Markdown, for the operations guide. */
import { usageOf, type KnownCommand } from './command.ts'
import { environmentTwin } from './option.ts'

export function commandReference(commands: readonly KnownCommand[]): string {
  return `${optionTable(commands)}\n${commandTable(commands)}`
}

function optionTable(commands: readonly KnownCommand[]): string {
  const { options = {} } = commands.find(({ name }) => name === 'serve') ?? {}
  const rows = Object.entries(options).map(([name, { value, default: byDefault, help, environmentOnly }]) => {
    const flag = environmentOnly ? environmentTwin(name) : `--${name}${value === null ? '' : ` ${value}`}`
    return `| \`${inCell(flag)}\` | ${inCell(help)} | ${byDefault ? `\`${inCell(byDefault)}\`` : ''} |`
  })
  return `## Options of serve

Each option is also an environment variable (\`--data-dir\` is \`SIGHTGLASS_DATA_DIR\`) and a key of the TOML file in
\`--config\`. A flag overrides the environment, which overrides the file. \`sightglass config\` shows each value and its
source. To read a secret from a file, such as a systemd credential, append \`_FILE\` to its variable.

| Option | Description | Default |
| ------ | ----------- | ------- |
${rows.join('\n')}
`
}

function commandTable(commands: readonly KnownCommand[]): string {
  const rows = commands.map((each) => `| \`sightglass ${inCell(usageOf(each))}\` | ${inCell(each.summary)} |`)
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
