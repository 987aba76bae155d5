/** Opens connections to receivers, and names their failures as `sink.ts` does. */
import { connect, isIP, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import {
  checkServerIdentity,
  connect as startTls,
  createSecureContext,
  getCACertificates,
  type SecureContext,
} from 'node:tls'

export interface Peer {
  address: string // or a name, of a proxy
  port: number
}

/** Rejects with `signal.reason` once that is aborted. The caller destroys the socket. */
export function connectTo(peer: Peer, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: peer.address, port: peer.port, noDelay: true })
  return settle(socket, 'connect', signal).catch((error: unknown) => {
    throw networkError(error, peer)
  })
}

/** Makes the connection secure. `host` is the name or address that the certificate must have. */
export function secure(
  socket: Socket,
  { host, ca, signal }: { host: string; ca: string | null; signal: AbortSignal },
): Promise<Socket> {
  // A dot at the end makes a name absolute in DNS; the name of a certificate has none (RFC 6066 §3).
  const name = host.replace(/\.$/, '')
  const tls = startTls({
    socket,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...(ca === null ? {} : { secureContext: contextWith(ca) }),
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
  })
  return settle(tls, 'secureConnect', signal)
}

const contexts = new Map<string, SecureContext>()

/** A context that trusts these authorities in addition to the public ones. Reading them all takes 2 ms. */
function contextWith(ca: string): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext({ ca: [...getCACertificates('default'), ca] })
  contexts.set(ca, context)
  return context
}

/** Resolves at the event; rejects, and destroys the socket, when it ends before. */
function settle(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const onReady = (): void => resolve(socket)
  const onClose = (): void => reject(closedEarly())
  const onAbort = (): void => {
    reject(signal.reason)
    socket.destroy()
  }
  socket.once(event, onReady)
  socket.once('error', reject)
  socket.once('close', onClose)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  return promise.finally(() => {
    socket.off(event, onReady)
    socket.off('close', onClose)
    signal.removeEventListener('abort', onAbort)
    // The listener for errors stays: an error that nobody listens for would end the process.
  })
}

/** The receiver closed the connection before the response was complete. */
export function closedEarly(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })
}

/** Bun reports every failed connection as refused, even when this machine has no route to the peer. */
export function networkError(error: unknown, peer: Peer): unknown {
  const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
  if (!isRefused || hasRouteTo(peer)) return error
  return Object.assign(new Error('no network'), { code: 'ENETUNREACH' })
}

/** Whether this machine has an address of the peer's family besides loopback. */
function hasRouteTo({ address }: Peer): boolean {
  const family = isIP(address) === 6 ? 'IPv6' : 'IPv4'
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const isLoopback = address.startsWith('127.') || address === '::1'
  return isLoopback || interfaces.some((each) => !each.internal && each.family === family)
}
