/** Resolves a host to the addresses a delivery may connect to: once per attempt, all or none of them allowed. */
import { promises as dns } from 'node:dns'
import { isIP } from 'node:net'
import type { AddressGuard } from '../delivery/address-guard.ts'
import { local, RefusedUrl, remote, SendError } from '../delivery/failure.ts'

/** Every address of a name; rejects with a `code` like node:dns. */
export type Resolver = (name: string) => Promise<string[]>

export const systemResolver: Resolver = async (name) => {
  const found = await dns.lookup(name, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

export type Resolution =
  | { kind: 'addresses'; addresses: string[] }
  | { kind: 'refused'; address: string; reason: string }
  | { kind: 'unknown' } // the name server says that the name does not exist
  | { kind: 'unanswered' } // no name server answered for this name
  | { kind: 'resolver_down' } // nor for names that resolved before: a local failure

export interface Resolve {
  (host: string): Promise<Resolution>
  /** The resolution of a host that needs no name server; null for every other host. */
  known(host: string): Resolution | null
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
    const others = goodNames.filter((good) => good !== name).slice(0, 2)
    const answers = await Promise.all(others.map(lookUp))
    return answers.every((answer) => answer === 'unanswered')
  }

  function remember(name: string): void {
    const at = goodNames.indexOf(name)
    if (at !== -1) goodNames.splice(at, 1)
    goodNames.unshift(name)
    goodNames.length = Math.min(goodNames.length, goodNamesMax)
  }

  /** Decides addresses, and names that mean this machine wherever they are resolved. */
  function known(host: string): Resolution | null {
    const addresses = isIP(host) !== 0 ? [host] : isLoopbackName(host) ? loopbackAddresses : null
    if (addresses === null) return null
    const allowed = addresses.filter((address) => guard.refusal(address) === null)
    if (allowed.length > 0) return { kind: 'addresses', addresses: allowed }
    return { kind: 'refused', address: addresses[0]!, reason: guard.refusal(addresses[0]!) ?? '' }
  }

  const resolve = async (host: string): Promise<Resolution> => {
    const resolution = known(host)
    if (resolution !== null) return resolution
    const found = await lookUp(host)
    if (found === 'unanswered') return { kind: (await isDown(host)) ? 'resolver_down' : 'unanswered' }
    if (found === 'unknown' || found.length === 0) return { kind: 'unknown' }
    remember(host)
    for (const address of found) {
      const reason = guard.refusal(address)
      if (reason !== null) return { kind: 'refused', address, reason }
    }
    return { kind: 'addresses', addresses: found }
  }
  return Object.assign(resolve, { known })
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
