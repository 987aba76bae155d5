/** The Host allow-list for the dashboard: what keeps a rebound DNS name from talking to a loopback appliance. */
import { isIP } from 'node:net'

export interface HostRule {
  listenHosts: string[] // hosts of the listeners, without port
  publicUrl: string | null
  allowedHosts: string[]
}

/** Whether a request for the dashboard may name this host (contract §1: loopback, listen address, IP literals, …). */
export function hostAllowed(hostHeader: string | null, rule: HostRule): boolean {
  if (!hostHeader) return false
  const name = hostName(hostHeader)
  if (name === null) return false
  if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0) return true
  const allowed = [...rule.listenHosts, ...rule.allowedHosts]
  if (rule.publicUrl) allowed.push(new URL(rule.publicUrl).hostname)
  return allowed.some((host) => host.toLowerCase() === name)
}

/** The name in a Host header without its port, in lower case and without IPv6 brackets; null when malformed. */
export function hostName(header: string): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(header)
  if (!match) return null
  return (match[1] ?? match[2]!).toLowerCase().replace(/\.$/, '')
}
