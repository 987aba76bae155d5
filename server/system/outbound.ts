/** The outgoing connections of this process since it started, recorded where they are made, for the doctor. */

export interface OutboundCall {
  what: 'webhook' | 'syslog' | 'sign-in provider' | 'name lookup' | 'mail server'
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

export function outboundCalls(): OutboundCall[] {
  return [...calls.values()]
}
