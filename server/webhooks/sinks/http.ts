/** Delivers messages as signed HTTP POST requests, directly or through the operator's proxy. */
import type { Socket } from 'node:net'
import { limits } from '../../limits.ts'
import { noteCall } from '../../system/outbound.ts'
import { cutBytes } from '../../text/text.ts'
import {
  RefusedUrl,
  SendError,
  local,
  remote,
  type Message,
  type SendOptions,
  type Sink,
  type SinkResponse,
} from './sink.ts'
import { closedEarly, connectTo, secure, type Peer } from './connection.ts'
import { headerOf, responseReader, type HttpResponse } from './http-response.ts'
import { firstReached, isPrivateName, refuseForbidden, requireAddresses } from './addresses.ts'
import { secretPurpose, signedHeaders } from './signing.ts'

interface HttpTarget {
  url: URL
  host: string // a name or an address, without brackets
}

export const http: Sink<HttpTarget> = {
  schemes: ['http:', 'https:'],
  parse(url) {
    if (url.port === '0') throw new RefusedUrl('its port is 0')
    return { url, host: url.hostname.replace(/^\[(.*)\]$/, '$1') }
  },
  check({ host }, text, { resolve }) {
    refuseForbidden(resolve, host)
    return text
  },
  async send(target, message, options) {
    const { resolve, proxy } = options
    const { host } = target
    refuseForbidden(resolve, host)
    const resolution = await resolve(host)
    if (proxy === null || resolution.kind === 'refused') {
      const addresses = requireAddresses(host, resolution)
      return firstReached(addresses, (address) => post(target, message, { address }, options))
    }
    // The proxy may know names that this machine does not: on closed networks only the proxy resolves public names.
    if (resolution.kind !== 'addresses' && isPrivateName(host))
      throw new RefusedUrl(`${host} is a private name, which is not sent to the proxy`)
    return post(target, message, { proxy: new URL(proxy) }, options)
  },
}

type Route =
  | { address: string } // used instead of the name, so that no second lookup can return another address
  | { proxy: URL } // resolves the name itself

/** Sends one request and reads the beginning of the response, on a connection of its own. */
async function post(
  { url, host }: HttpTarget,
  message: Message,
  route: Route,
  options: SendOptions,
): Promise<SinkResponse> {
  const { signal, ca } = options
  const peer = peerOf(url, route)
  noteCall({ what: 'webhook', ...calledHost(host, route), port: peer.port })
  const isSecure = url.protocol === 'https:'
  const isProxied = 'proxy' in route
  const opened = await connectTo(peer, signal).catch((thrown: unknown) => {
    throw isProxied ? proxyError(thrown) : thrown
  })
  let socket = opened
  try {
    if (isSecure && isProxied) await openTunnel(socket, url, route.proxy, signal)
    if (isSecure) socket = await secure(socket, { host, ca, signal })
    const response = await exchange(socket, requestOf(url, message, route, options), excerptBytesMax, signal)
    // Plain http has no tunnel: the proxy answers in place of the receiver, and 407 is always its own.
    if (isProxied && response.status === 407) throw new SendError(proxyCredentials)
    return {
      status: response.status,
      excerpt: excerptText(response.body, headerOf(response.headers, 'content-encoding')),
      retryAfterMs: readRetryAfter(headerOf(response.headers, 'retry-after'), options.clock.now()),
    }
  } finally {
    socket.destroy()
    opened.destroy()
  }
}

/** The whole request. A connection carries one: the receiver may close it after the response. */
function requestOf(url: URL, message: Message, route: Route, options: SendOptions): string {
  const { body } = message.delivery
  const isForProxy = 'proxy' in route && url.protocol === 'http:'
  const headers: { [name: string]: string } = {
    host: url.host,
    ...requestHeaders(options, message, options.atMs),
    accept: '*/*',
    'accept-encoding': 'identity',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
    ...(isForProxy ? proxyHeaders(route.proxy) : {}),
  }
  const path = `${url.pathname}${url.search}`
  return `${head(`POST ${isForProxy ? url.origin : ''}${path} HTTP/1.1`, headers)}${body}`
}

function head(firstLine: string, headers: { [name: string]: string }): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return `${[firstLine, ...lines].join('\r\n')}\r\n\r\n`
}

function proxyHeaders({ username, password }: URL): { [name: string]: string } {
  if (username === '' && password === '') return {}
  const credentials = `${decoded(username)}:${decoded(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}

/** A % that begins no encoded character is meant as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Asks the proxy for a connection to the receiver. */
async function openTunnel(socket: Socket, url: URL, proxy: URL, signal: AbortSignal): Promise<void> {
  const authority = `${url.hostname}:${portOf(url)}`
  const request = head(`CONNECT ${authority} HTTP/1.1`, { host: authority, ...proxyHeaders(proxy) })
  const { status } = await exchange(socket, request, 0, signal)
  if (status === 407) throw new SendError(proxyCredentials)
  if (status < 200 || status > 299)
    throw new SendError(remote('proxy_refused', 'the proxy refused to connect to the receiver'))
}

/**
 * Sends a request and reads the response with at most `bodyBytesMax` bytes of its body. Only the status decides, so a
 * body that is incomplete or never ends is truncated. The connection stays open.
 */
function exchange(
  socket: Socket,
  request: string,
  bodyBytesMax: number,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const reader = responseReader(bodyBytesMax)
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>()
  const end = (error: unknown): void => {
    const response = reader.response()
    if (response === null) reject(error)
    else resolve(response)
  }
  const onData = (bytes: Buffer): void => {
    try {
      if (reader.read(bytes)) end(closedEarly())
    } catch (error) {
      reject(error)
    }
  }
  const onEnd = (): void => end(closedEarly())
  const onAbort = (): void => end(signal.reason)
  socket.on('data', onData)
  socket.on('error', end)
  socket.on('end', onEnd)
  socket.on('close', onEnd)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  else socket.write(request)
  return promise.finally(() => {
    socket.off('data', onData)
    socket.off('error', end)
    socket.off('end', onEnd)
    socket.off('close', onEnd)
    signal.removeEventListener('abort', onAbort)
  })
}

/** The headers of a request, except those that HTTP itself requires. */
export function requestHeaders(
  { box, version }: Pick<SendOptions, 'box' | 'version'>,
  { delivery, encryptedSecrets }: Message,
  atMs: number,
): Record<string, string> {
  const secrets = encryptedSecrets.map((text) => box.decrypt(secretPurpose(delivery), text))
  return {
    'content-type': 'application/json',
    'user-agent': `Sightglass/${version}`,
    ...signedHeaders(secrets, delivery, atMs),
  }
}

/** What this machine connects to. */
function peerOf(url: URL, route: Route): Peer {
  if ('address' in route) return { address: route.address, port: portOf(url) }
  return { address: route.proxy.hostname.replace(/^\[(.*)\]$/, '$1'), port: portOf(route.proxy) }
}

function calledHost(host: string, route: Route): { host: string; address: string | null } {
  if ('address' in route) return { host, address: route.address }
  return { host: route.proxy.hostname, address: null }
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

const proxyCredentials = local('proxy_credentials', 'the proxy rejected its credentials')

const proxyUnreachable = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
])

/** Why there is no connection to the proxy. */
function proxyError(thrown: unknown): unknown {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (!proxyUnreachable.has(code)) return thrown
  return new SendError(local('proxy_down', 'the proxy is unreachable'))
}

const excerptBytesMax = 16 * 1024

const decoder = new TextDecoder('utf-8')

/** Text that is safe to store and show. Compressed bodies are not inflated: the receiver would choose their size. */
export function excerptText(bytes: Uint8Array, contentEncoding: string | null): string {
  if (bytes.length === 0) return ''
  const encoding = contentEncoding?.trim().toLowerCase() ?? 'identity'
  if (encoding !== '' && encoding !== 'identity')
    return `(${bytes.length} bytes in content-encoding, not shown)`
  const text = decoder.decode(bytes).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd')
  return cutBytes(text, excerptBytesMax) // each invalid byte became three
}

/**
 * A `Retry-After` header as at most one hour; null when it is invalid. Fractions and quotes are not valid HTTP, but
 * receivers send them; fractions are rounded up. Negative numbers are ignored.
 */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  const text = (header?.trim() ?? '').replace(/^"(.*)"$/, '$1').trim()
  if (/^\d+(?:\.\d+)?$/.test(text))
    return Math.min(Math.ceil(Number(text) * 1_000), limits.webhookRetryAfterMsMax)
  const atMs = parseHttpDate(text, nowMs)
  return atMs === null ? null : Math.min(Math.max(0, atMs - nowMs), limits.webhookRetryAfterMsMax)
}

const time = '(?<time>\\d{2}:\\d{2}:\\d{2})'
const forms = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^[A-Z][a-z]{2}, (?<day>\\d{2}) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${time} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT, of RFC 850
  new RegExp(`^[A-Z][a-z]{5,8}, (?<day>\\d{2})-(?<month>[A-Z][a-z]{2})-(?<year>\\d{2}) ${time} GMT$`),
  // Sun Nov  6 08:49:37 1994, of asctime in C
  new RegExp(`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${time} (?<year>\\d{4})$`),
]

/** `Date.parse` accepts far more than HTTP dates, and reads some of them in local time. */
function parseHttpDate(text: string, nowMs: number): number | null {
  for (const form of forms) {
    const { day = '', month = '', year = '', time: clock = '' } = form.exec(text)?.groups ?? {}
    if (day === '') continue
    const atMs = Date.parse(`${day.trim().padStart(2, '0')} ${month} ${fullYear(year, nowMs)} ${clock} GMT`)
    return Number.isNaN(atMs) ? null : atMs
  }
  return null
}

/** A year of two digits that would lie more than 50 years ahead is one of the past (RFC 9110 §5.6.7). */
function fullYear(year: string, nowMs: number): number {
  if (year.length === 4) return Number(year)
  const thisYear = new Date(nowMs).getUTCFullYear()
  const ofCentury = thisYear - (thisYear % 100) + Number(year)
  return ofCentury > thisYear + 50 ? ofCentury - 100 : ofCentury
}
