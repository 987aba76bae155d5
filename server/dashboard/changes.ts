/** What changed since a moment, for Overview: new agents, impostors, tools and refusals, and error rates that rose. */
import { isoTime } from '../clock.ts'
import { invalidQuery, parseQueryTime, type Query } from '../http/request.ts'
import { limits } from '../limits.ts'
import { stepAt } from './period.ts'
import type { AgentNames, BreakdownQuery, Store } from '../../db/contract/store.ts'
import type { Change, ChangeKind, Changes } from './shapes.ts'

/** In the order of Overview: what may need an answer comes first. */
const changeKinds: ChangeKind[] = [
  'impostor',
  'refusedOperator',
  'refusingRule',
  'failingTool',
  'failingOperator',
  'operator',
  'tool',
]

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const comparedDays = 30
const sinceDaysMax = 30
const shownBeforeMs = 7 * dayMs
const stepsMax = 40
const perKindMax = 6

/** The first hour to report, from `since`; by default 24 hours ago. Throws 400 `invalid_query`. */
export function readSince(query: Query, nowMs: number): number {
  const text = query.one('since')
  const sinceMs = text === undefined ? nowMs - dayMs : parseQueryTime('since', text)
  if (sinceMs < nowMs - sinceDaysMax * dayMs - hourMs)
    throw invalidQuery('since', `since must be at most ${sinceDaysMax} days ago`)
  if (sinceMs > nowMs) throw invalidQuery('since', 'since must not be in the future')
  return Math.floor(sinceMs / hourMs) * hourMs
}

export interface ChangesQuery {
  orgId: string
  sinceMs: number // a whole hour
  nowMs: number
}

/** Counts of a value: since `sinceMs`, before it, and between the edges. */
interface Counts {
  count: number
  before: number
  steps: number[]
}

export async function changesSince(
  { events }: Pick<Store, 'events'>,
  { orgId, sinceMs, nowMs }: ChangesQuery,
): Promise<Changes> {
  const untilMs = Math.floor(nowMs / hourMs) * hourMs + hourMs
  const comparedMs = sinceMs - comparedDays * dayMs
  const edges = changeEdges(sinceMs, untilMs)
  const of = { orgId, untilMs }
  const tally = createTally(sinceMs, edges)
  const counted = async (query: Pick<BreakdownQuery, 'by' | 'types'>): Promise<ByValue> => {
    const steps = { sinceMs: comparedMs, stepMs: null, edges: [comparedMs, ...edges.slice(0, -1)] }
    const { rows } = await events.breakdown({ ...of, ...query, ...steps })
    return tally(rows)
  }
  const [{ total }, operators, requests, tools, rules, impostors] = await Promise.all([
    events.metrics({ ...of, untilMs: sinceMs, sinceMs: comparedMs, rowsMax: 1 }),
    counted({ by: 'vendor' }),
    counted({ by: 'vendor', types: ['agent.requested'] }),
    counted({ by: 'tool', types: ['tool.executed'] }),
    counted({ by: 'ruleId', types: ['authz.evaluated'] }),
    events.filteredCounts({
      ...{ orgId, edges: [comparedMs, ...edges], budgetMs: limits.filteredCountMsMax },
      filter: { types: ['agent.requested'], verdicts: ['contradicted'] },
      breakdowns: [{ by: 'agent' }],
    }),
  ])
  const found: Record<ChangeKind, Change[]> = {
    impostor: newAgents(tally(impostors.breakdowns[0] ?? [])),
    refusedOperator: begun('refusedOperator', requests, 'blocked'),
    refusingRule: begun('refusingRule', rules, 'blocked'),
    failingTool: failing('failingTool', tools),
    failingOperator: failing('failingOperator', requests),
    operator: fresh('operator', operators),
    tool: fresh('tool', tools),
  }
  const more = changeKinds.flatMap((kind) => {
    const left = found[kind].length - perKindMax
    return left > 0 ? [[kind, left] as const] : []
  })
  return {
    ...{ since: isoTime(sinceMs), until: isoTime(untilMs), comparedSince: isoTime(comparedMs), edges },
    changes: total === 0 ? [] : changeKinds.flatMap((kind) => found[kind].slice(0, perKindMax)),
    more: total === 0 ? {} : Object.fromEntries(more),
    ...{ compared: total > 0, complete: impostors.complete },
  }
}

/** Steps of whole hours from about a week before `sinceMs`, with an edge at `sinceMs`. */
export function changeEdges(sinceMs: number, untilMs: number): number[] {
  const stepMs = Math.ceil((untilMs - sinceMs + shownBeforeMs) / stepsMax / hourMs) * hourMs
  const before = Math.floor(shownBeforeMs / stepMs)
  const after = Math.max(1, Math.ceil((untilMs - sinceMs) / stepMs))
  const starts = Array.from({ length: before + after }, (_, index) => sinceMs + (index - before) * stepMs)
  return [...starts, Math.max(untilMs, sinceMs + hourMs)]
}

/** By value, then by outcome; '' has all outcomes. */
type ByValue = Map<string, Map<string, Counts>>
type Row = { value: string | null; outcome: string; startMs: number; count: number }

function createTally(sinceMs: number, edges: number[]): (rows: Row[]) => ByValue {
  const shownMs = edges[0]!
  const add = (outcomes: Map<string, Counts>, outcome: string, startMs: number, count: number): void => {
    const counts = outcomes.get(outcome) ?? { count: 0, before: 0, steps: edges.slice(1).fill(0) }
    outcomes.set(outcome, counts)
    counts[startMs >= sinceMs ? 'count' : 'before'] += count
    if (startMs >= shownMs) counts.steps[stepAt({ edges }, startMs)]! += count
  }
  return (rows) => {
    const byValue: ByValue = new Map()
    for (const { value, outcome, startMs, count } of rows) {
      // What is beyond the limit of counted values has no name, and what is after the hour has not happened.
      if (value === null || startMs >= edges.at(-1)!) continue
      const outcomes = byValue.get(value) ?? new Map<string, Counts>()
      byValue.set(value, outcomes)
      for (const each of ['', outcome]) add(outcomes, each, startMs, count)
    }
    return byValue
  }
}

const none: Counts = { count: 0, before: 0, steps: [] }

const change = (kind: ChangeKind, name: string, counts: Counts, more: Partial<Change> = {}): Change => ({
  ...{ kind, name, claims: null, of: null },
  ...{ count: counts.count, before: counts.before, steps: counts.steps },
  ...more,
})

const mostFirst = (changes: Change[]): Change[] =>
  changes.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))

/** Values without an event in the 30 days before. */
function fresh(kind: ChangeKind, values: ByValue): Change[] {
  const found = [...values].flatMap(([name, outcomes]) => {
    const all = outcomes.get('') ?? none
    return name !== '' && all.count > 0 && all.before === 0 ? [change(kind, name, all)] : []
  })
  return mostFirst(found)
}

/** Known values whose first events with this outcome are new. */
function begun(kind: ChangeKind, values: ByValue, outcome: string): Change[] {
  const found = [...values].flatMap(([name, outcomes]) => {
    const [all, those] = [outcomes.get('') ?? none, outcomes.get(outcome) ?? none]
    const isNew = name !== '' && those.count > 0 && those.before === 0
    // The first events of an operator say so themselves; a rule is news when it refuses.
    return isNew && (all.before > 0 || kind === 'refusingRule') ? [change(kind, name, those)] : []
  })
  return mostFirst(found)
}

/** Those of an agent whose name and operator are one JSON text. */
function newAgents(values: ByValue): Change[] {
  const found = [...values].flatMap(([text, outcomes]) => {
    const all = outcomes.get('') ?? none
    if (all.count === 0 || all.before > 0) return []
    const { vendor, name } = JSON.parse(text) as AgentNames
    const nameOf = (one: AgentNames['vendor']): string | null => (typeof one === 'object' ? one.name : null)
    const claims = { vendor: nameOf(vendor), agent: nameOf(name) }
    const shown = claims.agent ?? claims.vendor
    return shown === null ? [] : [change('impostor', shown, all, { claims })]
  })
  return mostFirst(found)
}

/** Fewer say nothing about a rate. */
const ratedMin = 20
const pointsMin = 0.05
const timesMin = 2
/** Standard errors of the difference between two shares: chance alone exceeds them once in 700 comparisons. */
const errorsMin = 3

/** Whether the share of `parts` rose: by 5 points, to twice the share before, and more than chance explains. */
export function hasRisen(now: { part: number; of: number }, before: { part: number; of: number }): boolean {
  if (now.of < ratedMin || before.of < ratedMin) return false
  const [share, shareBefore] = [now.part / now.of, before.part / before.of]
  if (share - shareBefore < pointsMin || share < timesMin * shareBefore) return false
  const pooled = (now.part + before.part) / (now.of + before.of)
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / now.of + 1 / before.of))
  return share - shareBefore >= errorsMin * error
}

/** Calls or requests that ended with an error more often than before. */
function failing(kind: ChangeKind, values: ByValue): Change[] {
  const found = [...values].flatMap(([name, outcomes]) => {
    const [all, errors] = [outcomes.get('') ?? none, outcomes.get('error') ?? none]
    const risen = hasRisen({ part: errors.count, of: all.count }, { part: errors.before, of: all.before })
    const of = { count: all.count, before: all.before }
    return name !== '' && risen ? [change(kind, name, errors, { of })] : []
  })
  return mostFirst(found)
}
