/** Addresses: where a listener binds, and the URL under which clients reach this appliance. */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { contextOf } from './request.ts'

export interface Where {
  publicUrl: string | null // origin
  basePath: string
}

/** The public URL without a trailing slash. Its scheme is the request's own, trusted proxies included. */
export function addressOf(request: Request, { publicUrl, basePath }: Where): string {
  const scheme = contextOf(request).secure ? 'https' : 'http'
  return `${publicUrl ?? `${scheme}://${new URL(request.url).host}`}${basePath}`
}

/** A host that works in a link: 0.0.0.0 is replaced by the machine's first outside address. */
export function reachableHost(host: string, interfaces = networkInterfaces()): string {
  if (host !== '0.0.0.0' && host !== '::') return host
  const outer = Object.values(interfaces).flatMap((each) => each ?? [])
  const usable = outer.filter(({ internal, address }) => !internal && !/^(?:fe80|169\.254)/i.test(address))
  const found = usable.find(({ family }) => family === 'IPv4') ?? (host === '::' ? usable[0] : undefined)
  return found?.address ?? (host === '::' ? '::1' : '127.0.0.1')
}

/** The address a listener binds to. */
export interface ListenAddress {
  host: string // without brackets; localhost for a socket
  port: number // 0: the system chooses
  unix?: string // path of a Unix socket, used instead of host and port
}

/** `host:port` with brackets around IPv6, or `unix:PATH`. */
export function listenText({ host, port, unix }: ListenAddress): string {
  if (unix !== undefined) return `unix:${unix}`
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}
