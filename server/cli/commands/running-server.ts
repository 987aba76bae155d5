/** Commands about a running server: `sightglass ready`, `sightglass log-level` and `sightglass clock`. */
import { AppError, UsageError } from '../../errors.ts'
import { runningServer } from '../../runtime/store-access.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { cell, printAnswer, type Answer } from '../print.ts'
import { textOf } from '../../runtime/work.ts'
import { dataCommand } from '../data-command.ts'
import { serveOptions } from '../options.ts'
import { clockView, confirmClock } from '../../operations/health/clock.ts'
import { startClockGuard, systemTime, type ClockGuard } from '../../system/clock-guard.ts'

const timeoutMs = 5_000

export const ready: Noun = {
  group: 'Operations',
  commands: [
    command({
      name: 'ready',
      summary: 'check whether the running server is ready',
      about: [
        'Requests /readyz of the server that uses the data folder. Exit code 1 when it is not ready or not running.',
      ],
      examples: ['sightglass ready'],
      options: {},
      async run({ values }) {
        const dataDir = values['data-dir']
        const server = await runningServer(dataDir)
        if (server === null) throw new AppError('not_ready', `No server runs on ${dataDir}.`)
        if ('problem' in server)
          throw new AppError('not_ready', `The server does not answer: ${server.problem}.`)
        const response = await readyz(server.state.url)
        const answer = (await response.json()) as { message?: string }
        if (response.status !== 200)
          throw new AppError('not_ready', answer.message ?? `/readyz answered ${response.status}.`, {
            hint: 'see the log of the server',
          })
        printAnswer(values, answer, () => 'ready')
        return 0
      },
    }),
  ],
}

/** The certificate need not name this address: the control socket has already identified the server. */
function readyz(url: string): Promise<Response> {
  const signal = AbortSignal.timeout(timeoutMs)
  const unix = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const tls = { rejectUnauthorized: false }
  return unix === undefined
    ? fetch(new URL('/readyz', url), { signal, tls })
    : fetch('http://localhost/readyz', { signal, unix })
}

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
      print: ({ before: previousLevel, level }) => `Log level: ${cell(level)} (was ${cell(previousLevel)}).`,
    }),
  ],
}

const params = ({ values }: Pick<Invocation, 'values'>) => ({ dataDir: values['data-dir'] })

export const clock: Noun = {
  group: 'Operations',
  commands: [
    dataCommand({
      name: 'clock',
      summary: 'show whether the clock jumped and whether retention is paused because of it',
      about: [
        'Compares the clock with the time that has passed. After a jump of more than 10 minutes nothing expires by age until the clock is back, "clock confirm" accepts it, or it has run steadily for 24 hours.',
      ],
      examples: ['sightglass clock --json'],
      options: {},
      access: 'read',
      params,
      async work({ server }, workParams) {
        return { ...clockView(server?.clockGuard ?? guardOf(textOf(workParams, 'dataDir'))) }
      },
      print,
    }),
    dataCommand({
      name: 'clock confirm',
      summary: 'confirm that the clock is right after a jump',
      about: ['Retention, pruning and expiry resume at once. The audit trail records the confirmation.'],
      examples: ['date && sightglass clock confirm'],
      options: {},
      access: 'write',
      params,
      // Without a server the confirmation is stored in the folder for its next start.
      async work({ server, store }, workParams) {
        const clockGuard = server?.clockGuard ?? guardOf(textOf(workParams, 'dataDir'))
        return { ...(await confirmClock({ clockGuard, store }, 'cli')) }
      },
      print,
    }),
  ],
}

function print({ now, hold }: Answer): string {
  const message = (hold as Answer | null)?.['message']
  return message === undefined
    ? `Clock: ${cell(now)}. Retention follows it.`
    : `Clock: ${cell(now)}. ${cell(message)}\nIf the time is right: sightglass clock confirm`
}

function guardOf(dataDir: string): ClockGuard {
  const quiet = { info() {}, warn() {}, error() {} }
  return startClockGuard({ time: systemTime(), dataDir, log: quiet })
}
