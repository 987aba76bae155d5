/** `sightglass serve`: starts the server. */
import { command, type Noun } from '../command.ts'
import { workTable } from '../data-command.ts'
import { serveOptions } from '../options.ts'
import { commandReference } from '../command-reference.ts'
import { serveConfig } from '../serve-config.ts'

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
        // The dashboard and its API are a large part of the program; other commands start without them.
        const { serve: runServer } = await import('../../runtime/serve.ts')
        return runServer(config, workTable(commands))
      },
    }),
  ],
}
