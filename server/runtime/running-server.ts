/** Asks the server that holds a data folder what it says of itself, over the control socket. */
import { existsSync } from 'node:fs'
import { controlPath, type ControlAnswer } from './control-socket.ts'
import type { ServerState } from '../operations/doctor/server-checks.ts'
import { version } from '../system/version.ts'

const patienceMs = 2_000

/** Null without a server: a socket that a crash left behind is none. `problem`: one is there and does not answer. */
export async function askRunningServer(
  dataDir: string,
): Promise<{ state: ServerState } | { problem: string } | null> {
  const unix = controlPath(dataDir)
  if (!existsSync(unix)) return null
  try {
    const body = JSON.stringify({ version, verb: 'server state', params: {} })
    const signal = AbortSignal.timeout(patienceMs)
    const answered = await fetch('http://localhost/', { unix, method: 'POST', body, signal })
    const answer = (await answered.json()) as ControlAnswer
    return 'error' in answer
      ? { problem: answer.error.message }
      : { state: answer.result as unknown as ServerState }
  } catch (error) {
    return error instanceof Error && error.name === 'TimeoutError' ? { problem: 'it is too busy' } : null
  }
}
