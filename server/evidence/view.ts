/** What the command line and Settings show of the evidence pack in force. */
import type { EvidencePack, Origin, Products } from '../../sdk/judge/evidence-pack.ts'
import { networksIn, type EvidenceInForce } from './evidence.ts'
import { dayMs } from '../../db/contract/units.ts'

/** One list of the pack, without its networks or names. */
export interface ListView {
  list: string
  kind: 'networks' | 'host names' | 'keys' | 'robots.txt names'
  operator: string
  products: string[]
  count: number // of networks, names or keys
  published: string | null
  seen: string
  source: string
  digest: string
  old: boolean // seen longer ago than the maximum age, so it contradicts no claim
}

export interface EvidenceView {
  digest: string
  made: string
  origin: EvidenceInForce['origin']
  signed: boolean
  storedBy: string | null
  storedAt: string | null
  problem: string | null
  networks: number
  maxAgeDays: number
  ageDays: number // since the list that was seen longest ago
  lists: ListView[]
}

export function evidenceView(inForce: EvidenceInForce, now: number, maxAgeDays: number): EvidenceView {
  const { pack, digest, origin, signedBy, storedBy, storedAt, problem } = inForce
  const ageOf = (seenDay: string): number => Math.max(0, Math.floor((now - Date.parse(seenDay)) / dayMs))
  const lists = listsOf(pack).map((list) => ({ ...list, old: ageOf(list.seen) > maxAgeDays }))
  return {
    digest,
    made: pack.made,
    origin,
    signed: signedBy !== null,
    storedBy,
    storedAt,
    problem,
    networks: networksIn(pack),
    maxAgeDays,
    ageDays: pack.lists.reduce((maxDays, { seen: seenDay }) => Math.max(maxDays, ageOf(seenDay)), 0),
    lists,
  }
}

function listsOf({ lists, hosts, directories, tokens }: EvidencePack): Omit<ListView, 'old'>[] {
  const names = (products: Products): string[] =>
    Object.keys(products).map((name) => (name === '*' ? 'all' : name))
  const common = ({ operator, seen: seenDay, source, digest }: Origin) => ({
    operator,
    seen: seenDay,
    source,
    digest,
  })
  return [
    ...lists.map((list) => ({
      list: list.list,
      kind: 'networks' as const,
      ...common(list),
      products: names(list.products),
      count: list.networks.length,
      published: list.published,
    })),
    ...hosts.map((host) => ({
      list: host.list,
      kind: 'host names' as const,
      ...common(host),
      products: names(host.products),
      count: host.hostNames.length,
      published: null,
    })),
    ...directories.map((directory) => ({
      list: directory.url,
      kind: 'keys' as const,
      ...common(directory),
      products: [],
      count: directory.keys.length,
      published: null,
    })),
    ...tokens.map((token) => ({
      list: `${token.operator} in robots.txt`,
      kind: 'robots.txt names' as const,
      ...common(token),
      products: token.tokens,
      count: token.tokens.length,
      published: null,
    })),
  ]
}
