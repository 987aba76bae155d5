/** `sightglass doctor`: looks for what is wrong or will be soon, alone or beside a running server. */
import { existsSync } from 'node:fs'
import { systemClock } from '../clock.ts'
import { startClockGuard, systemTime } from '../clock-guard.ts'
import { serveConfig, type Invocation } from '../config.ts'
import { controlPath, type ControlAnswer } from '../control.ts'
import type { Check } from '../doctor/check.ts'
import { diagnose, unreachable } from '../doctor/diagnose.ts'
import { checkHold, stateChecks, type ServerState } from '../doctor/server-checks.ts'
import { version } from '../version.ts'
import { oneLine, print } from './print.ts'

/** Exit code 1 for failures, 0 for warnings. */
export async function doctor(invocation: Invocation): Promise<number> {
  const config = serveConfig(invocation)
  const asked = await askServer(config.dataDir)
  const live = asked.length > 0 ? asked : [atNextStart(config.dataDir)]
  const diagnosis = await diagnose({ config, now: systemClock.now(), live })
  print(invocation.values.json ? JSON.stringify(diagnosis) : diagnosis.checks.map(line).join('\n'))
  return diagnosis.ok ? 0 : 1
}

const marks = { ok: 'ok      ', warning: 'WARNING ', failure: 'FAILURE ' } as const

function line({ id, status, detail, hint }: Check): string {
  return oneLine(`${marks[status]} ${id}: ${detail}${hint === null ? '' : ` -> ${hint}`}`)
}

/** Without a server: what its next start would find. Nothing is written. */
function atNextStart(dataDir: string): Check {
  const quiet = { info() {}, warn() {}, error() {} }
  return checkHold(startClockGuard({ time: systemTime(), dataDir, log: quiet }).hold())
}

const patienceMs = 2_000

/** Over the control socket; one that a crash left behind is no server. */
async function askServer(dataDir: string): Promise<Check[]> {
  const unix = controlPath(dataDir)
  if (!existsSync(unix)) return []
  try {
    const body = JSON.stringify({ version, verb: 'server state', params: {} })
    const signal = AbortSignal.timeout(patienceMs)
    const answered = await fetch('http://localhost/', { unix, method: 'POST', body, signal })
    const answer = (await answered.json()) as ControlAnswer
    if ('error' in answer) return [unreachable(answer.error.message)]
    return stateChecks(answer.result as unknown as ServerState)
  } catch (error) {
    return error instanceof Error && error.name === 'TimeoutError' ? [unreachable('it is too busy')] : []
  }
}
