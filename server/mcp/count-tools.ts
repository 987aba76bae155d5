/** The tools that count: describe_record, count, timeline and tool_health. */
import { isoTime } from '../clock.ts'
import { AppError } from '../errors.ts'
import { countEvents, countedFields, groupEvents, stepsOf, type Counting, type Counts } from './counting.ts'
import {
  answerOf,
  numberArg,
  readQuestion,
  requireForMetrics,
  textArg,
  type Args,
  type Asking,
  type Question,
  type Run,
} from './question.ts'
import { readCounted, unitOf } from './question-unit.ts'
import { timelinePointsMax } from './model.ts'
import { clean } from './untrusted.ts'

const countingOf = ({ orgId, clock }: Asking, { filter }: Question): Counting => ({
  orgId,
  filter,
  nowMs: clock.now(),
})

function rowsOf(counts: Iterable<readonly [string, number]>, max: number) {
  return [...counts]
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, max)
    .map(([value, count]) => ({ untrusted: clean(value, 200), count }))
}

function tooMany(): AppError {
  return new AppError('overloaded', 'Too many events for one question. Choose a shorter range.')
}

async function counted(asking: Asking, question: Question, edges?: number[]): Promise<Counts> {
  const counts = await countEvents(asking.store.events, countingOf(asking, question), edges)
  if (counts === null) throw tooMany()
  return counts
}

const describedMax = 12

async function describeRecord(asking: Asking, args: Args) {
  const { store, orgId, clock } = asking
  const question = readQuestion(asking, args, true)
  const unit = await unitOf(asking, question.filter)
  const inUnit: Question = { ...question, filter: { ...question.filter, types: [unit.type] } }
  const [counts, unitCounts, sites, org, firstMs] = await Promise.all([
    counted(asking, question),
    counted(asking, inUnit),
    store.sites.list(orgId),
    store.orgs.find(orgId),
    store.retention.firstHour(orgId),
  ])
  return {
    ...answerOf(question, { count: unitCounts.total, complete: true, link: question.link('/analytics') }),
    unit: unit.name,
    beside: unit.beside,
    now: isoTime(clock.now()),
    organization: { id: orgId, untrusted: clean(org?.name ?? '', 80) },
    firstHour: firstMs === null ? null : isoTime(firstMs),
    types: rowsOf(counts.types ?? [], describedMax),
    outcomes: rowsOf(unitCounts.outcomes, describedMax),
    sites: sites.slice(0, describedMax).map(({ siteId }) => ({ untrusted: clean(siteId, 200) })),
    siteCount: sites.length,
    groupBy: [...countedFields],
  }
}

async function count(asking: Asking, args: Args) {
  const dimension = textArg(args, 'by')
  const { by: _by, limit: _limit, ...given } = args
  const { args: filters, unit, beside } = await readCounted(asking, given, dimension)
  const question = readCounting(asking, filters, dimension)
  const counts = await counted(asking, question)
  const common = {
    ...answerOf(question, {
      count: counts.total,
      complete: counts.complete,
      link: question.link('/logs'),
    }),
    unit,
    beside,
  }
  if (dimension === undefined) return common
  const groups = await groupEvents(asking.store.events, countingOf(asking, question), dimension)
  if (groups === null) throw tooMany()
  const max = numberArg(args, 'limit', 10)
  const rows = rowsOf(groups.rows, max)
  const listed = groups.rows.reduce((sum, [, rowCount]) => sum + rowCount, groups.beyond)
  const shown = rows.reduce((sum, row) => sum + row.count, 0)
  return {
    ...common,
    by: dimension,
    rows,
    values: groups.rows.length,
    others: listed - shown,
    without: Math.max(0, counts.total - listed),
  }
}

/** Hours like GET /v1/metrics when only its fields are filtered, so that both show the same number. */
function readCounting(asking: Asking, filters: Args, dimension?: string): Question {
  const { last: _last, since: _since, until: _until, ...fields } = filters
  const isOpen = Object.keys(fields).every((name) => ['type', 'outcome', 'siteId'].includes(name))
  const question = readQuestion(asking, filters, isOpen)
  requireForMetrics(asking, question, dimension)
  return question
}

async function timeline(asking: Asking, given: Args) {
  const { args, unit, beside } = await readCounted(asking, given)
  const question = readCounting(asking, args)
  const { edges, stepHours } = stepsOf(countingOf(asking, question), timelinePointsMax)
  const { total, complete, steps, outcomes } = await counted(asking, question, edges)
  return {
    ...answerOf(question, { count: total, complete, link: question.link('/logs') }),
    unit,
    beside,
    stepHours,
    points: edges.flatMap((edge) =>
      steps.has(edge) ? [{ start: isoTime(edge), count: steps.get(edge)! }] : [],
    ),
    outcomes: rowsOf(outcomes, describedMax),
  }
}

interface Health {
  calls: number
  outcomes: Map<string, number>
  before: number
  took: { p50Ms: number; p95Ms: number; p99Ms: number } | null
}

const executed = ['tool.executed']

async function toolHealth(asking: Asking, args: Args) {
  const { store, orgId, clock } = asking
  const { limit: _limit, tool, ...filters } = args
  const question = readQuestion(asking, filters, true)
  const { sinceMs, untilMs, siteIds } = question.filter
  const endMs = untilMs ?? clock.now()
  const query = { orgId, types: executed, ...(siteIds && { siteIds }) }
  const toolQuery = { ...query, by: 'tool' as const, stepMs: null }
  const [now, earlier, durations] = await Promise.all([
    store.events.breakdown({ ...toolQuery, sinceMs, untilMs: untilMs ?? null }),
    store.events.breakdown({ ...toolQuery, sinceMs: 2 * sinceMs - endMs, untilMs: sinceMs }),
    store.events.durations({ ...query, sinceMs, untilMs: untilMs ?? null, stepMs: null }),
  ])
  const tools = new Map<string | null, Health>()
  const healthOf = (name: string | null): Health => {
    const health = tools.get(name) ?? { calls: 0, outcomes: new Map<string, number>(), before: 0, took: null }
    tools.set(name, health)
    return health
  }
  for (const { value, outcome, count: calls } of now.rows) {
    const health = healthOf(value)
    health.calls += calls
    health.outcomes.set(outcome, (health.outcomes.get(outcome) ?? 0) + calls)
  }
  for (const { value, count: calls } of earlier.rows) healthOf(value).before += calls
  for (const { tool: name, p50Ms, p95Ms, p99Ms } of durations.rows)
    healthOf(name).took = { p50Ms, p95Ms, p99Ms }
  const only = Array.isArray(tool) ? (tool as string[]) : null
  const matchingTools = [...tools].filter(
    ([name, { calls }]) => calls > 0 && (only?.includes(name ?? '') ?? true),
  )
  const rows = matchingTools.sort(([a, x], [b, y]) => y.calls - x.calls || ((a ?? '') < (b ?? '') ? -1 : 1))
  const shown = rows.slice(0, numberArg(args, 'limit', 8))
  const filter = only === null ? question.shown : { ...question.shown, tool: only.map((name) => clean(name)) }
  return {
    ...answerOf(question, {
      count: rows.reduce((sum, [, { calls }]) => sum + calls, 0),
      complete: shown.length === rows.length,
      link: question.link('/tools'),
    }),
    filter,
    tools: rows.length,
    rows: shown.map(([name, { calls, outcomes, before: callsBefore, took }]) => ({
      untrusted: name === null ? '(further tools)' : clean(name, 200),
      calls,
      callsBefore: callsBefore,
      outcomes: rowsOf(outcomes, 5),
      durationMs: took && { p50: rounded(took.p50Ms), p95: rounded(took.p95Ms), p99: rounded(took.p99Ms) },
    })),
  }
}

const rounded = (ms: number): number => Math.round(ms * 100) / 100

export const countTools: { readonly [name: string]: Run } = {
  describe_record: describeRecord,
  count,
  timeline,
  tool_health: toolHealth,
}
