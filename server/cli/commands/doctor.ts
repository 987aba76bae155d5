/** `sightglass doctor`: looks for what is wrong or will be soon, alone or beside a running server. */
import { systemClock } from '../../clock.ts'
import { startClockGuard, systemTime } from '../../system/clock-guard.ts'
import { serveConfig, type Invocation } from '../config.ts'
import type { Check } from '../../operations/doctor/check.ts'
import { diagnose, unreachable } from '../../operations/doctor/diagnose.ts'
import { diagnosedOf } from '../../operations/doctor/options.ts'
import { checkHold, stateChecks } from '../../operations/doctor/server-checks.ts'
import { oneLine, print } from '../print.ts'
import { askRunningServer } from '../../runtime/running-server.ts'

/** Exit code 1 for failures, 0 for warnings. */
export async function doctor(invocation: Invocation): Promise<number> {
  const own = diagnosedOf(serveConfig(invocation))
  const { dataDir } = own
  const asked = await askRunningServer(dataDir)
  const state = asked !== null && 'state' in asked ? asked.state : null
  const live =
    asked === null
      ? [atNextStart(dataDir)]
      : 'problem' in asked
        ? [unreachable(asked.problem)]
        : stateChecks(asked.state)
  const config = state === null ? own : { ...state.options, dataDir }
  const diagnosis = await diagnose({ config, now: systemClock.now(), live, url: state?.url ?? null })
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
