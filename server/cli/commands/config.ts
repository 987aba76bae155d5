/** `sightglass config`: the effective configuration, with the source of each value. */
import { command, type Noun, type Setting } from '../command.ts'
import { serveOptions } from '../options.ts'
import { columns, printAnswer } from '../print.ts'
import { serveConfig } from '../serve-config.ts'

export const config: Noun = {
  group: 'Server',
  commands: [
    command({
      name: 'config',
      summary: 'show the effective configuration and the source of each value',
      usage: '[OPTIONS OF serve]',
      about: ['Accepts the options of serve and rejects what serve would reject. Secrets are hidden.'],
      examples: ['sightglass config --config /etc/sightglass.toml'],
      options: serveOptions,
      run({ values, settings, warnings }) {
        serveConfig(values)
        const shown = settings.filter(({ name }) => !['help', 'json'].includes(name))
        const options = shown.map((setting) => ({ ...setting, value: shownValue(setting) }))
        const answer = {
          options: options.map(({ name, value, source, from }) => ({ name, value, source, from })),
          warnings,
        }
        printAnswer(values, answer, () =>
          [
            columns(
              ['OPTION', 'VALUE', 'SOURCE'],
              options.map(({ name, value, source, from }) => [
                name,
                value ?? '',
                source === 'default' ? 'default' : `${source} ${from}`,
              ]),
            ),
            ...warnings.map((line) => `Warning: ${line}.`),
          ].join('\n'),
        )
        return 0
      },
    }),
  ],
}

function shownValue({ text, option }: Setting): string | null {
  return text !== null && option.secret ? '(hidden)' : text
}
