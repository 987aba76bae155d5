/** The Host allow-list of the dashboard: stops DNS rebinding against a loopback appliance. */
import { isIP } from 'node:net'

export interface HostRule {
  listenHosts: string[] // hosts of the listeners, without port
  publicUrl: string | null
  allowedHosts: string[]
}

/** Whether a dashboard request may use this Host header (contract §1: loopback, listen address, IP literals, …). */
export function hostAllowed(hostHeader: string | null, rule: HostRule): boolean {
  if (!hostHeader) return false
  const name = hostName(hostHeader)
  if (name === null) return false
  if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0) return true
  const allowed = [...rule.listenHosts, ...rule.allowedHosts]
  if (rule.publicUrl) allowed.push(new URL(rule.publicUrl).hostname)
  return allowed.some((host) => host.toLowerCase() === name)
}

/** The host name in a Host header, lower case, without port and IPv6 brackets; null when malformed. */
export function hostName(header: string): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(header)
  if (!match) return null
  return (match[1] ?? match[2]!).toLowerCase().replace(/\.$/, '')
}
