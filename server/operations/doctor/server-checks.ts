/** Reads the state of a running server for the doctor, and turns it into checks. */
import { holdSentence } from '../health/clock.ts'
import { ok, warning, type Check } from './check.ts'
import { checkOutbound, outwardConnections, type Outbound } from './outbound.ts'
import { readiness, type Check as Ready } from '../health/routes.ts'
import { outboundCalls } from '../../system/outbound.ts'
import type { ClockGuard, ClockHold } from '../../system/clock-guard.ts'
import type { Diagnosed } from './options.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { DiskWatch } from '../health/disk.ts'
import type { MemoryWatch } from '../health/memory.ts'
import type { Jobs } from '../../system/scheduler.ts'

export interface ServerState {
  ready: Ready[]
  outbound: Outbound
  clock: ClockHold | null
  options: Diagnosed // of its start
  url: string // where it listens
}

export function stateChecks({
  ready,
  outbound,
  clock,
}: Pick<ServerState, 'ready' | 'outbound' | 'clock'>): Check[] {
  const checks = ready.map(({ name, ok, detail }) => ({
    id: `server-${name}`,
    status: ok ? ('ok' as const) : ('failure' as const),
    detail: `Running server, ${name}: ${detail}.`,
    hint: ok ? null : 'see its log',
  }))
  return [...checks, checkHold(clock), checkOutbound(outbound)]
}

/** Whether retention waits because the clock jumped. */
export function checkHold(hold: ClockHold | null): Check {
  if (hold === null) return ok('clock-jump', 'No unconfirmed clock jump.')
  return warning(
    'clock-jump',
    holdSentence(hold),
    'set the clock; if it is right, run "sightglass clock confirm"',
  )
}

interface ServerStateServices {
  store: Store
  clockGuard: ClockGuard
  version: string
  disk: DiskWatch
  memory: MemoryWatch
  jobs: Pick<Jobs, 'late' | 'report'>
  diagnosed: Diagnosed
  state: { stopping: boolean; storeFailed: string | null }
}

export async function serverState(services: ServerStateServices, url: string): Promise<ServerState> {
  const ready = await readiness(services)
  const clock = services.clockGuard.hold()
  const outbound = { calls: outboundCalls(), open: outwardConnections() }
  return { ready, clock, outbound, options: services.diagnosed, url }
}
