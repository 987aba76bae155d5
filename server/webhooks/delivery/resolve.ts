/** Turns a host into addresses that may be dialled: resolved once, and refused whole when any one is forbidden. */
import { promises as dns } from 'node:dns'
import { isIP } from 'node:net'
import type { AddressGuard } from './address-guard.ts'

/** Every address of a name; rejects with a `code` as node:dns does. */
export type Resolver = (name: string) => Promise<string[]>

export const systemResolver: Resolver = async (name) => {
  const found = await dns.lookup(name, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

export type Resolution =
  | { kind: 'addresses'; addresses: string[] }
  | { kind: 'refused'; address: string; why: string }
  | { kind: 'unknown' } // the name server says that there is no such name
  | { kind: 'unanswered' } // no name server answered for this name
  | { kind: 'resolver_down' } // nor for names that it knew before: our own fault, not the receiver's

export interface Resolve {
  (host: string): Promise<Resolution>
  /** The resolution of a host that no name server is asked about; null for every other name. */
  known(host: string): Resolution | null
}

const deadlineMs = 3_000
const goodNamesKept = 8
const loopbacks = ['127.0.0.1', '::1']

const unknownCodes = new Set(['ENOTFOUND', 'DNS_ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA'])

export function resolveWith(resolver: Resolver, guard: AddressGuard): Resolve {
  const goodNames: string[] = [] // most recent first

  async function ask(name: string): Promise<string[] | 'unknown' | 'unanswered'> {
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

  /** One unanswered name may be its owner's fault. When names that worked are unanswered too, it is ours. */
  async function isDown(name: string): Promise<boolean> {
    const others = goodNames.filter((good) => good !== name).slice(0, 2)
    const answers = await Promise.all(others.map(ask))
    return answers.every((answer) => answer === 'unanswered')
  }

  function remember(name: string): void {
    const at = goodNames.indexOf(name)
    if (at !== -1) goodNames.splice(at, 1)
    goodNames.unshift(name)
    goodNames.length = Math.min(goodNames.length, goodNamesKept)
  }

  /** Judges what needs no name server: literals, and names that mean this machine wherever they are resolved. */
  function known(host: string): Resolution | null {
    const addresses = isIP(host) !== 0 ? [host] : isLoopbackName(host) ? loopbacks : null
    if (addresses === null) return null
    const opened = addresses.filter((address) => guard.refusal(address) === null)
    if (opened.length > 0) return { kind: 'addresses', addresses: opened }
    return { kind: 'refused', address: addresses[0]!, why: guard.refusal(addresses[0]!) ?? '' }
  }

  const resolve = async (host: string): Promise<Resolution> => {
    const plain = known(host)
    if (plain !== null) return plain
    const found = await ask(host)
    if (found === 'unanswered') return { kind: (await isDown(host)) ? 'resolver_down' : 'unanswered' }
    if (found === 'unknown' || found.length === 0) return { kind: 'unknown' }
    remember(host)
    for (const address of found) {
      const why = guard.refusal(address)
      if (why !== null) return { kind: 'refused', address, why }
    }
    return { kind: 'addresses', addresses: found }
  }
  return Object.assign(resolve, { known })
}

/** Reserved for private networks, among them those under which clouds answer with credentials. */
const privateEndings = ['.internal', '.local', '.localhost', '.localdomain', '.home.arpa']
const metadataNames = ['metadata.goog']

/** `host` as it stands in a URL. A name of one word is looked up in the own domain of whoever resolves it. */
export function isPrivateName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return (
    !name.includes('.') ||
    metadataNames.includes(name) ||
    privateEndings.some((ending) => name.endsWith(ending))
  )
}

/** RFC 6761 reserves `localhost` and everything below it; hosts files of common systems add the other spellings. */
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

/** Names that mean this machine wherever they are resolved. */
function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return name.endsWith('.localhost') || loopbackNames.includes(name)
}
