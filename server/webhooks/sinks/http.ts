/** Delivers messages as signed HTTP POST requests, directly or through the operator's proxy. */
import { isIP } from 'node:net'
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
import { firstReached, isPrivateName, refuseForbidden, requireAddresses } from './addresses.ts'
import { secretPurpose, signedHeaders } from './signing.ts'

export interface HttpTarget {
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
    return post(target, message, { proxy }, options)
  },
}

type Route =
  | { address: string } // used instead of the name, so that no second lookup can return another address
  | { proxy: string } // resolves the name itself

/** Sends one request and reads the beginning of the response. */
async function post(
  { url, host }: HttpTarget,
  message: Message,
  route: Route,
  options: SendOptions,
): Promise<SinkResponse> {
  const isProxied = 'proxy' in route
  noteCall({ what: 'webhook', ...peerOf(url, host, route) })
  const response = await fetch(isProxied ? url : withAddress(url, route.address), {
    method: 'POST',
    headers: {
      ...requestHeaders(options, message, options.atMs),
      host: url.host,
      'accept-encoding': 'identity',
    },
    body: message.delivery.body,
    redirect: 'manual',
    decompress: false,
    keepalive: false, // a pooled connection that the receiver has closed would cost an attempt
    signal: options.signal,
    ...(isProxied ? { proxy: route.proxy } : {}),
    ...(url.protocol === 'https:' ? { tls: tlsOptions(host, options.ca) } : {}),
  }).catch((thrown: unknown) => {
    throw isProxied ? proxyError(thrown) : thrown
  })
  // Plain http has no tunnel: the proxy answers in place of the receiver, and 407 is always its own.
  if (isProxied && response.status === 407) {
    await response.body?.cancel()
    throw new SendError(proxyCredentials)
  }
  return {
    status: response.status,
    excerpt: excerptText(await readStart(response), response.headers.get('content-encoding')),
    retryAfterMs: readRetryAfter(response.headers.get('retry-after'), options.clock.now()),
  }
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

function withAddress(url: URL, address: string): URL {
  const direct = new URL(url)
  direct.hostname = isIP(address) === 6 ? `[${address}]` : address
  return direct
}

/** The host that this machine connects to. */
function peerOf(
  url: URL,
  host: string,
  route: Route,
): { host: string; address: string | null; port: number } {
  if ('address' in route) return { host, address: route.address, port: portOf(url) }
  const proxy = new URL(route.proxy)
  return { host: proxy.hostname, address: null, port: portOf(proxy) }
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

/** A dot at the end makes a name absolute in DNS; the name of a certificate has none (RFC 6066 §3). */
function tlsOptions(host: string, ca: string | null): { serverName?: string; ca?: string } {
  const name = isIP(host) === 0 ? { serverName: host.replace(/\.$/, '') } : {}
  return { ...name, ...(ca === null ? {} : { ca }) }
}

const proxyCredentials = local('proxy_credentials', 'the proxy rejected its credentials')

/** These come before the proxy accepted the connection: with a proxy this machine connects to nothing else. */
const proxyUnreachable = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
])

/** The failure of the proxy itself, or the error unchanged when the proxy is not its cause. */
function proxyError(thrown: unknown): unknown {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (proxyUnreachable.has(code)) return new SendError(local('proxy_down', 'the proxy is unreachable'))
  if (code !== 'ERR_PROXY_TUNNEL') return thrown
  // "Proxy refused to open a tunnel: 407 Proxy Authentication Required"
  const isCredentials = / 407\b/.test(thrown instanceof Error ? thrown.message : '')
  return new SendError(
    isCredentials
      ? proxyCredentials
      : remote('proxy_refused', 'the proxy refused to connect to the receiver'),
  )
}

const excerptBytesMax = 16 * 1024

/** Only the status decides, so a body that is incomplete or never ends is truncated. */
async function readStart(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = response.body?.getReader()
  try {
    while (reader !== undefined && bytes < excerptBytesMax) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value.subarray(0, excerptBytesMax - bytes))
      bytes += value.length
    }
  } catch {
    // The connection was reset or the deadline passed in the middle of the body.
  }
  await reader?.cancel().catch(() => undefined)
  return Buffer.concat(chunks)
}

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
