/** Judges whether an agent is who it claims to be, from what its operator publishes. Pure: no clock, no network. */
import { networkOf, type EvidencePack, type ProductKind, type Products } from './evidence-pack.ts'
import {
  createNetworkTable,
  networksWith,
  parseAddress,
  type Network,
  type NetworkTable,
} from './networks.ts'

/**
 * - `verified`: a signature, a published address list or forward-confirmed DNS proves the operator.
 * - `consistent`: nothing contradicts the claim, but nothing proves it.
 * - `contradicted`: the operator publishes where this agent comes from, and the request comes from elsewhere.
 * - `unverifiable`: the claim cannot be checked.
 * - `unknown`: no known agent is claimed.
 */
export type Verdict = 'verified' | 'consistent' | 'contradicted' | 'unverifiable' | 'unknown'

/** What a verdict rests on. */
export interface JudgedEvidence {
  method: 'signature' | 'address' | 'dns'
  list?: string
  listDate?: string // the day on which the operator published the list, or the host names were collected
  /** How many networks the lists have. Only where the address is in none of them. */
  networks?: number
  keyId?: string
  /** Why an address outside of the lists does not contradict the claim, or why a signature does not count. */
  reason?: 'user-triggered' | 'old-list' | SignatureProblem
}

/** Why a signature that a sender reported does not count (`observed-signature.ts`). */
export type SignatureProblem = 'wrong-host' | 'expired' | 'replayed' | 'unknown-key' | 'invalid'

export interface Judgment {
  verdict: Verdict
  evidence?: JudgedEvidence
}

/** The agent that a request names, as `detectAgent` returns it. */
export interface Claim {
  vendor: string
  name: string
}

export interface Proof {
  /** The sender, behind trusted proxies the client. */
  address?: string | null | undefined
  /** Host names of the address that resolve back to it. Undefined when they were not looked up. */
  hostNames?: readonly string[] | undefined
  /** The result of `verifySignature`. */
  signature?: { state: 'valid' | 'invalid' | 'none'; operator?: string; keyId?: string } | undefined
}

export interface JudgeOptions {
  /** The time of the request. */
  atMs: number
  /** Lists that were last seen longer before the request, or after it, contradict nothing. Default: 180. */
  maxAgeDays?: number | undefined
}

export const maxAgeDaysDefault = 180

/** `agent.trust` of an event whose claim was judged (contract §12). */
export function trustOf(verdict: Verdict): 'verified' | 'declared' | 'detected' {
  if (verdict === 'verified') return 'verified'
  return verdict === 'consistent' || verdict === 'unverifiable' ? 'declared' : 'detected'
}

const dayMs = 24 * 3_600_000

interface ListFacts {
  name: string
  date: string
  seenMs: number
  products: ReadonlyMap<string, ProductKind> // lower case
  /** All its products are fetches that people trigger. */
  isForUsers: boolean
}

interface List extends ListFacts {
  firstNetwork: number // its number in the table
  networks: number
}

interface HostList extends ListFacts {
  pattern: RegExp
}

interface Operator {
  lists: List[]
  hosts: HostList[]
}

/** What is published about a claim. */
interface Published {
  operator: Operator
  product: string // lower case
  kind: ProductKind | undefined // undefined: nothing is published about the product
  /** Of the product. */
  lists: readonly List[]
  hosts: readonly HostList[]
  networks: number
}

/** A pack, prepared for judging. */
export interface Evidence {
  operators: ReadonlyMap<string, Operator>
  /** By vendor and name: access logs repeat a few claims millions of times. */
  claims: Map<string, Map<string, Published | null>>
  table: NetworkTable
  /** The list of each network of the table. */
  listOf: readonly List[]
  /** The digest of each list, by its address: SHA-256 of its facts, hex. */
  digests: ReadonlyMap<string, string>
}

/** Takes about a second for a million networks. Throws a `PackError` for an invalid network. */
export function openEvidence(pack: EvidencePack): Evidence {
  const operators = new Map<string, Operator>()
  const operatorOf = (name: string): Operator => {
    const operator = operators.get(name.toLowerCase()) ?? { lists: [], hosts: [] }
    operators.set(name.toLowerCase(), operator)
    return operator
  }
  const listOf: List[] = []
  const networks: Network[] = []
  for (const entry of pack.lists) {
    const size = { firstNetwork: networks.length, networks: entry.networks.length }
    const list = { ...factsOf(entry, entry.published), ...size }
    operatorOf(entry.operator).lists.push(list)
    for (const network of entry.networks) {
      networks.push(networkOf(network, entry.list))
      listOf.push(list)
    }
  }
  for (const entry of pack.hosts) {
    const pattern = hostPattern(entry.hostNames)
    operatorOf(entry.operator).hosts.push({ ...factsOf(entry, entry.seen), pattern })
  }
  const digests = new Map([...pack.lists, ...pack.hosts].map(({ list, digest }) => [list, digest]))
  return { operators, claims: new Map(), table: createNetworkTable(networks), listOf, digests }
}

interface ListEntry {
  list: string
  products: Products
  seen: string
}

function factsOf({ list, products, seen: seenDay }: ListEntry, date: string): ListFacts {
  const byName = new Map(Object.entries(products).map(([name, kind]) => [name.toLowerCase(), kind]))
  return {
    name: list,
    date,
    seenMs: Date.parse(seenDay),
    products: byName,
    isForUsers: [...byName.values()].every((kind) => kind === 'user'),
  }
}

/** Matches a host name in lower case. The parts cannot overlap, so that no name takes long. */
function hostPattern(hostNames: readonly string[]): RegExp {
  const sources = hostNames.map((name) => {
    const isBelow = name.startsWith('*.')
    const baseName = isBelow ? name.slice(2) : name
    const source = baseName.replaceAll('.', '\\.').replaceAll('*', '[a-z0-9]+')
    return isBelow ? `(?:[a-z0-9_-]+\\.)+${source}` : source
  })
  return new RegExp(`^(?:${sources.join('|')})$`)
}

const kindOf = ({ products }: { products: List['products'] }, product: string): ProductKind | undefined =>
  products.get(product) ?? products.get('*')

/** The verdict on a claim. Never throws. */
export function judge(
  claim: Claim | null,
  { address, hostNames, signature }: Proof,
  evidence: Evidence,
  { atMs, maxAgeDays = maxAgeDaysDefault }: JudgeOptions,
): Judgment {
  if (signature?.state === 'valid' && signature.operator !== undefined)
    return judgeSignature(claim, signature.operator, signature.keyId)
  if (claim === null) return { verdict: 'unknown' }
  const published = publishedAbout(claim, evidence)
  if (published === null) return { verdict: 'unverifiable' }
  const { kind, lists, hosts, networks } = published
  const isPublic = typeof address === 'string' && isPublicAddress(address, words)
  const list = isPublic ? bestList(evidence, published, words) : null
  const byAddress = list && ({ method: 'address', list: list.name, listDate: list.date } as const)
  // Anybody can have a fetcher of the operator request a page, but only under the fetcher's own name.
  if (byAddress !== null && !(list!.isForUsers && kind !== 'user'))
    return { verdict: 'verified', evidence: byAddress }
  const host = hostNames === undefined ? undefined : matchingHost(hosts, hostNames)
  if (host !== undefined)
    return { verdict: 'verified', evidence: { method: 'dns', list: host.name, listDate: host.date } }
  if (byAddress !== null) return { verdict: 'consistent', evidence: byAddress }
  const ages = { atMs, maxAgeMs: maxAgeDays * dayMs }
  if (isPublic && lists.length > 0) return judgeOutside(lists, kind, ages, networks)
  return hostNames === undefined ? { verdict: 'unverifiable' } : judgeOutside(hosts, kind, ages)
}

/** Whether host names could prove a claim that the address does not, because the operator publishes such names. */
export function needsHostNames(claim: Claim, address: string, evidence: Evidence): boolean {
  const published = publishedAbout(claim, evidence)
  if (published === null || published.hosts.length === 0 || !isPublicAddress(address, words)) return false
  const list = bestList(evidence, published, words)
  return list === null || (list.isForUsers && published.kind !== 'user')
}

const words = new Uint32Array(4) // of the address being judged
const claimsMax = 10_000 // vendors, and names of each: `detectAgent` has a few hundred

/** Null when the operator publishes nothing. */
function publishedAbout({ vendor, name }: Claim, { operators, claims }: Evidence): Published | null {
  let names = claims.get(vendor)
  const cachedPublication = names?.get(name)
  if (cachedPublication !== undefined) return cachedPublication
  if (claims.size >= claimsMax) claims.clear()
  if (names === undefined || names.size >= claimsMax) claims.set(vendor, (names = new Map()))
  const operator = operators.get(vendor.toLowerCase())
  const publication = operator === undefined ? null : publishedBy(operator, name.toLowerCase())
  names.set(name, publication)
  return publication
}

function publishedBy(operator: Operator, product: string): Published {
  const isOwn = (list: ListFacts): boolean => kindOf(list, product) !== undefined
  const lists = operator.lists.filter(isOwn)
  const hosts = operator.hosts.filter(isOwn)
  const [first] = [...lists, ...hosts]
  const networks = lists.reduce((sum, list) => sum + list.networks, 0)
  return { operator, product, kind: first && kindOf(first, product), lists, hosts, networks }
}

/**
 * A key in a directory that the pack pins belongs to its operator alone (Web Bot Auth: the directory is at the
 * operator's own address). So the signature proves its operator, and a claim to be another one is false.
 */
function judgeSignature(claim: Claim | null, operator: string, keyId: string | undefined): Judgment {
  const isClaimed = claim === null || claim.vendor.toLowerCase() === operator.toLowerCase()
  const evidence: JudgedEvidence = { method: 'signature', ...(keyId !== undefined && { keyId }) }
  return { verdict: isClaimed ? 'verified' : 'contradicted', evidence }
}

/** The operator's list with this address: the product's own, else one of crawlers, else any; null without one. */
function bestList(
  { table, listOf }: Evidence,
  { operator, lists }: Published,
  address: Uint32Array,
): List | null {
  let best: List | null = null
  for (let network = table.smallest(address); network >= 0; network = table.around[network]!) {
    const list = listOf[network]!
    if (!operator.lists.includes(list)) continue
    if (lists.includes(list)) return list
    if (best === null || (best.isForUsers && !list.isForUsers)) best = list
  }
  return best
}

/** Names resolve back to the address only for the owner of the domain; operators document this check themselves. */
function matchingHost(hosts: readonly HostList[], hostNames: readonly string[]): HostList | undefined {
  const names = hostNames
    .filter(({ length }) => length <= 254)
    .map((name) => name.toLowerCase().replace(/\.$/, ''))
  return hosts.find(({ pattern }) => names.some((name) => pattern.test(name)))
}

/**
 * The operator publishes where the agent comes from, and this is elsewhere. Contract §12: fetches that a person
 * triggers may come from anywhere (OpenAI, Google and Perplexity say so of theirs), and an operator may have added
 * networks since an old list. Without lists the claim cannot be checked.
 */
function judgeOutside(
  lists: readonly ListFacts[],
  kind: ProductKind | undefined,
  { atMs, maxAgeMs }: { atMs: number; maxAgeMs: number },
  networks?: number,
): Judgment {
  const [first] = lists
  if (first === undefined) return { verdict: 'unverifiable' }
  const evidence: JudgedEvidence = {
    method: networks === undefined ? 'dns' : 'address',
    list: first.name,
    listDate: first.date,
    ...(networks !== undefined && { networks }),
  }
  if (kind === 'user') return { verdict: 'unverifiable', evidence: { ...evidence, reason: 'user-triggered' } }
  if (lists.some(({ seenMs }) => Math.abs(atMs - seenMs) > maxAgeMs))
    return { verdict: 'unverifiable', evidence: { ...evidence, reason: 'old-list' } }
  return { verdict: 'contradicted', evidence }
}

/**
 * Parses an address, and says whether it can be the sender's on the internet. Requests from private networks come
 * through a proxy or from the site itself, so they say nothing about the agent. RFC 1918, 6598, 3927, 4193, 4291; not
 * the networks for documentation.
 */
export function isPublicAddress(address: string, words: Uint32Array): boolean {
  if (!parseAddress(address, words)) return false
  const a = words[0]!
  const b = words[1]!
  const c = words[2]!
  const d = words[3]!
  if (a !== 0 || b !== 0) return a >>> 25 !== 0x7e && a >>> 22 !== 0x3fa // fc00::/7, fe80::/10
  if (c !== 0xffff) return false // ::, ::1 and other special addresses
  const first = d >>> 24
  if (first === 0 || first === 10 || first === 127 || first >= 224) return false
  const second = d >>> 16
  if (second === 0xc0a8 || second === 0xa9fe) return false
  return d >>> 20 !== 0xac1 && d >>> 22 !== 0x191 // 172.16/12, 100.64/10
}

/** The lists that contain an address, each with the index of its network there; null: not an address. */
export function listsWith(evidence: Evidence, address: string): { list: string; index: number }[] | null {
  const networks = networksWith(evidence.table, address)
  if (networks === null) return null
  return networks.map((network) => {
    const { name, firstNetwork } = evidence.listOf[network]!
    return { list: name, index: network - firstNetwork }
  })
}
