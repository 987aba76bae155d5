/** Judges the stored requests by agents by a robots.txt that is not in force yet, from columns, newest first. */
import type { RobotsTest, RobotsTestQuery } from '../../../contract/robots.ts'
import { parseRobots, robotsJudge, type JudgeRobots } from '../../../rules/robots.ts'
import { robotsTokens } from '../../../rules/robots-families.ts'
import type { Database } from '../../database.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { type OpenBlock, readAhead, readBlock } from '../blocks/block-table.ts'
import { isHash, member, termTexts } from '../blocks/fields.ts'
import { filterClauses } from '../index/filter-codes.ts'
import { boundsOf, newestFirst, newestZones, overlaps } from './page.ts'
import { partsOf } from '../index/walk.ts'

interface Agent {
  vendor: string | null
  name: string
  requests: number
  disallowed: number
  wasDisallowed: number
  pages: Map<string, { count: number; line: number }>
}

/** Pages counted per agent; examples of an agent with more are the most frequent of its newest ones. */
const pagesCountedMax = 2_000
const verdictsMax = 100_000

export function* readRobotsTest(
  db: Database,
  org: number,
  hashSeed: number,
  query: RobotsTestQuery,
): Sliced<RobotsTest> {
  const { siteId, sinceMs, untilMs, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const filter = { types: ['agent.requested'], siteIds: [siteId], sinceMs, untilMs }
  const clauses = filterClauses(db, org, hashSeed, filter)
  const count = counter(db, org, robotsJudge(parseRobots(query.text)))
  const bounds = boundsOf({ filter, before: null }, Number.MAX_SAFE_INTEGER)
  const parts = partsOf(db, org, clauses, 0).filter((part) => overlaps(part, bounds))
  let exactSinceMs = sinceMs
  search: for (const [index, part] of parts.sort(newestFirst).entries()) {
    if (isSliceOver()) yield
    for (const zone of readAhead(db, newestZones(part, bounds))) {
      if (performance.now() > endMs) {
        const newestLeft = Math.max(zone.maxAt, parts[index + 1]?.maxAt ?? zone.maxAt)
        exactSinceMs = Math.min(newestLeft + 1, untilMs)
        break search
      }
      const block = readBlock(db, zone, clauses)
      for (let row = 0; row < (block?.rows ?? 0); row++) {
        const atMs = block!.at(row)
        if (atMs < sinceMs || atMs >= untilMs || !part.mayMatch(zone, row) || !block!.matches(row, clauses))
          continue
        if (isSliceOver()) yield // judging a new page may take a while
        count.add(block!, row)
      }
    }
  }
  return { ...count.result(query), complete: exactSinceMs === sinceMs, exactSinceMs }
}

/** The result for an organization without events. */
export function noRobotsTest({ sinceMs }: RobotsTestQuery): RobotsTest {
  const emptyResult = { requests: 0, disallowed: 0, wasDisallowed: 0, agents: [] }
  return { ...emptyResult, complete: true, exactSinceMs: sinceMs }
}

/** Counts rows by agent. Each page is judged once per agent, as long as the verdicts fit. */
function counter(db: Database, org: number, judge: JudgeRobots) {
  const agents = new Map<string, Agent>()
  let verdicts = new Map<string, number | null>()
  const text = textReader(db, org)
  const disallowedCode = [...termTexts(db, org, member.robots)].find(
    ([, value]) => value === 'disallowed',
  )?.[0]

  /** The line that disallows the page, or null. */
  function lineOf(name: string, page: string): number | null {
    const key = `${name}\n${page}`
    const cachedLine = verdicts.get(key)
    if (cachedLine !== undefined) return cachedLine
    if (verdicts.size >= verdictsMax) verdicts = new Map()
    const { allowed, line } = judge(robotsTokens(name), page)
    const disallowLine = allowed ? null : line
    verdicts.set(key, disallowLine)
    return disallowLine
  }

  return {
    add(block: OpenBlock, row: number): void {
      const name = text(block, row, member.name) ?? ''
      let agent = agents.get(name)
      if (agent === undefined) {
        const sums = { requests: 0, disallowed: 0, wasDisallowed: 0 }
        agent = { vendor: text(block, row, member.vendor), name, ...sums, pages: new Map() }
        agents.set(name, agent)
      }
      agent.requests++
      const robots = block.code(member.robots, row)
      if (robots !== 0 && robots === disallowedCode) agent.wasDisallowed++
      const page = text(block, row, member.page)
      const line = page === null || !page.startsWith('/') ? null : lineOf(name, page)
      if (line === null) return
      agent.disallowed++
      const knownPage = agent.pages.get(page!)
      if (knownPage !== undefined) knownPage.count++
      else if (agent.pages.size < pagesCountedMax) agent.pages.set(page!, { count: 1, line })
    },
    result({ agentsMax, pagesMax }: RobotsTestQuery) {
      const sum = { requests: 0, disallowed: 0, wasDisallowed: 0 }
      for (const { requests, disallowed, wasDisallowed } of agents.values()) {
        sum.requests += requests
        sum.disallowed += disallowed
        sum.wasDisallowed += wasDisallowed
      }
      const rows = [...agents.values()]
        .sort((a, b) => b.disallowed - a.disallowed || b.requests - a.requests || (a.name < b.name ? -1 : 1))
        .slice(0, agentsMax)
        .map(({ pages, ...agent }) => ({ ...agent, pages: frequent(pages, pagesMax) }))
      return { ...sum, agents: rows }
    },
  }
}

function frequent(pages: Agent['pages'], max: number) {
  return [...pages]
    .sort(([a, statsA], [b, statsB]) => statsB.count - statsA.count || (a < b ? -1 : 1))
    .slice(0, max)
    .map(([page, { count, line }]) => ({ page, count, line }))
}

type ReadText = (block: OpenBlock, row: number, field: number) => string | null

function textReader(db: Database, org: number): ReadText {
  const texts = new Map<number, Map<number, string>>()
  return (block, row, field) => {
    const code = block.code(field, row)
    if (code === 0) return null
    if (isHash(code)) return block.hashedText(field, row)
    let fieldTexts = texts.get(field)
    if (fieldTexts === undefined) texts.set(field, (fieldTexts = termTexts(db, org, field)))
    return fieldTexts.get(code) ?? null
  }
}
