/** `sightglass serve` starts the server; `sightglass config` shows the configuration it would start with. */
import { restartAs } from '../../system/environment.ts'
import { command, type Noun, type Setting } from '../command.ts'
import { workTable } from '../data-command.ts'
import { serveOptions } from '../options.ts'
import { commandReference } from './help.ts'
import { serveConfig } from '../serve-config.ts'
import { columns, printAnswer } from '../print.ts'

export const serve: Noun = {
  group: 'Server',
  commands: [
    command({
      name: 'serve',
      summary: 'start the server (the default command)',
      usage: '[OPTIONS]',
      about: [
        'Opens the data folder, or creates it, and runs until SIGTERM or Ctrl-C. Everything acknowledged is on disk.',
        'The first start prints a one-time link to create the first owner. With SIGHTGLASS_ADMIN_EMAIL and SIGHTGLASS_ADMIN_PASSWORD the server creates the owner itself.',
      ],
      examples: [
        'sightglass',
        'sightglass serve --listen 0.0.0.0:7400 --public-url https://traces.example.com --trusted-proxy 10.0.0.0/8',
        'sightglass serve --config /etc/sightglass.toml',
      ],
      options: serveOptions,
      json: false,
      async run({ values, warnings, commands }) {
        const config = serveConfig(values, warnings, () => commandReference(commands))
        restartAs({ isNode: config.shared !== null, memoryLimitBytes: config.memoryLimitBytes })
        // The dashboard and its API are a large part of the program; other commands start without them.
        const { serve: runServer } = await import('../../runtime/serve.ts')
        return runServer(config, workTable(commands))
      },
    }),
  ],
}

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
