/** The doctor's findings out of what a running server says of itself. */
import type { Check as Ready } from '../health/routes.ts'
import type { Check } from './check.ts'
import { checkOutbound, type Outbound } from './outbound.ts'

export interface ServerState {
  ready: Ready[]
  outbound: Outbound
}

export function stateChecks({ ready, outbound }: ServerState): Check[] {
  const checks = ready.map(({ name, ok, detail }) => ({
    id: `server-${name}`,
    status: ok ? ('ok' as const) : ('failure' as const),
    detail: `The running server says of its ${name}: ${detail}.`,
    hint: ok ? null : 'look into its log',
  }))
  return [...checks, checkOutbound(outbound)]
}
