/** `sightglass clock`: what the clock says compared with the time that has passed; `clock confirm` accepts it. */
import type { Json } from '../../../db/contract/store.ts'
import { startClockGuard, systemTime, type ClockGuard } from '../../system/clock-guard.ts'
import { clockView, confirmClock } from '../../operations/health/clock.ts'
import { cell, type Answer, type DataVerb } from './data-verb.ts'
import { textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

const params: DataVerb['params'] = ({ values }) => ({ dataDir: values['data-dir'] })

function text({ now, hold }: Answer): string {
  const message = (hold as Answer | null)?.['message']
  return message === undefined
    ? `The clock says ${cell(now)}. Retention goes by it.`
    : `The clock says ${cell(now)}. ${cell(message)}\nIf the time is right: sightglass clock confirm`
}

export const clockVerb: DataVerb = { writes: false, params, text }
export const clockConfirmVerb: DataVerb = { writes: true, makesFolder: false, params, text }

export async function showClock({ clockGuard }: VerbContext, asked: Params): Promise<Json> {
  return { ...clockView(clockGuard ?? guardOf(textOf(asked, 'dataDir'))) }
}

/** Without a server, what its next start goes by is written into the folder. */
export async function confirmTheClock({ clockGuard, store }: VerbContext, asked: Params): Promise<Json> {
  const view = await confirmClock(
    { clockGuard: clockGuard ?? guardOf(textOf(asked, 'dataDir')), store },
    'cli',
  )
  return { ...view }
}

function guardOf(dataDir: string): ClockGuard {
  const quiet = { info() {}, warn() {}, error() {} }
  return startClockGuard({ time: systemTime(), dataDir, log: quiet })
}
