/** The doctor's findings out of what a running server says of itself. */
import type { Check as Ready } from '../health/routes.ts'
import type { ClockHold } from '../../system/clock-guard.ts'
import { holdSentence } from '../health/clock.ts'
import { ok, warning, type Check } from './check.ts'
import type { Diagnosed } from './options.ts'
import { checkOutbound, type Outbound } from './outbound.ts'

export interface ServerState {
  ready: Ready[]
  outbound: Outbound
  clock: ClockHold | null
  /** What it was started with. */
  options: Diagnosed
  /** Where it listens. */
  url: string
}

export function stateChecks({
  ready,
  outbound,
  clock,
}: Pick<ServerState, 'ready' | 'outbound' | 'clock'>): Check[] {
  const checks = ready.map(({ name, ok, detail }) => ({
    id: `server-${name}`,
    status: ok ? ('ok' as const) : ('failure' as const),
    detail: `Readiness of ${name}: ${detail}.`,
    hint: ok ? null : 'check its log',
  }))
  return [...checks, checkHold(clock), checkOutbound(outbound)]
}

/** Whether retention goes by the clock. */
export function checkHold(hold: ClockHold | null): Check {
  if (hold === null) return ok('clock-jump', 'The clock agrees with elapsed time.')
  return warning(
    'clock-jump',
    holdSentence(hold),
    'set the time or, if it is correct, run "sightglass clock confirm"',
  )
}
