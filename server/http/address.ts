/**
 * Addresses: where a listener binds, the URL and Host headers that clients use, and the client behind trusted
 * proxies.
 */
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { clientBehind, readAddress } from '../../sdk/judge/address.ts'
import { UsageError } from '../errors.ts'
import { contextOf, type Sender } from './request.ts'

export interface Where {
  publicUrl: string | null // origin
  basePath: string
}

/** The public URL without a trailing slash. Its scheme is the request's own, trusted proxies included. */
export function addressOf(request: Request, { publicUrl, basePath }: Where): string {
  const scheme = contextOf(request).sender().secure ? 'https' : 'http'
  return `${publicUrl ?? `${scheme}://${new URL(request.url).host}`}${basePath}`
}

/** A host that works in a link: 0.0.0.0 is replaced by the machine's first outside address. */
export function reachableHost(host: string, interfaces = networkInterfaces()): string {
  if (host !== '0.0.0.0' && host !== '::') return host
  const outer = Object.values(interfaces).flatMap((addresses) => addresses ?? [])
  const usable = outer.filter(({ internal, address }) => !internal && !/^(?:fe80|169\.254)/i.test(address))
  const outerAddress =
    usable.find(({ family }) => family === 'IPv4') ?? (host === '::' ? usable[0] : undefined)
  return outerAddress?.address ?? (host === '::' ? '::1' : '127.0.0.1')
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

/**
 * Whether a page of this origin may send a request that only programs send: one of this machine, or of a name that the
 * operator gave. Programs send no Origin.
 */
export function originAllowed(origin: string | null, rule: HostRule): boolean {
  if (origin === null) return true
  const name = URL.canParse(origin) ? hostName(new URL(origin).host) : null
  if (name === null) return false
  if (isLoopback(name)) return true
  // Anybody can serve a page from an address, so only those that this server listens on count.
  return isIP(name) === 0 ? hostAllowed(name, rule) : rule.listenHosts.includes(name)
}

/** Whether a Host header names this machine. A name such as `127.evil.example` is anybody's. */
export function isLoopbackHost(header: string | null): boolean {
  const name = header === null ? null : hostName(header)
  if (name === null) return false
  return name === 'localhost' || name.endsWith('.localhost') || isLoopback(name)
}

const isLoopback = (name: string): boolean => name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))

/** The host name in a Host header, lower case, without port and IPv6 brackets; null when malformed. */
export function hostName(header: string): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(header)
  if (!match) return null
  return (match[1] ?? match[2]!).toLowerCase().replace(/\.$/, '')
}

/**
 * Whether an address is one of a trusted proxy. Built once from the addresses and ranges of `--trusted-proxy`. Throws a
 * UsageError.
 */
export function trustReader(trusted: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of trusted) addRange(list, entry)
  if (trusted.length === 0) return () => false
  return (address) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** Throws a UsageError. */
function addRange(list: BlockList, range: string): void {
  const [text = '', bits] = range.split('/')
  const address = readAddress(text) ?? text
  const isMapped = isIP(text) === 6 && isIP(address) === 4
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  try {
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, isMapped ? Math.max(0, Number(bits) - mappedBits) : Number(bits), family)
  } catch {
    throw new UsageError(`"${range}" is not an IP address or a range like 10.0.0.0/8`)
  }
}

/** The bits before the IPv4 address in `::ffff:10.0.0.0`. */
const mappedBits = 96

/** Reads the client of a request, which may come through the proxies of `--trusted-proxy`. */
export function senderReader(
  trusted: readonly string[],
): (peer: string | null, headers: Pick<Headers, 'get'>) => Sender {
  const isTrusted = trustReader(trusted)
  return (peer, headers) => {
    // Only the proxy of this machine can write to the socket, and it has no address.
    const direct = peer === null ? '127.0.0.1' : (readAddress(peer) ?? peer)
    if (peer !== null && !isTrusted(direct)) return { address: direct, secure: false }
    let isSocket = peer === null
    const isProxy = (address: string): boolean => {
      const isFirst = isSocket
      isSocket = false
      return isFirst || isTrusted(address)
    }
    const address = clientBehind(direct, headers.get('x-forwarded-for'), isProxy) ?? direct
    const proto = headers.get('x-forwarded-proto')?.split(',').at(-1)?.trim()
    return { address, secure: proto === 'https' }
  }
}

/** The name that limits count a sender by: its IPv4 address, or the /64 of its IPv6 address. */
export function senderName(address: string): string {
  const inside = /^(?:::ffff:|0:0:0:0:0:ffff:)(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (inside !== undefined && isIP(inside) === 4) return inside
  if (isIP(address) !== 6) return address
  const [head = '', tail = ''] = address.split('::')
  const front = head.split(':').filter(Boolean)
  const back = address.includes('::') ? tail.split(':').filter(Boolean) : []
  const groups = [...front, ...Array<string>(Math.max(0, 8 - front.length - back.length)).fill('0'), ...back]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
