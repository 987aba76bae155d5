/** Decides which addresses a delivery may reach: public ones and ranges of the operator, never cloud metadata. */
import { isIP } from 'node:net'

/** IP addresses as bytes: read from text, compared with ranges, unwrapped where one carries another. */
type Ip = Uint8Array // 4 or 16 bytes

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

interface IpRange {
  base: Ip
  bits: number
}

/** Reads `10.0.0.0/8`, `fc00::/7` or one address; null when it is neither. */
function readRange(text: string): IpRange | null {
  const [address = '', bitsText, ...rest] = text.split('/')
  const base = readIp(address)
  if (base === null || rest.length > 0) return null
  if (bitsText === undefined) return { base, bits: base.length * 8 }
  const bits = /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.NaN
  return bits <= base.length * 8 ? { base, bits } : null
}

function inRange(ip: Ip, { base, bits }: IpRange): boolean {
  if (ip.length !== base.length) return false
  const whole = bits >> 3
  for (let index = 0; index < whole; index++) if (ip[index] !== base[index]) return false
  const rest = 8 - (bits & 7)
  return rest === 8 || ip[whole]! >> rest === base[whole]! >> rest
}

/** `::ffff:a.b.c.d` is the IPv4 address itself on the wire. */
const mapped: IpRange = { base: readIp6('::ffff:0:0'), bits: 96 }

function unmapped(ip: Ip): Ip {
  return inRange(ip, mapped) ? ip.slice(12) : ip
}

/** IPv6 forms that embed an IPv4 address, and its offset. A gateway may turn each into a connection to that address. */
const carriers = [
  { range: mapped, at: 12 },
  { range: { base: readIp6('::'), bits: 96 }, at: 12 }, // IPv4-compatible
  { range: { base: readIp6('64:ff9b::'), bits: 96 }, at: 12 }, // NAT64
  { range: { base: readIp6('64:ff9b:1::'), bits: 48 }, at: 12 }, // NAT64 of a local network
  { range: { base: readIp6('2002::'), bits: 16 }, at: 2 }, // 6to4
]

/** Every IPv4 address embedded in an IPv6 address. */
function embedded(ip: Ip): Ip[] {
  return carriers.filter(({ range }) => inRange(ip, range)).map(({ at }) => ip.slice(at, at + 4))
}

function ranges(texts: readonly string[]): IpRange[] {
  return texts.map((text) => {
    const range = readRange(text)
    if (range === null) throw new Error(`not an address range: ${text}`)
    return range
  })
}

/** IANA's special-purpose registry: nothing here is a receiver on the public Internet. */
const special4 = ranges([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])

/** No IPv6 address outside 2000::/3 is public; these ranges inside it are not public either. */
const global6 = ranges(['2000::/3'])
const special6 = ranges(['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

/** Addresses where clouds serve credentials. No option allows them. */
const metadata = ranges([
  '169.254.169.254', // most clouds
  '169.254.170.2', // container credentials
  '169.254.170.23',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
])

export interface AddressGuard {
  /** Why deliveries may not go to this address, as a predicate ("is not …"); null when they may. */
  refusal(address: string): string | null
}

/** `allow` lists CIDR ranges or addresses; throws for an invalid one. */
export function addressGuard(allow: readonly string[]): AddressGuard {
  const allowed = ranges(allow)
  const within = (ip: Ip, list: IpRange[]) => list.some((range) => inRange(ip, range))
  return {
    refusal(address) {
      const read = readIp(address)
      if (read === null) return 'is not an IP address'
      const ip = unmapped(read)
      if ([ip, ...embedded(ip)].some((each) => within(each, metadata))) return 'is a cloud metadata address'
      if (within(ip, allowed)) return null
      const isPublic = ip.length === 4 ? !within(ip, special4) : within(ip, global6) && !within(ip, special6)
      return isPublic ? null : 'is not a public address'
    },
  }
}
