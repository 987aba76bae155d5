/** What changed since a moment, for Overview: new agents, impostors, tools and refusals, and error rates that rose. */
import { isoTime } from '../clock.ts'
import type { Log } from '../log.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { invalidQuery, parseQueryTime, type Query } from '../http/request.ts'
import { limits } from '../limits.ts'
import { stepAt } from './period.ts'
import { unitTypes } from './unit-types.ts'
import { vouchedJudges } from '../../db/contract/provenance.ts'
import type { AgentNames, BreakdownQuery, EventFilter, Store } from '../../db/contract/store.ts'
import type { Change, ChangeKind, Changes } from './shapes.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'

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

/** What is counted by value: events of these types by this field. */
const sources = {
  operators: { by: 'vendor' },
  requests: { by: 'vendor', types: [unitTypes.requests] },
  visits: { by: 'vendor', types: [unitTypes.visits] },
  tools: { by: 'tool', types: ['tool.executed'] },
  rules: { by: 'ruleId', types: ['authz.evaluated'] },
} as const satisfies Record<string, Pick<BreakdownQuery, 'by' | 'types'>>

/** The counts that a kind of change shows; '' has all outcomes. New operators are counted in their unit. */
const shownOf: { [kind in ChangeKind]?: { source: keyof typeof sources; outcome: string } } = {
  refusedOperator: { source: 'requests', outcome: 'blocked' },
  refusingRule: { source: 'rules', outcome: 'blocked' },
  failingTool: { source: 'tools', outcome: 'error' },
  failingOperator: { source: 'requests', outcome: 'error' },
  operator: { source: 'operators', outcome: '' },
  tool: { source: 'tools', outcome: '' },
}

const unitSources = { requests: 'requests', visits: 'visits', events: 'operators' } as const

const sourceOf = ({ kind, unit }: Change): keyof typeof sources | null =>
  unit === null ? (shownOf[kind]?.source ?? null) : unitSources[unit]

/** Counts all values before and since, then those of the changes by step: a month has far more values than changes. */
export async function changesSince(
  { events }: Pick<Store, 'events'>,
  { orgId, sinceMs, nowMs }: ChangesQuery,
): Promise<Changes> {
  const untilMs = Math.floor(nowMs / hourMs) * hourMs + hourMs
  const comparedMs = sinceMs - comparedDays * dayMs
  const edges = changeEdges(sinceMs, untilMs)
  const query = { orgId, untilMs, stepMs: null }
  const whole = createTally(sinceMs, [comparedMs, sinceMs, edges.at(-1)!])
  const counted = async (source: keyof typeof sources): Promise<ByValue> => {
    const steps = { sinceMs: comparedMs, edges: [comparedMs, sinceMs] }
    return whole((await events.breakdown({ ...query, ...sources[source], ...steps })).rows)
  }
  // One after another, so that one reader answers them, with the sums that it has cached.
  const sums = async () => ({
    isCompared: await hasEvents(events, orgId, { comparedMs, sinceMs }),
    operators: await counted('operators'),
    requests: await counted('requests'),
    visits: await counted('visits'),
    tools: await counted('tools'),
    rules: await counted('rules'),
  })
  const [impostors, { isCompared, operators, requests, visits, tools, rules }] = await Promise.all([
    impostorsSince(events, { orgId, sinceMs, comparedMs, edges }),
    sums(),
  ])
  const changesByKind: Record<ChangeKind, Change[]> = {
    impostor: impostors.found,
    refusedOperator: findFirstOutcomes('refusedOperator', requests, 'blocked'),
    refusingRule: findFirstOutcomes('refusingRule', rules, 'blocked'),
    failingTool: failing('failingTool', tools),
    failingOperator: failing('failingOperator', requests),
    operator: inUnits(fresh('operator', operators), { requests, visits }),
    tool: fresh('tool', tools),
  }
  const hiddenCounts = changeKinds.flatMap((kind) => {
    const hiddenCount = changesByKind[kind].length - perKindMax
    return hiddenCount > 0 ? [[kind, hiddenCount] as const] : []
  })
  const shown = isCompared ? changeKinds.flatMap((kind) => changesByKind[kind].slice(0, perKindMax)) : []
  return {
    since: isoTime(sinceMs),
    until: isoTime(untilMs),
    comparedSince: isoTime(comparedMs),
    edges,
    changes: await withSteps(events, { orgId, sinceMs, edges }, shown),
    more: isCompared ? Object.fromEntries(hiddenCounts) : {},
    compared: isCompared,
    complete: impostors.complete,
  }
}

interface OverviewWarmer {
  run(nowMs: number, ending: AbortSignal): Promise<void>
}

const warmedOrgsMax = 3
const warmedDays = 7
/** The reports that Overview offers beside the one since the last visit (web/pages/overview/model.ts). */
const chosenDays = [1, 7, 30]
/** Half a minute after retention (server/jobs.ts), which empties the caches. */
const warmedEveryMs = 10 * 60_000
const afterRetentionMs = 30_000
/** A visit ends when Overview was not open for this long (web/pages/overview/model.ts). */
const visitMs = 30 * 60_000

/**
 * Asks in spare time what the next visits of Overview will or may ask, so that they find the sums of a month in the
 * readers' caches: soon after the start, and again after retention.
 */
export function makeOverviewWarmer({
  store,
  log,
}: {
  store: { events: Store['events']; accounts: Pick<Store['accounts'], 'recentVisits'> }
  log: Log
}): OverviewWarmer {
  let last: number | null = null
  return {
    async run(nowMs, ending) {
      const turn = Math.floor((nowMs - afterRetentionMs) / warmedEveryMs)
      if (turn === last) return
      last = turn
      try {
        const query = { afterMs: nowMs - warmedDays * dayMs, limit: warmedOrgsMax }
        for (const { orgId, sinceMs, atMs } of await store.accounts.recentVisits(query)) {
          ending.throwIfAborted()
          const reportMs = Math.min(nowMs, nowMs - atMs < visitMs ? sinceMs : atMs)
          const oldestMs = nowMs - sinceDaysMax * dayMs
          const moments = [Math.max(reportMs, oldestMs), ...chosenDays.map((days) => nowMs - days * dayMs)]
          const hours = new Set(moments.map((ms) => Math.floor(ms / hourMs) * hourMs))
          for (const hourStartMs of hours) {
            ending.throwIfAborted()
            await changesSince(store, { orgId, sinceMs: hourStartMs, nowMs })
          }
        }
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        log.warn('overview_not_warmed', { message: error.message }) // the next visit takes longer
      }
    },
  }
}

/** Mostly the day before has some, so that the hours of a month are not read. */
async function hasEvents(
  events: Store['events'],
  orgId: string,
  { comparedMs, sinceMs }: { comparedMs: number; sinceMs: number },
): Promise<boolean> {
  const countFrom = async (fromMs: number): Promise<number> =>
    (await events.metrics({ orgId, sinceMs: fromMs, untilMs: sinceMs, rowsMax: 0 })).total
  return (await countFrom(sinceMs - dayMs)) > 0 || (await countFrom(comparedMs)) > 0
}

interface Charted {
  orgId: string
  sinceMs: number
  edges: number[]
}

/** The same changes with their counts between the edges. */
async function withSteps(
  events: Store['events'],
  { orgId, sinceMs, edges }: Charted,
  changes: Change[],
): Promise<Change[]> {
  const range = { orgId, sinceMs: edges[0]!, untilMs: edges.at(-1)!, stepMs: null, edges: edges.slice(0, -1) }
  const bySource = Map.groupBy(changes, sourceOf)
  const drawn = await Promise.all(
    Array.from(bySource, async ([source, sourceChanges]) => {
      if (source === null) return [] // they have them already
      const values = [...new Set(sourceChanges.map(({ name }) => name))]
      const { rows } = await events.breakdown({ ...range, ...sources[source], values })
      const counts = createTally(sinceMs, edges)(rows)
      return sourceChanges.map((item) => {
        const steps = counts.get(item.name)?.get(shownOf[item.kind]!.outcome)?.steps
        return [item, { ...item, steps: steps ?? edges.slice(1).fill(0) }] as const
      })
    }),
  )
  const changesWithSteps = new Map(drawn.flat())
  return changes.map((item) => changesWithSteps.get(item) ?? item)
}

/** Filters with more values read no fewer events. */
const namesMax = 50

/**
 * Agents whose first contradicted requests are new. Most of those that contradict themselves did so the day before, and
 * the others are looked up by name: what a month has of them is never counted.
 */
async function impostorsSince(
  events: Store['events'],
  { orgId, sinceMs, comparedMs, edges }: Charted & { comparedMs: number },
): Promise<{ found: Change[]; complete: boolean }> {
  const find = async (bounds: number[], extraFilter: EventFilter = {}) => {
    const filter = {
      types: ['agent.requested'],
      verdicts: ['contradicted'],
      judges: [...vouchedJudges],
      ...extraFilter,
    }
    const budgetMs = limits.filteredCountMsMax
    const query = { orgId, filter, edges: bounds, breakdowns: [{ by: 'agent' } as const], budgetMs }
    const { breakdowns, complete } = await events.filteredCounts(query)
    return { rows: breakdowns[0] ?? [], complete }
  }
  const now = await find(edges.slice(edges.indexOf(sinceMs)))
  const remainingAgents = new Set(now.rows.flatMap(({ value }) => value ?? []))
  let isComplete = now.complete
  const dropOlder = async (fromMs: number, endMs: number, extraFilter?: EventFilter): Promise<void> => {
    if (remainingAgents.size === 0 || fromMs >= endMs) return
    const older = await find([fromMs, endMs], extraFilter)
    isComplete &&= older.complete
    for (const { value } of older.rows) remainingAgents.delete(value ?? '')
  }
  await dropOlder(sinceMs - dayMs, sinceMs)
  await dropOlder(comparedMs, sinceMs - dayMs, filterOf([...remainingAgents]))
  if (!isComplete) return { found: [], complete: false }
  const rows = now.rows.filter(({ value }) => value !== null && remainingAgents.has(value))
  return { found: newAgents(createTally(sinceMs, edges)(rows)), complete: true }
}

/** Matches at least the events of these agents. */
function filterOf(agents: string[]): EventFilter {
  const names = agents.map((text) => JSON.parse(text) as AgentNames)
  const textsOf = (countedNames: AgentNames['name'][]): string[] | null =>
    countedNames.length > namesMax || countedNames.includes('other')
      ? null
      : [
          ...new Set(
            countedNames.map((countedName) => (typeof countedName === 'object' ? countedName.name : '')),
          ),
        ]
  const vendors = textsOf(names.map(({ vendor }) => vendor))
  const agentNames = textsOf(names.map(({ name }) => name))
  return { ...(vendors && { vendors }), ...(agentNames && { names: agentNames }) }
}

/** Steps of whole hours from about a week before `sinceMs`, with an edge at `sinceMs`. */
export function changeEdges(sinceMs: number, untilMs: number): number[] {
  const stepMs = Math.ceil((untilMs - sinceMs + shownBeforeMs) / stepsMax / hourMs) * hourMs
  const stepsBefore = Math.floor(shownBeforeMs / stepMs)
  const stepsAfter = Math.max(1, Math.ceil((untilMs - sinceMs) / stepMs))
  const starts = Array.from(
    { length: stepsBefore + stepsAfter },
    (_, index) => sinceMs + (index - stepsBefore) * stepMs,
  )
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
      for (const outcomeKey of ['', outcome]) add(outcomes, outcomeKey, startMs, count)
    }
    return byValue
  }
}

const zeroCounts: Counts = { count: 0, before: 0, steps: [] }

const change = (
  kind: ChangeKind,
  name: string,
  counts: Counts,
  extraFields: Partial<Change> = {},
): Change => ({
  kind,
  name,
  claims: null,
  of: null,
  unit: null,
  count: counts.count,
  before: counts.before,
  steps: counts.steps,
  ...extraFields,
})

const mostFirst = (changes: Change[]): Change[] =>
  changes.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))

/** Values without an event in the 30 days before. */
function fresh(kind: ChangeKind, values: ByValue): Change[] {
  const changes = [...values].flatMap(([name, outcomes]) => {
    const totals = outcomes.get('') ?? zeroCounts
    return name !== '' && totals.count > 0 && totals.before === 0 ? [change(kind, name, totals)] : []
  })
  return mostFirst(changes)
}

/** Counts new operators in requests, else in visits, because a request and its own detection are never added. */
function inUnits(changes: Change[], counts: { requests: ByValue; visits: ByValue }): Change[] {
  const units = ['requests', 'visits'] as const
  const counted = changes.map((fresh): Change => {
    for (const unit of units) {
      const all = counts[unit].get(fresh.name)?.get('')
      if (all !== undefined && all.count > 0) return { ...fresh, unit, count: all.count }
    }
    return { ...fresh, unit: 'events' }
  })
  return mostFirst(counted)
}

/** Known values whose first events with this outcome are new. */
function findFirstOutcomes(kind: ChangeKind, values: ByValue, outcome: string): Change[] {
  const changes = [...values].flatMap(([name, outcomes]) => {
    const all = outcomes.get('') ?? zeroCounts
    const those = outcomes.get(outcome) ?? zeroCounts
    const isNew = name !== '' && those.count > 0 && those.before === 0
    // The first events of an operator say so themselves; a rule is news when it refuses.
    return isNew && (all.before > 0 || kind === 'refusingRule') ? [change(kind, name, those)] : []
  })
  return mostFirst(changes)
}

/** Those of an agent whose name and operator are one JSON text. */
function newAgents(values: ByValue): Change[] {
  const changes = [...values].flatMap(([text, outcomes]) => {
    const totals = outcomes.get('') ?? zeroCounts
    if (totals.count === 0 || totals.before > 0) return []
    const { vendor, name } = JSON.parse(text) as AgentNames
    const nameOf = (countedName: AgentNames['vendor']): string | null =>
      typeof countedName === 'object' ? countedName.name : null
    const claims = { vendor: nameOf(vendor), agent: nameOf(name) }
    const shown = claims.agent ?? claims.vendor
    return shown === null ? [] : [change('impostor', shown, totals, { claims })]
  })
  return mostFirst(changes)
}

/** Fewer say nothing about a rate. */
const ratedMin = 20
const pointsMin = 0.05
const timesMin = 2
/** Standard errors of the difference between two shares: chance alone exceeds them once in 700 comparisons. */
const errorsMin = 3

/** Whether the share of `parts` rose: by 5 points, to twice the share before, and more than chance explains. */
export function hasRisen(
  now: { part: number; of: number },
  previousShare: { part: number; of: number },
): boolean {
  if (now.of < ratedMin || previousShare.of < ratedMin) return false
  const share = now.part / now.of
  const shareBefore = previousShare.part / previousShare.of
  if (share - shareBefore < pointsMin || share < timesMin * shareBefore) return false
  const pooled = (now.part + previousShare.part) / (now.of + previousShare.of)
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / now.of + 1 / previousShare.of))
  return share - shareBefore >= errorsMin * error
}

/** Calls or requests that ended with an error more often than before. */
function failing(kind: ChangeKind, values: ByValue): Change[] {
  const changes = [...values].flatMap(([name, outcomes]) => {
    const all = outcomes.get('') ?? zeroCounts
    const errors = outcomes.get('error') ?? zeroCounts
    const risen = hasRisen({ part: errors.count, of: all.count }, { part: errors.before, of: all.before })
    const totalCounts = { count: all.count, before: all.before }
    return name !== '' && risen ? [change(kind, name, errors, { of: totalCounts })] : []
  })
  return mostFirst(changes)
}
