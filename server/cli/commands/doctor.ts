/** `sightglass doctor`: checks the folder, the server and their surroundings for problems. */
import { openDatabaseAdmin } from '../../../db/open.ts'
import { systemClock } from '../../clock.ts'
import type { Check } from '../../operations/doctor/check.ts'
import { diagnose, unreachable } from '../../operations/doctor/diagnose.ts'
import { diagnosedOf } from '../../operations/doctor/options.ts'
import { checkHold, stateChecks } from '../../operations/doctor/server-checks.ts'
import { runningServer } from '../../runtime/store-access.ts'
import { startClockGuard, systemTime } from '../../system/clock-guard.ts'
import { command, type Noun } from '../command.ts'
import { locationOf, serveOptions } from '../options.ts'
import { oneLine, printAnswer } from '../print.ts'
import { serveConfig } from '../serve-config.ts'

export const doctor: Noun = {
  group: 'Operations',
  commands: [
    command({
      name: 'doctor',
      summary: 'check for problems that exist or are about to',
      usage: '[OPTIONS OF serve]',
      about: [
        'Checks folder, disk, database, jobs, keys, TLS, proxy settings and backups, and changes nothing. It checks the options of the running server, or its own when none runs. Exit code 1 when a check fails; warnings leave it 0.',
      ],
      examples: ['sightglass doctor', 'sightglass doctor --json'],
      options: serveOptions,
      async run({ values }) {
        const ownConfig = diagnosedOf(serveConfig(values))
        const { dataDir } = ownConfig
        const server = await runningServer(dataDir)
        const state = server !== null && 'state' in server ? server.state : null
        const live =
          state !== null ? stateChecks(state) : [await withoutState(server, dataDir, locationOf(values))]
        const config = state === null ? ownConfig : { ...state.options, dataDir }
        const diagnosis = await diagnose({
          config,
          location: locationOf(values),
          now: systemClock.now(),
          live,
          url: state?.url ?? null,
        })
        printAnswer(values, diagnosis, ({ checks }) => checks.map(line).join('\n'))
        return diagnosis.ok ? 0 : 1
      },
    }),
  ],
}

const marks = { ok: 'ok      ', warning: 'WARNING ', failure: 'FAILURE ' } as const

function line({ id, status, detail, hint }: Check): string {
  return oneLine(`${marks[status]} ${id}: ${detail}${hint === null ? '' : ` -> ${hint}`}`)
}

/** Without a server: what its next start would find. Nothing is written. */
async function withoutState(
  server: { problem: string } | object | null,
  dataDir: string,
  location: string,
): Promise<Check> {
  if (server !== null && 'problem' in server) return unreachable(String(server.problem))
  const quiet = { info() {}, warn() {}, error() {} }
  const lastWriteMs = await openDatabaseAdmin(location).lastWriteMs()
  return checkHold(startClockGuard({ time: systemTime(), dataDir, lastWriteMs, log: quiet }).hold())
}
