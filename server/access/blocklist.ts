/** Decides which agents a blocklist refuses: all that were chosen, and those that claim a name from a wrong address. */
import { operators, reportedName, type Purpose } from '../../sdk/agents/agent-list.ts'
import { rareSearchEngines } from '../../sdk/agents/rare-search-engines.ts'
import type { AddressList, EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { UsageError } from '../errors.ts'
import { nearest } from '../text/text.ts'

export interface KnownAgent {
  vendor: string
  name: string
  purpose: Purpose
  /** Texts in its user agents. One that ends in `/` or `-` may be followed by anything. */
  texts: string[]
}

export interface BlockChoice {
  purposes: string[]
  agents: string[]
  vendors: string[]
  /** Refuses every agent that comes from other addresses than its operator publishes. */
  unverified: boolean
}

/** What was stored of an agent in the period. Times are whole hours. */
export interface AgentTraffic {
  requests: number
  firstMs: number | null
  lastMs: number | null
}

export interface BlockedAgent extends KnownAgent, AgentTraffic {
  /** The choice that it fits. */
  why: string
}

/** Agents of one operator that are refused from any other address than those of its lists. */
export interface OutsideRule {
  vendor: string
  agents: BlockedAgent[]
  /** Other agents of the operator, whose user agents may have one of these names too: the longest name counts. */
  except: KnownAgent[]
  lists: AddressList[]
  /** Of all lists, each once, in a fixed order. */
  networks: string[]
}

export interface Blocklist {
  /** Refused wherever they come from. */
  everywhere: BlockedAgent[]
  outside: OutsideRule[]
  /** Lists that are too old to call an address wrong. */
  old: AddressList[]
}

/** Every known agent once, by vendor and name. */
export function knownAgents(): KnownAgent[] {
  const agents = new Map<string, KnownAgent>()
  for (const { vendor, agents: entries } of [...operators, ...rareSearchEngines]) {
    for (const [entry, purpose] of Object.entries(entries)) {
      const name = reportedName(entry)
      const key = `${vendor}\n${name}`
      const agent = agents.get(key) ?? { vendor, name, purpose, texts: [] }
      agent.texts.push(entry.replace(/=.*/, ''))
      agents.set(key, agent)
    }
  }
  return [...agents.values()]
}

/**
 * The agents of a choice, by name. `unverified` refuses exactly the requests that the judge calls contradicted: agents
 * whose operator publishes addresses for them, from a public address that is on none of the operator's lists.
 */
export function blocklistOf(
  choice: BlockChoice,
  { lists }: Pick<EvidencePack, 'lists'>,
  oldBefore: string, // a day: lists that were read before are old
  trafficOf: (agent: KnownAgent) => AgentTraffic,
): Blocklist {
  requireKnown(choice)
  const everywhere: BlockedAgent[] = []
  const outside = new Map<string, OutsideRule>()
  const old = new Set<AddressList>()
  for (const agent of knownAgents().toSorted(byName)) {
    const reason = chosenBecause(choice, agent)
    if (reason !== null) {
      everywhere.push({ ...agent, why: reason, ...trafficOf(agent) })
      continue
    }
    const agentLists = choice.unverified ? listsOf(agent, lists) : []
    const oldOnes = agentLists.filter(({ seen: seenDay }) => seenDay < oldBefore)
    for (const list of oldOnes) old.add(list)
    if (agentLists.length === 0 || oldOnes.length > 0) continue
    const rule = outside.get(agent.vendor) ?? outsideRule(agent.vendor, lists)
    rule.agents.push({ ...agent, why: '--unverified', ...trafficOf(agent) })
    outside.set(agent.vendor, rule)
  }
  const rules = [...outside.values()].toSorted(byVendor)
  return { everywhere, outside: rules.map(withExceptions), old: [...old] }
}

function withExceptions(rule: OutsideRule): OutsideRule {
  const shortest = Math.min(...rule.agents.flatMap(({ texts }) => texts.map(({ length }) => length)))
  const names = new Set(rule.agents.map(({ name }) => name))
  const except = knownAgents().filter(
    ({ vendor, name, texts }) =>
      vendor === rule.vendor && !names.has(name) && texts.some(({ length }) => length >= shortest),
  )
  return { ...rule, except: except.toSorted(byName) }
}

function outsideRule(vendor: string, lists: AddressList[]): OutsideRule {
  const vendorLists = lists.filter(({ operator }) => isSame(operator, vendor))
  return {
    vendor,
    agents: [],
    except: [],
    lists: vendorLists,
    networks: [...new Set(vendorLists.flatMap(({ networks }) => networks))].sort(),
  }
}

const order = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)
const byName = (left: KnownAgent, right: KnownAgent): number =>
  order(left.name.toLowerCase(), right.name.toLowerCase()) || order(left.vendor, right.vendor)
const byVendor = (left: OutsideRule, right: OutsideRule): number => order(left.vendor, right.vendor)

/** The choice that the agent fits, or null. */
function chosenBecause({ purposes, agents, vendors }: BlockChoice, agent: KnownAgent): string | null {
  if (agents.some((name) => isSame(name, agent.name))) return `--agent ${agent.name}`
  if (vendors.some((vendor) => isSame(vendor, agent.vendor))) return `--vendor ${agent.vendor}`
  return purposes.includes(agent.purpose) ? `--purpose ${agent.purpose}` : null
}

const isSame = (left: string, right: string): boolean => left.toLowerCase() === right.toLowerCase()

/** The lists for an agent; none if people's own devices send it, too, because its requests come from anywhere. */
function listsOf({ vendor, name }: KnownAgent, lists: AddressList[]): AddressList[] {
  const kindOf = ({ products }: AddressList) =>
    Object.entries(products).find(([product]) => isSame(product, name))?.[1] ?? products['*']
  const agentLists = lists.filter((list) => isSame(list.operator, vendor) && kindOf(list) !== undefined)
  return agentLists.some((list) => kindOf(list) === 'user') ? [] : agentLists
}

function requireKnown({ purposes, agents, vendors, unverified }: BlockChoice): void {
  if (purposes.length + agents.length + vendors.length === 0 && !unverified)
    throw new UsageError(
      'choose what to block: --purpose, --agent, --vendor or --unverified',
      'sightglass export blocklist --format nginx --purpose training',
    )
  const agentList = knownAgents()
  const check = (option: string, values: string[], names: string[]): void => {
    for (const value of values) {
      if (names.some((name) => isSame(name, value))) continue
      const near = nearest(value, names)
      throw new UsageError(
        `${option} "${value}" is not known`,
        near === null ? 'sightglass export blocklist --help' : `did you mean ${near}?`,
      )
    }
  }
  check(
    '--agent',
    agents,
    agentList.map(({ name }) => name),
  )
  check(
    '--vendor',
    vendors,
    agentList.map(({ vendor }) => vendor),
  )
}
