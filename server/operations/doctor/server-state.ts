/** Gathers what a running server says of itself to the doctor: its readiness, and where it connected to. */
import { readiness } from '../health/routes.ts'
import { outboundCalls } from '../../system/outbound.ts'
import type { Parts } from '../../services.ts'
import { outwardConnections } from './connections.ts'
import type { ServerState } from './server-checks.ts'

export async function serverState(parts: Parts, url: string): Promise<ServerState> {
  const ready = await readiness(parts)
  const clock = parts.clockGuard.hold()
  const outbound = { calls: outboundCalls(), open: outwardConnections() }
  return { ready, clock, outbound, options: parts.diagnosed, url }
}
