/** `sightglass ready`: asks `/readyz` of the server that holds the data folder, for health checks of containers. */
import type { Invocation } from '../config.ts'
import { AppError } from '../../errors.ts'
import { print } from '../print.ts'
import { askRunningServer } from '../../runtime/running-server.ts'

const patienceMs = 5_000

/** Exit code 0 when the server is ready, 1 when it is not or when there is none. */
export async function ready({ values }: Invocation): Promise<number> {
  const dataDir = values['data-dir']
  const asked = await askRunningServer(dataDir)
  if (asked === null) throw new AppError('not_ready', `No server runs on ${dataDir}.`)
  if ('problem' in asked) throw new AppError('not_ready', `The server does not answer: ${asked.problem}`)
  const response = await readyz(asked.state.url)
  const answer = (await response.json()) as { message?: string }
  if (response.status === 200) {
    print(values.json ? JSON.stringify(answer) : 'ready')
    return 0
  }
  throw new AppError('not_ready', answer.message ?? `/readyz answered ${response.status}.`, {
    hint: 'look into the log of the server',
  })
}

/** The certificate is for other names than this address; the socket has already said that this is our server. */
function readyz(url: string): Promise<Response> {
  const signal = AbortSignal.timeout(patienceMs)
  const unix = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const tls = { rejectUnauthorized: false }
  return unix === undefined
    ? fetch(new URL('/readyz', url), { signal, tls })
    : fetch('http://localhost/readyz', { signal, unix })
}
