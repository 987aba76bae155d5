/** Agents: vendor, name and purpose together, stored as one code that rollups count. */
import type { Database } from 'bun:sqlite'
import type { AgentCounts, AgentNames, AgentsQuery, CountedName } from '../../../contract/store.ts'
import type { Sliced } from '../../threads/slices.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { agentField, isHash, member } from './fields.ts'
import { fieldAndCode, otherCode } from '../rollups/counts.ts'
import { foldedRows, hourRange, siteCodes, typeCodes } from '../rollups/range.ts'
import { termTexts } from './fields.ts'

/*
 * The code is that of a term "vendor name purpose": the three codes, 0 for a missing one, `beyond` for one past its
 * limit. These terms have a limit too, so hostile texts cannot create unlimited combinations.
 */
const beyond = '*'

interface Agent {
  vendor: number // otherCode: past its limit
  name: number
  purpose: number
}

export function agentText(vendor: number, name: number, purpose: number): string {
  const part = (code: number): string => (isHash(code) ? beyond : String(code))
  return `${part(vendor)} ${part(name)} ${part(purpose)}`
}

/** The agents of an organization by code. */
export function agentsByCode(db: Database, org: number): Map<number, Agent> {
  const agents = new Map<number, Agent>()
  for (const [code, text] of termTexts(db, org, agentField)) {
    const [vendor, name, purpose] = text
      .split(' ')
      .map((part) => (part === beyond ? otherCode : Number(part))) as [number, number, number]
    agents.set(code, { vendor, name, purpose })
  }
  return agents
}

export function* readAgents(db: Database, org: number, query: AgentsQuery): Sliced<AgentCounts> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const asked = {
    ...{ org, index: agentField },
    sites: siteCodes(db, org, query.siteIds),
    types: typeCodes(db, org, query.types),
  }
  const outcomes =
    query.outcome === undefined ? null : codesOf(termTexts(db, org, member.outcome), query.outcome)
  const sums = new Map<number, number>() // by agent
  const add = (code: number, outcome: number, events: number): void => {
    if (outcomes === null || outcomes.has(outcome)) sums.set(code, (sums.get(code) ?? 0) + events)
  }

  yield* foldedRows(db, 'code, outcome, live + expired', asked, range, ([code, outcome, events]) =>
    add(code!, outcome!, events!),
  )
  const unfolded = yield* countUnfolded(db, org, [agentField])
  for (const { hour, site, type, outcome, values } of unfolded.groups()) {
    if (hour < range.from || hour >= range.until) continue
    if (asked.sites?.has(site) === false || asked.types?.has(type) === false) continue
    for (const [key, events] of values) {
      const [index, code] = fieldAndCode(key)
      if (index === agentField) add(code, outcome, events)
    }
  }
  return { rows: namedRows(db, org, sums) }
}

function codesOf(texts: ReadonlyMap<number, string>, wanted: string): Set<number> {
  return new Set([...texts].filter(([, text]) => text === wanted).map(([code]) => code))
}

/** Most frequent first. */
function namedRows(db: Database, org: number, sums: ReadonlyMap<number, number>): AgentCounts['rows'] {
  const agentOf = agentNames(db, org)
  const rows = Array.from(sums, ([code, count]) => ({ ...agentOf(code), count }))
  return rows.sort((a, b) => b.count - a.count)
}

/** The names of an organization's agents, by code. */
export function agentNames(db: Database, org: number): (code: number) => AgentNames {
  const agents = agentsByCode(db, org)
  const texts = {
    vendor: termTexts(db, org, member.vendor),
    name: termTexts(db, org, member.name),
    purpose: termTexts(db, org, member.purpose),
  }
  const others: Agent = { vendor: otherCode, name: otherCode, purpose: otherCode }
  return (code) => {
    const agent = agents.get(code) ?? others
    const named = (field: keyof Agent): CountedName => {
      if (agent[field] === 0) return 'missing'
      return agent[field] === otherCode ? 'other' : { name: texts[field].get(agent[field]) ?? '' }
    }
    return { vendor: named('vendor'), name: named('name'), purpose: named('purpose') }
  }
}
