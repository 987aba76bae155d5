/** `sightglass log-level`: changes the log level of a running server until it restarts. */
import { AppError, UsageError } from '../../errors.ts'
import { textOf } from '../../runtime/work.ts'
import type { Noun } from '../command.ts'
import { dataCommand } from '../data-command.ts'
import { serveOptions } from '../options.ts'
import { cell } from '../print.ts'

const readLevel = serveOptions['log-level'].read

export const logLevel: Noun = {
  group: 'Operations',
  commands: [
    dataCommand({
      name: 'log-level',
      summary: 'change the log level of the running server until it restarts',
      arguments: 'debug|info|warn|error',
      about: ['--log-level of serve sets the level at start.'],
      examples: ['sightglass log-level debug'],
      options: {},
      access: 'read',
      params({ words: [level] }) {
        if (level === undefined)
          throw new UsageError('name a level: debug, info, warn or error', 'sightglass help log-level')
        return { level: readLevel(level) }
      },
      async work({ server }, params) {
        const level = readLevel(textOf(params, 'level'))
        if (server === undefined)
          throw new AppError('conflict', 'No server runs on this data folder.', {
            hint: 'start it with --log-level',
          })
        return { before: server.log.setLevel(level), level }
      },
      print: ({ before, level }) => `Log level: ${cell(level)} (was ${cell(before)}).`,
    }),
  ],
}
