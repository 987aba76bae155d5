/** Says where a running server connected to, and warns of a connection that nothing of ours explains. */
import type { OutboundCall } from '../../system/outbound.ts'
import { ok, warning, type Check } from './check.ts'
import type { Connection } from './connections.ts'

export interface Outbound {
  calls: OutboundCall[] // since the start
  open: Connection[] | null // now; null where the kernel does not tell
}

const shownMax = 5

/** Names are looked up at the servers the machine is set to. */
const dnsPort = 53

export function checkOutbound({ calls, open }: Outbound): Check {
  const unexplained = (open ?? []).filter(
    (each) => each.port !== dnsPort && !calls.some((call) => explains(call, each)),
  )
  const [first] = unexplained
  if (first !== undefined) {
    const more = unexplained.length === 1 ? '' : ` and ${unexplained.length - 1} more`
    return warning(
      'outbound',
      `Connected to ${first.address} port ${first.port}${more}: neither a webhook nor the identity provider.`,
      'check whether something was loaded into the process: its environment, LD_PRELOAD, BUN_OPTIONS',
    )
  }
  if (calls.length === 0) return ok('outbound', 'No outgoing connections since start.')
  const names = calls.toReversed().map(({ what, host, address, port, times }) => {
    const at = address === null || address === host ? '' : ` (${address})`
    return `${what} ${host}${at} port ${port}, ${times} ${times === 1 ? 'time' : 'times'}`
  })
  const rest = names.length > shownMax ? `; and ${names.length - shownMax} more` : ''
  return ok('outbound', `Outgoing connections since start: ${names.slice(0, shownMax).join('; ')}${rest}.`)
}

function explains(call: OutboundCall, { address, port }: Connection): boolean {
  return call.port === port && (call.address === null || call.address === address)
}
