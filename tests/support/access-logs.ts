/** Access logs for tests: their lines, and an import into a store in memory. */
import { expect } from 'bun:test'
import type { AccessLines } from '../../db/contract/store.ts'
import type { AccessOptions } from '../../server/access/agent-events.ts'
import { bundledEvidence } from '../../server/evidence/evidence.ts'
import { importRun, planLogs, type LogStore } from '../../server/access/import-logs.ts'
import type { Sums } from '../../server/access/import-sums.ts'

export const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
export const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

interface Request {
  second?: number
  address?: string
  path?: string
  status?: number
  referrer?: string
  userAgent?: string
}

/** A line of a combined log, of GPTBot unless the user agent is another. */
export function line(request: Request = {}): string {
  const {
    second = 0,
    address = '203.0.113.9',
    path = '/',
    status = 200,
    referrer = '-',
    userAgent = gptBot,
  } = request
  const time = new Date(Date.UTC(2026, 10, 23) + second * 1_000).toISOString()
  const clock = `23/Nov/2026:${time.slice(11, 19)} +0000`
  return `${address} - - [${clock}] "GET ${path} HTTP/1.1" ${status} 512 "${referrer}" "${userAgent}"\n`
}

export const plainOptions: AccessOptions = {
  siteId: 'shop',
  keepQuery: [],
  keepAddresses: false,
  trustedProxies: [],
  evidence: (await bundledEvidence()).evidence(),
  evidenceMaxAgeDays: 180,
  observedBy: 'appliance',
}

/** An event as it was stored. */
export interface AccessEvent {
  id: string
  [field: string]: unknown
}

export interface Imported {
  sums: Sums
  events: AccessEvent[]
  problems: { path: string; message: string }[]
  skipped: { path: string; message: string }[]
}

/** A store in memory: it dedupes by id, and has the position of each log. */
export interface Memory {
  ids: Set<string>
  positions: Map<string, { position: number; tail: string }>
  events: AccessEvent[]
  lines: AccessLines[] // that were stored
}

export const newMemory = (): Memory => ({ ids: new Set(), positions: new Map(), events: [], lines: [] })

export function storeIn({ ids, positions, events, lines }: Memory): LogStore {
  return {
    find: async (source) => ({ name: source, secret: null, known: positions.get(source) ?? null }),
    async append(batch, access) {
      const { position, tail } = positions.get(access.source) ?? { position: 0, tail: '' }
      const answer = { position, tail, stored: 0, deduped: 0, rejected: 0, issues: [] }
      const isRequest = (index: number): boolean => access.requests[index] !== null
      const requests = batch.filter((_, index) => isRequest(index)).length
      const { sums } = access
      expect(access.requests).toHaveLength(batch.length)
      expect(requests + sums.people + sums.excluded + sums.bad).toBe(sums.lines)
      if (access.to <= position) return { ...answer, state: 'known', deduped: requests }
      if (access.from !== position) return { ...answer, state: 'behind' }
      batch.forEach((event, index) => {
        if (isRequest(index)) answer[ids.has(event.id) ? 'deduped' : 'stored']++
        if (!ids.has(event.id)) events.push(JSON.parse(event.json) as AccessEvent)
        ids.add(event.id)
      })
      positions.set(access.source, { position: access.to, tail: access.tail })
      lines.push(access)
      return { ...answer, state: 'stored', position: access.to, tail: access.tail }
    },
  }
}

export async function importLogs(
  paths: string[],
  options: Partial<AccessOptions> = {},
  memory = newMemory(),
): Promise<Imported> {
  const plan = await planLogs(paths, 'auto')
  const countBefore = memory.events.length
  const run = importRun({ ...plainOptions, ...options }, storeIn(memory))
  const problems = [...plan.problems]
  for (const planned of plan.logs) {
    const problem = await run.read(planned)
    if (problem !== null) problems.push(problem)
  }
  const { lines, stored, deduped, people, excluded, bad } = run.sums
  expect(stored + deduped + people + excluded + bad).toBe(lines)
  const events = memory.events.slice(countBefore)
  return { sums: run.sums, events, problems, skipped: plan.skipped }
}

export async function failure(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'it succeeded',
    (error: Error) => error.message,
  )
}
