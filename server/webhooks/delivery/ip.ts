/** IP addresses as bytes: read from text, compared with ranges, unwrapped where one carries another. */
import { isIP } from 'node:net'

export type Ip = Uint8Array // 4 or 16 bytes

/** The bytes of an address in text, or null. A scope (`%eth0`) is no part of an address. */
export function readIp(text: string): Ip | null {
  const version = isIP(text)
  if (version === 4) return Uint8Array.from(text.split('.'), Number)
  return version === 6 && !text.includes('%') ? readIp6(text) : null
}

function readIp6(text: string): Ip {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text)
  const hex = (high: string | undefined, low: string | undefined) =>
    (Number(high) * 256 + Number(low)).toString(16)
  const plain = dotted ? `${dotted[1]}${hex(dotted[2], dotted[3])}:${hex(dotted[4], dotted[5])}` : text
  const [head = '', tail] = plain.split('::')
  const groups = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const front = groups(head)
  const back = tail === undefined ? [] : groups(tail)
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

export interface IpRange {
  base: Ip
  bits: number
}

/** Reads `10.0.0.0/8`, `fc00::/7` or one address; null when it is neither. */
export function readRange(text: string): IpRange | null {
  const [address = '', bitsText, ...rest] = text.split('/')
  const base = readIp(address)
  if (base === null || rest.length > 0) return null
  if (bitsText === undefined) return { base, bits: base.length * 8 }
  const bits = /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.NaN
  return bits <= base.length * 8 ? { base, bits } : null
}

export function inRange(ip: Ip, { base, bits }: IpRange): boolean {
  if (ip.length !== base.length) return false
  const whole = bits >> 3
  for (let index = 0; index < whole; index++) if (ip[index] !== base[index]) return false
  const rest = 8 - (bits & 7)
  return rest === 8 || ip[whole]! >> rest === base[whole]! >> rest
}

/** `::ffff:a.b.c.d` is the IPv4 address itself on the wire. */
const mapped: IpRange = { base: readIp6('::ffff:0:0'), bits: 96 }

export function unmapped(ip: Ip): Ip {
  return inRange(ip, mapped) ? ip.slice(12) : ip
}

/** Forms that carry an IPv4 address, and where: a gateway may turn each into a connection to that address. */
const carriers = [
  { range: mapped, at: 12 },
  { range: { base: readIp6('::'), bits: 96 }, at: 12 }, // IPv4-compatible
  { range: { base: readIp6('64:ff9b::'), bits: 96 }, at: 12 }, // NAT64
  { range: { base: readIp6('64:ff9b:1::'), bits: 48 }, at: 12 }, // NAT64 of one's own network
  { range: { base: readIp6('2002::'), bits: 16 }, at: 2 }, // 6to4
]

/** Every IPv4 address that an IPv6 address carries inside. */
export function carried(ip: Ip): Ip[] {
  return carriers.filter(({ range }) => inRange(ip, range)).map(({ at }) => ip.slice(at, at + 4))
}
