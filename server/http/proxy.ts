/** Finds the client of a request behind trusted proxies; forwarding headers of anyone else are ignored. */
import { BlockList, isIP } from 'node:net'

export interface Sender {
  address: string
  secure: boolean
}

/** Built once from the addresses and CIDR ranges of `--trusted-proxy`. */
export function senderReader(trusted: string[]): (peer: string | null, headers: Headers) => Sender {
  const list = new BlockList()
  for (const entry of trusted) {
    const [address = '', bits] = entry.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  const isTrusted = (address: string) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return (peer, headers) => {
    // Only the proxy of this machine can write to the socket, and it has no address.
    const direct = peer === null ? '127.0.0.1' : plain(peer)
    if (peer !== null && (trusted.length === 0 || !isTrusted(direct)))
      return { address: direct, secure: false }
    // From the nearest hop on, the first address that is not a trusted proxy is the client.
    const hops = (headers.get('x-forwarded-for') ?? '').split(',').map((hop) => plain(hop.trim()))
    let address = direct
    for (const hop of hops.reverse()) {
      if (isIP(hop) === 0) break
      address = hop
      if (!isTrusted(hop)) break
    }
    const proto = headers.get('x-forwarded-proto')?.split(',').at(-1)?.trim()
    return { address, secure: proto === 'https' }
  }
}

function plain(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address
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
