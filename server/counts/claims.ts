/** Requests by agents by who they claim to be, with the verdicts: per agent, per page, and those of impostors. */
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import { cutChars } from '../text/text.ts'
import { breakdownRowsMax } from './period-counts.ts'
import { sharedTypes, type CountScope } from './period.ts'
import { foldPages } from './page-patterns.ts'
import { vouchedJudges } from '../../db/contract/provenance.ts'
import type { AgentNames, EventFilter, FilteredCounts, Top } from '../../db/contract/store.ts'
import type {
  AgentRequests,
  AgentResponses,
  DetectClaims,
  DetectResponses,
  Impostor,
  PageRequests,
  RequestCounts,
} from './shapes.ts'

type Rows = FilteredCounts['breakdowns'][number]

const noClaims: DetectClaims = { agents: [], pages: [], impostors: [], complete: true }

/** From the stored events, because hourly counts do not combine agents with verdicts. */
export async function detectClaims(scope: CountScope): Promise<DetectClaims> {
  const { store, orgId, period, rowsMax = breakdownRowsMax } = scope
  const filter = requestFilter(scope)
  if (filter === null) return noClaims
  const types = ['agent.requested']
  const { breakdowns, complete } = await store.events.filteredCounts({
    orgId,
    filter,
    edges: [period.sinceMs, period.untilMs],
    budgetMs: limits.filteredCountMsMax,
    ...(period.filter && { also: period.filter.also }),
    breakdowns: [
      { by: 'agent', and: 'vouched', types },
      { by: 'page', types },
      { by: 'agent', and: 'robots', types },
    ],
  })
  if (!complete) return { ...noClaims, complete }
  const agents = agentsOf(breakdowns[0] ?? [], breakdowns[2] ?? [])
  return {
    agents: agents.slice(0, rowsMax),
    pages: pagesOf(breakdowns[1] ?? []).slice(0, rowsMax),
    impostors: await impostors(scope, filter, agents),
    complete,
  }
}

/** The page's filters among the requests by agents; null if they exclude each other. */
function requestFilter({ period: { filter: chosen, siteIds } }: CountScope): EventFilter | null {
  const types = sharedTypes(['agent.requested'], chosen?.filter.types) ?? []
  if (types.length === 0) return null
  return { ...chosen?.filter, types, ...(siteIds && { siteIds }) }
}

const noRequests = (): RequestCounts => ({ requests: 0, refused: 0, failed: 0 })

function addTo(counts: RequestCounts, { outcome, count }: Rows[number]): void {
  counts.requests += count
  if (outcome === 'blocked') counts.refused += count
  else if (outcome !== 'success') counts.failed += count
}

const mostFirst = (a: RequestCounts, b: RequestCounts): number => b.requests - a.requests

const columns: { readonly [verdict: string]: 'verified' | 'claimed' | 'contradicted' } = {
  verified: 'verified',
  consistent: 'claimed',
  unverifiable: 'claimed',
  contradicted: 'contradicted',
}

function agentsOf(byVerdict: Rows, byRobots: Rows): AgentRequests[] {
  const agents = new Map<string, AgentRequests>()
  const agentOf = ({ value }: Rows[number]): AgentRequests => {
    const { vendor, name } = JSON.parse(value ?? otherKey) as AgentNames
    const key = JSON.stringify([vendor, name])
    const agent = agents.get(key) ?? {
      vendor,
      name,
      verified: 0,
      claimed: 0,
      contradicted: 0,
      disallowed: 0,
      ...noRequests(),
    }
    agents.set(key, agent)
    return agent
  }
  for (const row of byRobots) if (row.and === 'disallowed') agentOf(row).disallowed += row.count
  for (const row of byVerdict) {
    const agent = agentOf(row)
    addTo(agent, row)
    const verdict = row.and ?? ''
    const column = Object.hasOwn(columns, verdict) ? columns[verdict] : undefined
    if (column !== undefined) agent[column] += row.count
  }
  return [...agents.values()].sort(mostFirst)
}

const otherKey = JSON.stringify({ vendor: 'other', name: 'other', purpose: 'other' } satisfies AgentNames)

function pagesOf(rows: Rows): PageRequests[] {
  const pages = new Map<string | null, PageRequests>()
  for (const row of rows) {
    const page = pages.get(row.value) ?? { page: row.value, pages: 1, ...noRequests() }
    pages.set(row.value, page)
    addTo(page, row)
  }
  return foldPages([...pages.values()])
}

/** The newest false claims that are read for the times, the pages and the evidence of impostors. */
const readMax = 5_000
const impostorsMax = 100
const pagesMax = 3

/** Agents with contradicted requests: all of them counted, with what the newest ones asked for. */
async function impostors(
  { store, orgId, period }: CountScope,
  filter: EventFilter,
  agents: readonly AgentRequests[],
): Promise<Impostor[]> {
  const contradictedAgents = agents.filter(({ contradicted }) => contradicted > 0)
  if (contradictedAgents.length === 0) return []
  const { groups } = await store.events.top({
    orgId,
    eventsMax: readMax,
    budgetMs: limits.topMsMax,
    ...(period.filter && { also: period.filter.also }),
    filter: {
      ...filter,
      verdicts: ['contradicted'],
      judges: filter.judges ?? [...vouchedJudges],
      sinceMs: period.sinceMs,
      untilMs: period.untilMs,
    },
    groups: [
      { by: ['vendor', 'name'], max: readMax },
      { by: ['vendor', 'name', 'page'], max: readMax },
      { by: ['vendor', 'name', 'evidence'], max: readMax },
    ],
  })
  const [newest, pages, evidence] = groups.map(byClaim)
  return contradictedAgents
    .toSorted((a, b) => b.contradicted - a.contradicted)
    .slice(0, impostorsMax)
    .map(({ contradicted, ...agent }) => {
      const [vendor, name] = [agent.vendor, agent.name].map((countedName) =>
        typeof countedName === 'string' ? null : countedName.name,
      )
      const key = claimKey([vendor!, name!])
      const last = newest!.get(key)?.[0]
      const proof = evidence!.get(key)?.toSorted((a, b) => b.lastMs - a.lastMs)[0]
      return {
        vendor: vendor!,
        name: name!,
        requests: contradicted,
        lastAt: last === undefined ? null : isoTime(last.lastMs),
        pages: (pages!.get(key) ?? [])
          .flatMap(({ values: [, , page], count }) => (page == null ? [] : [{ name: page, count }]))
          .slice(0, pagesMax),
        evidence: evidenceOf(proof?.values[2] ?? null),
      }
    })
}

type TopRow = Top['groups'][number]['rows'][number]

const claimKey = (values: (string | null)[]): string => JSON.stringify(values.slice(0, 2))

function byClaim({ rows }: Top['groups'][number]): Map<string, TopRow[]> {
  const claims = new Map<string, TopRow[]>()
  for (const row of rows) {
    const key = claimKey(row.values)
    const claimRows = claims.get(key)
    if (claimRows === undefined) claims.set(key, [row])
    else claimRows.push(row)
  }
  return claims
}

const evidenceFields = ['method', 'list', 'listDate', 'listDigest', 'networks', 'keyId', 'reason']
const evidenceCharsMax = 200

/** The fields that a verdict is explained with; evidence of other senders can be anything. */
function evidenceOf(text: string | null): Impostor['evidence'] {
  const value: unknown = text === null ? null : JSON.parse(text)
  if (typeof value !== 'object' || value === null) return null
  return Object.fromEntries(
    evidenceFields.flatMap((name): [string, string | number][] => {
      const field: unknown = Object.hasOwn(value, name) ? (value as { [name: string]: unknown })[name] : null
      if (typeof field === 'string') return [[name, cutChars(field, evidenceCharsMax)]]
      return typeof field === 'number' ? [[name, field]] : []
    }),
  )
}

/** The newest requests whose responses are read, because status and bytes are not columns. */
const responsesMax = 50_000

const statusClasses = [null, 'success', 'success', 'redirect', 'refusal', 'failure'] as const

export async function detectResponses(scope: CountScope): Promise<DetectResponses> {
  const { store, orgId, period, rowsMax = breakdownRowsMax } = scope
  const filter = requestFilter(scope)
  if (filter === null) return { agents: [], looked: 0, complete: true }
  const { groups, events, complete } = await store.events.top({
    orgId,
    eventsMax: responsesMax,
    budgetMs: limits.topMsMax,
    ...(period.filter && { also: period.filter.also }),
    filter: { ...filter, sinceMs: period.sinceMs, untilMs: period.untilMs },
    groups: [{ by: ['vendor', 'name', 'status'], max: responsesMax, sum: 'bytes' }],
  })
  const agents = new Map<string, AgentResponses>()
  for (const { values, count, sum = 0 } of groups[0]!.rows) {
    const [vendor = null, name = null, status = null] = values
    const key = claimKey(values)
    const zeroCounts = { requests: 0, success: 0, redirect: 0, refusal: 0, failure: 0, bytes: 0 }
    const agent = agents.get(key) ?? { vendor, name, ...zeroCounts }
    agents.set(key, agent)
    agent.requests += count
    agent.bytes += sum
    const column = statusClasses[Math.floor(Number(status) / 100)]
    if (column != null) agent[column] += count
  }
  const sorted = [...agents.values()].sort((a, b) => b.requests - a.requests)
  return { agents: sorted.slice(0, rowsMax), looked: events, complete }
}
