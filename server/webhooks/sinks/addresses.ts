/**
 * Resolves a host to the addresses a delivery may connect to: once per attempt, all of them or none. Public addresses
 * and ranges of the operator are allowed, cloud metadata never is.
 */
import { promises as dns } from 'node:dns'
import { isIP } from 'node:net'
import { RefusedUrl, SendError, local, remote, type Resolution, type Resolve } from './sink.ts'

/** Every address of a name; rejects with a `code` like node:dns. */
export type Resolver = (name: string) => Promise<string[]>

export const systemResolver: Resolver = async (name) => {
  const addresses = await dns.lookup(name, { all: true, verbatim: true })
  return addresses.map(({ address }) => address)
}

const deadlineMs = 3_000
const goodNamesMax = 8
const loopbackAddresses = ['127.0.0.1', '::1']

const unknownCodes = new Set(['ENOTFOUND', 'DNS_ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA'])

export function resolveWith(resolver: Resolver, guard: AddressGuard): Resolve {
  const goodNames: string[] = [] // resolved before, most recent first

  async function lookUp(name: string): Promise<string[] | 'unknown' | 'unanswered'> {
    const late = Promise.withResolvers<'unanswered'>()
    const timer = setTimeout(() => late.resolve('unanswered'), deadlineMs)
    const answer = resolver(name).catch((error: unknown) => {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      return unknownCodes.has(code) ? ('unknown' as const) : ('unanswered' as const)
    })
    const first = await Promise.race([answer, late.promise])
    clearTimeout(timer)
    return first
  }

  /** One unanswered name may be the fault of its owner. When names that resolved before fail too, it is ours. */
  async function isDown(name: string): Promise<boolean> {
    const otherNames = goodNames.filter((good) => good !== name).slice(0, 2)
    const answers = await Promise.all(otherNames.map(lookUp))
    return answers.every((answer) => answer === 'unanswered')
  }

  function remember(name: string): void {
    const nameIndex = goodNames.indexOf(name)
    if (nameIndex !== -1) goodNames.splice(nameIndex, 1)
    goodNames.unshift(name)
    goodNames.length = Math.min(goodNames.length, goodNamesMax)
  }

  /** Decides addresses, and names that mean this machine wherever they are resolved. */
  function resolveLocally(host: string): Resolution | null {
    const addresses = isIP(host) !== 0 ? [host] : isLoopbackName(host) ? loopbackAddresses : null
    if (addresses === null) return null
    const allowed = addresses.filter((address) => guard.refusal(address) === null)
    if (allowed.length > 0) return { kind: 'addresses', addresses: allowed }
    return { kind: 'refused', address: addresses[0]!, reason: guard.refusal(addresses[0]!) ?? '' }
  }

  const resolve = async (host: string): Promise<Resolution> => {
    const resolution = resolveLocally(host)
    if (resolution !== null) return resolution
    const answer = await lookUp(host)
    if (answer === 'unanswered') return { kind: (await isDown(host)) ? 'resolver_down' : 'unanswered' }
    if (answer === 'unknown' || answer.length === 0) return { kind: 'unknown' }
    remember(host)
    for (const address of answer) {
      const reason = guard.refusal(address)
      if (reason !== null) return { kind: 'refused', address, reason }
    }
    return { kind: 'addresses', addresses: answer }
  }
  return Object.assign(resolve, { known: resolveLocally })
}

/** Throws `RefusedUrl` for a host that is forbidden whatever a name server says. */
export function refuseForbidden(resolve: Resolve, host: string): void {
  const resolution = resolve.known(host)
  if (resolution?.kind === 'refused') throw new RefusedUrl(`${host} ${resolution.reason}`)
}

/**
 * The addresses of a resolved host; throws a `SendError` when there are none. A name that resolves to a forbidden
 * address fails with the same message as a name that does not exist, because the names of the internal network must
 * not leak to people who can add endpoints. The log records which of the two it was.
 */
export function requireAddresses(host: string, resolution: Resolution): string[] {
  switch (resolution.kind) {
    case 'addresses':
      return resolution.addresses
    case 'unanswered':
      throw new SendError(remote('name_unanswered', 'no name server answered for the host'))
    case 'resolver_down':
      throw new SendError(local('resolver_down', 'no name server answers'))
    case 'refused':
    case 'unknown': {
      const message = 'the host name does not exist, or it resolves to an address that is not allowed'
      const detail =
        resolution.kind === 'refused'
          ? `${host} resolves to ${resolution.address}, which ${resolution.reason}`
          : `${host} does not exist`
      throw new SendError({ ...remote('url_blocked', message), detail })
    }
  }
}

const neverConnected = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL'])

/** Tries the next address only when the previous one never accepted the connection, so that nothing is sent twice. */
export async function firstReached<T>(
  addresses: string[],
  sendTo: (address: string) => Promise<T>,
): Promise<T> {
  for (const [index, address] of addresses.entries()) {
    try {
      return await sendTo(address)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (index === addresses.length - 1 || !neverConnected.has(code)) throw error
    }
  }
  throw new Error('invariant: a resolved host has an address')
}

/** Reserved for private networks. Clouds serve credentials under some of them. */
const privateSuffixes = ['.internal', '.local', '.localhost', '.localdomain', '.home.arpa']
const metadataNames = ['metadata.goog']

/** `host` as written in a URL. A name without a dot is looked up in the search domain of the resolver. */
export function isPrivateName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return (
    !name.includes('.') ||
    metadataNames.includes(name) ||
    privateSuffixes.some((suffix) => name.endsWith(suffix))
  )
}

/** RFC 6761 reserves `localhost` and everything below it; hosts files of common systems add the other names. */
const loopbackNames = [
  'localhost',
  'localhost.localdomain',
  'localhost4',
  'localhost4.localdomain4',
  'localhost6',
  'localhost6.localdomain6',
  'ip6-localhost',
  'ip6-loopback',
]

function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return name.endsWith('.localhost') || loopbackNames.includes(name)
}

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
  const allGroups = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
  return Uint8Array.from(allGroups.flatMap((group) => [group >> 8, group & 0xff]))
}

interface IpRange {
  base: Ip
  bits: number
}

/** Reads `10.0.0.0/8`, `fc00::/7` or one address; null when it is neither. */
function readRange(text: string): IpRange | null {
  const [address = '', bitsText, ...extraParts] = text.split('/')
  const base = readIp(address)
  if (base === null || extraParts.length > 0) return null
  if (bitsText === undefined) return { base, bits: base.length * 8 }
  const bits = /^\d{1,3}$/.test(bitsText) ? Number(bitsText) : Number.NaN
  return bits <= base.length * 8 ? { base, bits } : null
}

function inRange(ip: Ip, { base, bits }: IpRange): boolean {
  if (ip.length !== base.length) return false
  const whole = bits >> 3
  for (let index = 0; index < whole; index++) if (ip[index] !== base[index]) return false
  const unusedBits = 8 - (bits & 7)
  return unusedBits === 8 || ip[whole]! >> unusedBits === base[whole]! >> unusedBits
}

/** Reads ranges of this file when the first address is checked, because every command loads it. */
function ranges(...texts: string[]): () => IpRange[] {
  let read: IpRange[] | null = null
  return () => (read ??= readRanges(texts))
}

function readRanges(texts: readonly string[]): IpRange[] {
  return texts.map((text) => {
    const range = readRange(text)
    if (range === null) throw new Error(`not an address range: ${text}`)
    return range
  })
}

/** `::ffff:a.b.c.d` is the IPv4 address itself on the wire. */
const mapped = ranges('::ffff:0:0/96')

function unmapped(ip: Ip): Ip {
  return mapped().some((range) => inRange(ip, range)) ? ip.slice(12) : ip
}

/** IPv6 forms that embed an IPv4 address. A gateway may turn each into a connection to that address. */
const carriersAt12 = ranges(
  '::ffff:0:0/96',
  '::/96', // IPv4-compatible
  '64:ff9b::/96', // NAT64
  '64:ff9b:1::/48', // NAT64 of a local network
)
const carriersAt2 = ranges('2002::/16') // 6to4

/** Every IPv4 address embedded in an IPv6 address. */
function embedded(ip: Ip): Ip[] {
  const extractAddresses = (carriers: IpRange[], offset: number) =>
    carriers.filter((range) => inRange(ip, range)).map(() => ip.slice(offset, offset + 4))
  return [...extractAddresses(carriersAt12(), 12), ...extractAddresses(carriersAt2(), 2)]
}

/** IANA's special-purpose registry: nothing here is a receiver on the public Internet. */
const special4 = ranges(
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
)

/** No IPv6 address outside 2000::/3 is public; these ranges inside it are not public either. */
const global6 = ranges('2000::/3')
const special6 = ranges('2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20')

/** Addresses where clouds serve credentials. No option allows them. */
const metadata = ranges(
  '169.254.169.254', // most clouds
  '169.254.170.2', // container credentials
  '169.254.170.23',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
)

interface AddressGuard {
  /** Why deliveries may not go to this address, as a predicate ("is not …"); null when they may. */
  refusal(address: string): string | null
}

/** `allow` lists CIDR ranges or addresses; throws for an invalid one. */
export function addressGuard(allow: readonly string[]): AddressGuard {
  const allowed = readRanges(allow)
  const isInRanges = (ip: Ip, list: IpRange[]) => list.some((range) => inRange(ip, range))
  return {
    refusal(address) {
      const read = readIp(address)
      if (read === null) return 'is not an IP address'
      const ip = unmapped(read)
      if ([ip, ...embedded(ip)].some((candidateIp) => isInRanges(candidateIp, metadata())))
        return 'is a cloud metadata address'
      if (isInRanges(ip, allowed)) return null
      const isPublic =
        ip.length === 4
          ? !isInRanges(ip, special4())
          : isInRanges(ip, global6()) && !isInRanges(ip, special6())
      return isPublic ? null : 'is not a public address'
    },
  }
}
