/** What an import of access logs counts. */
import type { EventRecord } from '../../db/contract/store.ts'

/** Counts of an import. lines = stored + deduped + people + excluded + bad. */
export interface Sums {
  lines: number
  stored: number
  deduped: number
  people: number
  excluded: number // assets of people, other bots and programs, comments, blank lines
  bad: number
  sessions: number // of agents, that started in these lines
  referrals: number // people whom an assistant sent
  agents: Map<string, AgentCount> // by operator and name
  badLines: { path: string; line: number; message: string }[] // the first 20
}

/** Requests of one agent in the lines that were read, stored or already known. */
export interface AgentCount {
  vendor: string
  name: string
  requests: number
  verified: number
  contradicted: number
}

export const badLinesShown = 20

export function newSums(): Sums {
  return {
    lines: 0,
    stored: 0,
    deduped: 0,
    people: 0,
    excluded: 0,
    bad: 0,
    sessions: 0,
    referrals: 0,
    agents: new Map(),
    badLines: [],
  }
}

export function countAgent({ agents }: Sums, { vendor, name, verdict }: EventRecord): void {
  const key = `${vendor} ${name}`
  let counts = agents.get(key)
  if (counts === undefined) {
    counts = { vendor: vendor ?? '', name: name ?? '', requests: 0, verified: 0, contradicted: 0 }
    agents.set(key, counts)
  }
  counts.requests++
  if (verdict === 'verified' || verdict === 'contradicted') counts[verdict]++
}

export function addBad(sums: Sums, path: string, line: number, message: string): void {
  sums.bad++
  if (sums.badLines.length < badLinesShown) sums.badLines.push({ path, line, message })
}
