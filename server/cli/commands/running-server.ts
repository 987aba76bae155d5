/** `sightglass ready`: asks /readyz of the server on the data folder; the health check of the container. */
import { AppError } from '../../errors.ts'
import { runningServer } from '../../runtime/store-access.ts'
import { command, type Noun } from '../command.ts'
import { printAnswer } from '../print.ts'

const timeoutMs = 5_000

export const ready: Noun = {
  group: 'Operations',
  commands: [
    command({
      name: 'ready',
      summary: 'check whether the running server is ready',
      about: [
        'Requests /readyz of the server that holds the data folder. Exit code 1 when it is not ready or not running.',
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
