/** Gathers what a running server says of itself to the doctor: its readiness, and where it connected to. */
import { readiness } from '../health/routes.ts'
import { outboundCalls } from '../../system/outbound.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'
import type { Diagnosed } from './options.ts'
import type { DiskWatch } from '../health/disk.ts'
import type { MemoryWatch } from '../health/memory.ts'
import type { Jobs } from '../../system/scheduler.ts'
import { outwardConnections } from './connections.ts'
import type { ServerState } from './server-checks.ts'

export interface ServerStateServices {
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
