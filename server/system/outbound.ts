/** The outgoing connections of this process since it started, recorded where they are made, for the doctor. */

import { isIP } from 'node:net'

export interface OutboundCall {
  what: 'webhook' | 'syslog' | 'sign-in provider' | 'name lookup' | 'mail server' | 'database'
  host: string
  address: string | null // null: the library resolves the name itself
  port: number
  times: number
}

const callsMax = 1_000
const calls = new Map<string, OutboundCall>()

export function noteCall(call: Omit<OutboundCall, 'times'>): void {
  const key = `${call.what} ${call.host} ${call.address} ${call.port}`
  const times = (calls.get(key)?.times ?? 0) + 1
  calls.delete(key) // keeps the newest last
  calls.set(key, { ...call, times })
  if (calls.size <= callsMax) return
  for (const oldest of calls.keys()) {
    calls.delete(oldest)
    break
  }
}

/** The servers of the shared database, whose connections stay open. They are never dropped from the list. */
const databases: OutboundCall[] = []

export function noteDatabase(servers: readonly { host: string; port: number }[]): void {
  for (const { host, port } of servers) {
    const address = isIP(host) === 0 ? null : host
    databases.push({ what: 'database', host, address, port, times: 1 })
  }
}

export function outboundCalls(): OutboundCall[] {
  return [...databases, ...calls.values()]
}
