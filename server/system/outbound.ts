/** What this process called since it started, noted where it calls, for the doctor. */

export interface OutboundCall {
  what: 'webhook' | 'syslog' | 'sign-in provider'
  host: string
  address: string | null // null: the library that calls looks the name up itself
  port: number
  times: number
}

const callsMax = 1_000
const calls = new Map<string, OutboundCall>()

export function noteCall(call: Omit<OutboundCall, 'times'>): void {
  const key = `${call.what} ${call.host} ${call.address} ${call.port}`
  const times = (calls.get(key)?.times ?? 0) + 1
  calls.delete(key) // the newest last
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
