/** Which addresses a delivery may reach: public ones, ranges the operator opened, and cloud metadata never. */
import { carried, inRange, readIp, readRange, unmapped, type Ip, type IpRange } from './ip.ts'

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

/** Outside of 2000::/3 nothing of IPv6 is public; these are the exceptions inside. */
const global6 = ranges(['2000::/3'])
const special6 = ranges(['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

/** Where clouds answer with credentials. No option opens these. */
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
  /** Why this address must not be dialled, or null when it may be. Text that is no address is refused. */
  refusal(address: string): string | null
}

/** `allow` are CIDR ranges or addresses, read at start: a wrong one throws. */
export function addressGuard(allow: readonly string[]): AddressGuard {
  const opened = ranges(allow)
  const within = (ip: Ip, list: IpRange[]) => list.some((range) => inRange(ip, range))
  return {
    refusal(address) {
      const read = readIp(address)
      if (read === null) return 'it is not an address'
      const ip = unmapped(read)
      if ([ip, ...carried(ip)].some((each) => within(each, metadata))) return 'it is a cloud metadata address'
      if (within(ip, opened)) return null
      const isPublic = ip.length === 4 ? !within(ip, special4) : within(ip, global6) && !within(ip, special6)
      return isPublic ? null : 'it is not a public address'
    },
  }
}
