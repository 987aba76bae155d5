/** The only file that calls out: HTTP posts, datagrams and streams, to addresses that were checked or to the proxy. */
import { createSocket } from 'node:dgram'
import { connect, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { noteCall } from '../../system/outbound.ts'
import { credentialsRefused, proxyFault } from './failure.ts'

export const excerptBytesMax = 16 * 1024

export interface Post {
  url: URL
  host: string // without brackets; what the certificate must name
  route: Route
  headers: Record<string, string>
  body: string
  ca: string | null // further certificate authorities, PEM
  signal: AbortSignal
}

export type Route =
  | { address: string } // dialled instead of the name, so that no second look-up can lead elsewhere
  | { proxy: string } // which looks the name up by itself

export interface Answer {
  status: number
  retryAfter: string | null
  excerpt: Uint8Array // of the body as sent: at most 16 KiB, nothing is inflated
  encoding: string | null
}

/** Sends one request and reads the beginning of its answer. Rejects when no status line comes before the signal. */
export async function post(request: Post): Promise<Answer> {
  const { url, host, route, signal } = request
  const isProxied = 'proxy' in route
  noteCall({ what: 'webhook', ...calledBy(request) })
  const response = await fetch(isProxied ? url : withAddress(url, route.address), {
    method: 'POST',
    headers: { ...request.headers, host: url.host, 'accept-encoding': 'identity' },
    body: request.body,
    redirect: 'manual',
    decompress: false,
    keepalive: false, // a pooled connection that the receiver just closed would cost an attempt
    signal,
    ...(isProxied ? { proxy: route.proxy } : {}),
    ...(url.protocol === 'https:' ? { tls: tlsFor(host, request.ca) } : {}),
  }).catch((thrown: unknown) => {
    throw isProxied ? proxyFault(thrown) : thrown
  })
  if (isProxied && response.status === 407) {
    await response.body?.cancel()
    throw credentialsRefused()
  }
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    excerpt: await readStart(response),
    encoding: response.headers.get('content-encoding'),
  }
}

function withAddress(url: URL, address: string): URL {
  const dialled = new URL(url)
  dialled.hostname = isIP(address) === 6 ? `[${address}]` : address
  return dialled
}

/** Whom this machine itself connects to. */
function calledBy({ url, host, route }: Post): { host: string; address: string | null; port: number } {
  if ('address' in route) return { host, address: route.address, port: portOf(url) }
  const proxy = new URL(route.proxy)
  return { host: proxy.hostname, address: null, port: portOf(proxy) }
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

function tlsFor(host: string, ca: string | null): { serverName?: string; ca?: string } {
  return { ...(isIP(host) === 0 ? { serverName: host } : {}), ...(ca === null ? {} : { ca }) }
}

/** The status already says what the receiver thinks; a body that ends early or never is only cut. */
async function readStart(response: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let bytes = 0
  const reader = response.body?.getReader()
  try {
    while (reader !== undefined && bytes < excerptBytesMax) {
      const { done, value } = await reader.read()
      if (done) break
      parts.push(value.subarray(0, excerptBytesMax - bytes))
      bytes += value.length
    }
  } catch {
    // Reset or out of time in the middle of the body.
  }
  await reader?.cancel().catch(() => undefined)
  return Buffer.concat(parts)
}

export interface Peer {
  address: string
  port: number
}

/** Hands every message to the network as one datagram; nobody confirms that it arrives. */
export function sendDatagrams(peer: Peer, messages: string[]): Promise<void> {
  noteCall({ what: 'syslog', host: peer.address, ...peer })
  const socket = createSocket(isIP(peer.address) === 6 ? 'udp6' : 'udp4')
  const sent = messages.map(
    (message) =>
      new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.send(message, peer.port, peer.address, (error) => (error ? reject(error) : resolve()))
      }),
  )
  return Promise.all(sent).then(
    () => void socket.close(),
    (error: unknown) => {
      socket.close()
      throw error
    },
  )
}

/** Writes `bytes` over one connection; done when all of it was taken and the connection ended in order. */
export function sendStream(peer: Peer, bytes: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    noteCall({ what: 'syslog', host: peer.address, ...peer })
    const socket = connect({ host: peer.address, port: peer.port })
    const stop = () => socket.destroy(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    socket.once('connect', () => socket.end(bytes))
    socket.once('error', (error) => {
      // Bun calls every connection that fails refused, also where no network leads out of this machine.
      const isCutOff = 'code' in error && error.code === 'ECONNREFUSED' && !hasWayTo(peer)
      reject(isCutOff ? Object.assign(new Error('no network'), { code: 'ENETUNREACH' }) : error)
    })
    socket.once('close', (failed) => {
      signal.removeEventListener('abort', stop)
      if (!failed) resolve()
    })
    socket.resume() // whatever the receiver says is not for us, but unread it would keep the connection open
  })
}

/** Whether this machine has an address of the peer's kind beside its own loopback. */
function hasWayTo({ address }: Peer): boolean {
  const family = isIP(address) === 6 ? 'IPv6' : 'IPv4'
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return isLoopback(address) || own.some((each) => !each.internal && each.family === family)
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}
