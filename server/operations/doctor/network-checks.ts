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
  if (listen.unix !== undefined) return ok('tls', `${where} is reached from this machine alone.`)
  if (hasTls) return ok('tls', `${where} speaks TLS.`)
  if (isLoopback(listen.host)) return ok('tls', `${where} is reached from this machine alone.`)
  if (publicUrl?.startsWith('https:') && trustedProxies.length > 0) {
    return ok('tls', `${where} stands behind a proxy that speaks TLS (${publicUrl}).`)
  }
  return warning(
    'tls',
    `${where} is reached from the network without TLS: passwords and keys cross it in clear.`,
    'give --tls-cert and --tls-key, or put a proxy in front and say --public-url https://… and --trusted-proxy',
  )
}

export function checkProxies({ publicUrl, trustedProxies }: Reached, hasTls: boolean): Check {
  const everybody = trustedProxies.find((range) => /\/0$/.test(range))
  if (everybody !== undefined) {
    return failure(
      'proxy',
      `--trusted-proxy ${everybody} believes whatever anybody claims as their address.`,
      'name the addresses of your proxies only',
    )
  }
  if (publicUrl?.startsWith('https:') && trustedProxies.length === 0 && !hasTls) {
    return warning(
      'proxy',
      `${publicUrl} is https, but no proxy is trusted: all requests seem to come from one address, without TLS.`,
      'name the proxy with --trusted-proxy',
    )
  }
  return ok(
    'proxy',
    trustedProxies.length === 0 ? 'No proxy is trusted.' : `Trusted: ${trustedProxies.join(', ')}.`,
  )
}
