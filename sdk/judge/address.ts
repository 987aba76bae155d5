/**
 * Reads addresses in every form in which servers, proxies and load balancers write them, for every door: access logs,
 * forwarded headers and observations of middleware.
 */
import { parseAddress } from './networks.ts'

/** The longest address with brackets, zone and port that is read. */
const addressCharsMax = 100
const zone = /%[\w.~-]+(?=$|:\d{1,5}$)/
const port = /^\d{1,5}$/
const portMax = 65_535

const words = new Uint32Array(4) // of the address being read

/**
 * The address in `203.0.113.9`, `203.0.113.9:443`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:443`,
 * `2001:db8:0:0:0:0:0:1:443`, `::ffff:203.0.113.9` or `fe80::1%eth0`: without port, brackets and zone, IPv6 in lower
 * case, an IPv4-mapped address as IPv4. Null for anything else: a word is never an address.
 *
 * `2001:db8::1:443` is itself an address. Where a port always follows, use `readAddressAndPort`.
 *
 * @example readAddress('[2001:DB8::1]:443') // '2001:db8::1'
 */
export function readAddress(text: string): string | null {
  if (text.length > addressCharsMax) return null
  const firstColon = text.indexOf(':')
  if (firstColon < 0) return parseAddress(text, words) ? text : null
  if (text.startsWith('[')) return readBracketed(text)
  const lastColon = text.lastIndexOf(':')
  if (firstColon === lastColon) {
    const address = text.slice(0, firstColon)
    return isPort(text.slice(lastColon + 1)) && parseAddress(address, words) ? address : null
  }
  if (!text.includes('%')) return plainIPv6(text) ?? readAddressAndPort(text)
  return lastColon > text.indexOf('%') ? readAddressAndPort(text) : plainIPv6(withoutZone(text))
}

/**
 * The address before a port that is always there, as the logs of AWS load balancers write it: `2001:db8::1:443`.
 *
 * @example readAddressAndPort('2001:db8::1:443') // '2001:db8::1'
 */
export function readAddressAndPort(text: string): string | null {
  if (text.length > addressCharsMax) return null
  if (text.startsWith('[')) return readBracketed(text)
  const colon = text.lastIndexOf(':')
  if (colon < 0 || !isPort(text.slice(colon + 1))) return null
  const address = withoutZone(text.slice(0, colon))
  if (address.includes(':')) return plainIPv6(address)
  return parseAddress(address, words) ? address : null
}

function readBracketed(text: string): string | null {
  const close = text.indexOf(']')
  const suffix = text.slice(close + 1)
  if (close < 0 || (suffix !== '' && !(suffix.startsWith(':') && isPort(suffix.slice(1))))) return null
  return plainIPv6(withoutZone(text.slice(1, close)))
}

function withoutZone(text: string): string {
  return text.includes('%') ? text.replace(zone, '') : text
}

function plainIPv6(text: string): string | null {
  if (!text.includes(':') || !parseAddress(text, words)) return null
  const isMapped = words[0] === 0 && words[1] === 0 && words[2] === 0xffff
  if (!isMapped) return text.toLowerCase()
  const v4 = words[3]!
  return `${v4 >>> 24}.${(v4 >>> 16) & 255}.${(v4 >>> 8) & 255}.${v4 & 255}`
}

function isPort(text: string): boolean {
  return port.test(text) && Number(text) <= portMax
}

/**
 * The client behind trusted proxies. Each proxy appends the address of its peer to X-Forwarded-For, so hops are read
 * from the last one on, as long as a trusted proxy wrote them. What stands before that, the client chose.
 *
 * Null when a trusted proxy wrote something else than an address.
 *
 * @example clientBehind('10.0.0.5', '192.0.2.1, 203.0.113.9', (address) => address.startsWith('10.')) // '203.0.113.9'
 */
export function clientBehind(
  peer: string,
  forwarded: string | null,
  isTrusted: (address: string) => boolean,
): string | null {
  let address = peer
  let end = forwarded?.length ?? 0
  while (forwarded !== null && end > 0 && isTrusted(address)) {
    const comma = forwarded.lastIndexOf(',', end - 1)
    const hop = forwarded.slice(comma + 1, end).trim()
    end = comma
    if (hop === '' && address === peer && comma < 0) break // an empty header
    const client = readAddress(hop)
    if (client === null) return null
    address = client
  }
  return address
}
