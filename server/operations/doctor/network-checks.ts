/** Checks of how the appliance is reached: encryption on the way, and proxies that are believed. */
import { isIP } from 'node:net'
import type { Diagnosed } from './options.ts'
import { listenText } from '../../http/address.ts'
import { failure, ok, warning, type Check } from './check.ts'

type Reached = Pick<Diagnosed, 'listen' | 'publicUrl' | 'trustedProxies'>

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

export function checkReach({ listen, publicUrl, trustedProxies }: Reached, hasTls: boolean): Check {
  const where = listenText(listen)
  if (listen.unix !== undefined) return ok('tls', `${where} is reachable from this machine only.`)
  if (hasTls) return ok('tls', `${where} serves TLS.`)
  if (isLoopback(listen.host)) return ok('tls', `${where} is reachable from this machine only.`)
  if (publicUrl?.startsWith('https:') && trustedProxies.length > 0) {
    return ok('tls', `${where} is behind a proxy with TLS (${publicUrl}).`)
  }
  return warning(
    'tls',
    `${where} is reachable from the network without TLS: passwords and keys are sent in clear text.`,
    'set --tls-cert and --tls-key, or use a proxy and set --public-url https://… and --trusted-proxy',
  )
}

export function checkProxies({ publicUrl, trustedProxies }: Reached, hasTls: boolean): Check {
  const everybody = trustedProxies.find((range) => /\/0$/.test(range))
  if (everybody !== undefined) {
    return failure(
      'proxy',
      `--trusted-proxy ${everybody} believes whatever anybody claims as their address.`,
      'list only the addresses of your proxies',
    )
  }
  if (publicUrl?.startsWith('https:') && trustedProxies.length === 0 && !hasTls) {
    return warning(
      'proxy',
      `${publicUrl} is https, but no proxy is trusted: all requests appear to come from one address without TLS.`,
      'name the proxy with --trusted-proxy',
    )
  }
  return ok(
    'proxy',
    trustedProxies.length === 0 ? 'No proxy is trusted.' : `Trusted: ${trustedProxies.join(', ')}.`,
  )
}
