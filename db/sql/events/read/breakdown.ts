/** Counts from the rollups: by the values of one field over time, by class and vendor together, by agent. */
import { countUnfolded } from '../rollups/fold.ts'
import {
  agentField,
  agentNames,
  agentsByCode,
  judgementField,
  judgementsByCode,
  member,
  otherCode,
  termTexts,
} from '../blocks/fields.ts'
import { classVendorField, outcomesSpan, pairOther, pairSpan } from '../rollups/counts.ts'
import { foldedSums } from '../rollups/days.ts'
import {
  hourRange,
  siteCodes,
  stepStarts,
  typeCodes,
  unfoldedValues,
  type HourRange,
} from '../rollups/range.ts'
import type { Database } from '../../database.ts'
import type {
  AgentCounts,
  AgentsQuery,
  Breakdown,
  BreakdownQuery,
  ClassVendor,
  ClassVendorQuery,
  CountedBy,
  CountedName,
} from '../../../contract/store.ts'
import { isKnownVerdict, type Judgement } from '../../../contract/provenance.ts'
import type { Sliced } from '../../slices.ts'
import { hourMs } from '../../../contract/units.ts'

const valuesPerStepMax = 1_000

export function* readBreakdown(db: Database, org: number, query: BreakdownQuery): Sliced<Breakdown> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const types = typeCodes(db, org, query.types)
  if (query.by === 'judgement') return yield* readJudgements(db, org, query)
  const { index, valueOf } = countedIn(db, org, query.by)
  const field = fieldOf(query.by)
  const valueCodes = query.values && codesOf(termTexts(db, org, field), query.values)
  const startOf = stepStarts(query, range)
  const sums = new Map<number, Map<number, Sum>>() // start -> code and outcome -> events

  function add(code: number, outcome: number, { events, firstHour, lastHour }: Sum): void {
    const value = valueOf(code)
    if (value === 0 || valueCodes?.has(value) === false) return
    const key = value * outcomesSpan + outcome
    const start = startOf(firstHour)
    let keys = sums.get(start)
    if (keys === undefined) sums.set(start, (keys = new Map()))
    const sum = keys.get(key)
    if (sum === undefined) keys.set(key, { events, firstHour, lastHour })
    else {
      sum.events += events
      if (lastHour > sum.lastHour) sum.lastHour = lastHour
      if (firstHour < sum.firstHour) sum.firstHour = firstHour
    }
  }

  const isOwn = index === field // names and purposes are parts of an agent's code
  const counted = { org, index, sites, types, codes: (isOwn && valueCodes) || null }
  yield* foldedSums(db, counted, range, startOf, ({ code, outcome, live, expired, firstHour, lastHour }) =>
    add(code, outcome, { events: live + expired, firstHour, lastHour }),
  )
  const unfolded = yield* countUnfolded(db, org, [index])
  for (const { code, events, group } of unfoldedValues(unfolded.groups(), counted, range))
    add(code, group.outcome, { events, firstHour: group.hour, lastHour: group.hour })
  if (query.by === 'vouched') {
    const reported = yield* reportedSums(db, org, { ...counted, codes: null }, range, startOf)
    subtract(sums, reported)
    const rows = namedRows(db, org, field, sums)
    return { rows: rows.filter(({ value }) => value !== null && isKnownVerdict(value)) }
  }
  return { rows: namedRows(db, org, field, sums) }
}

type Sums = Map<number, Map<number, Sum>> // start -> code and outcome -> events
type Counted = Parameters<typeof foldedSums>[1]

/** The field with the texts of what is counted. */
function fieldOf(dimension: CountedBy): number {
  return dimension === 'vouched'
    ? member.verdict
    : dimension === 'judgement'
      ? judgementField
      : member[dimension]
}

/** Sums of judgements, by the number that `keyOf` gives them; 0 leaves one out. */
function* judgementSums(
  db: Database,
  org: number,
  counted: Counted,
  range: HourRange,
  startOf: (hour: number) => number,
  keyOf: (code: number) => number,
): Sliced<Sums> {
  const sums: Sums = new Map()
  const add = (judgement: number, outcome: number, events: number, firstHour: number, lastHour: number) => {
    const value = keyOf(judgement)
    if (value === 0) return
    const start = startOf(firstHour)
    let keys = sums.get(start)
    if (keys === undefined) sums.set(start, (keys = new Map()))
    const key = value * outcomesSpan + outcome
    const sum = keys.get(key)
    keys.set(key, {
      events: events + (sum?.events ?? 0),
      firstHour: Math.min(firstHour, sum?.firstHour ?? firstHour),
      lastHour: Math.max(lastHour, sum?.lastHour ?? lastHour),
    })
  }
  const ofJudgements = { ...counted, index: judgementField }
  yield* foldedSums(
    db,
    ofJudgements,
    range,
    startOf,
    ({ code, outcome, live, expired, firstHour, lastHour }) =>
      add(code, outcome, live + expired, firstHour, lastHour),
  )
  const unfolded = yield* countUnfolded(db, org, [judgementField])
  for (const { code, events, group } of unfoldedValues(unfolded.groups(), ofJudgements, range))
    add(code, group.outcome, events, group.hour, group.hour)
  return sums
}

/** Verdicts that only their sender gave, by the code of the verdict. */
function* reportedSums(
  db: Database,
  org: number,
  counted: Counted,
  range: HourRange,
  startOf: (hour: number) => number,
): Sliced<Sums> {
  const judgements = judgementsByCode(db, org)
  return yield* judgementSums(db, org, counted, range, startOf, (code) => {
    const judgement = judgements.get(code)
    return judgement?.judgedBy === 'sender' ? judgement.verdictCode : 0
  })
}

/** Judgements with the observer or sender behind each; a value is the JSON of a `Judgement`. */
function* readJudgements(db: Database, org: number, query: BreakdownQuery): Sliced<Breakdown> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const counted = {
    org,
    index: judgementField,
    sites: siteCodes(db, org, query.siteIds),
    types: typeCodes(db, org, query.types),
    codes: null,
  }
  const sums = yield* judgementSums(db, org, counted, range, stepStarts(query, range), (code) => code)
  const texts = judgementTexts(db, org)
  return { rows: rowsOf(db, org, texts, sums) }
}

/** The JSON of each judgement, by code. */
export function judgementTexts(db: Database, org: number): Map<number, string> {
  return new Map(
    Array.from(judgementsByCode(db, org), ([code, { verdict, judgedBy, by: observer }]) => [
      code,
      JSON.stringify({ verdict, judgedBy, by: observer } satisfies Judgement),
    ]),
  )
}

function subtract(sums: Sums, deduction: Sums): void {
  for (const [start, keys] of deduction)
    for (const [key, { events }] of keys) {
      const sum = sums.get(start)?.get(key)
      if (sum === undefined) continue
      sum.events -= events
      if (sum.events <= 0) sums.get(start)!.delete(key)
    }
}

/**
 * The rollups' field that counts a field, and the code of its value there; names and purposes count as agents. 0:
 * missing.
 */
export function countedIn(db: Database, org: number, dimension: CountedBy) {
  if (dimension !== 'name' && dimension !== 'purpose')
    return { index: fieldOf(dimension), valueOf: (code: number) => code }
  const agents = agentsByCode(db, org)
  return { index: agentField, valueOf: (code: number) => agents.get(code)?.[dimension] ?? otherCode }
}

/** Events of one value and outcome, and their first and last hour. */
interface Sum {
  events: number
  firstHour: number
  lastHour: number
}

/** By time, then most frequent first. */
function namedRows(
  db: Database,
  org: number,
  index: number,
  sums: Map<number, Map<number, Sum>>,
): Breakdown['rows'] {
  return rowsOf(db, org, termTexts(db, org, index), sums)
}

function rowsOf(
  db: Database,
  org: number,
  texts: ReadonlyMap<number, string>,
  sums: Sums,
): Breakdown['rows'] {
  const outcomes = termTexts(db, org, member.outcome)
  const rows = [...sums].flatMap(([start, keys]) =>
    Array.from(withOther(keys), ([key, { events, firstHour, lastHour }]) => {
      const code = Math.floor(key / outcomesSpan)
      const value = code === otherCode ? null : (texts.get(code) ?? '')
      const outcome = outcomes.get(key % outcomesSpan) ?? ''
      const hours = { startMs: start * hourMs, firstMs: firstHour * hourMs, lastMs: lastHour * hourMs }
      return { value, outcome, ...hours, count: events }
    }),
  )
  return rows.sort((a, b) => a.startMs - b.startMs || b.count - a.count)
}

/** Keeps the most frequent values of a step and sums the rest by outcome (contract §4). */
function withOther(sums: Map<number, Sum>): Map<number, Sum> {
  const byCode = new Map<number, number>()
  for (const [key, { events }] of sums) {
    const code = Math.floor(key / outcomesSpan)
    if (code === otherCode) continue
    byCode.set(code, (byCode.get(code) ?? 0) + events)
  }
  if (byCode.size <= valuesPerStepMax) return sums
  const frequent = [...byCode].sort(([a, x], [b, y]) => y - x || a - b).slice(0, valuesPerStepMax)
  const namedCodes = new Set(frequent.map(([code]) => code))
  const out = new Map<number, Sum>()
  for (const [key, { events, firstHour, lastHour }] of sums) {
    const code = Math.floor(key / outcomesSpan)
    const targetKey = namedCodes.has(code) ? key : otherCode * outcomesSpan + (key % outcomesSpan)
    const existingSum = out.get(targetKey)
    out.set(targetKey, {
      events: events + (existingSum?.events ?? 0),
      firstHour: Math.min(firstHour, existingSum?.firstHour ?? firstHour),
      lastHour: Math.max(lastHour, existingSum?.lastHour ?? lastHour),
    })
  }
  return out
}

const oneStep = (): number => 0

/** Counts by class and vendor together. */
export function* readClassVendor(db: Database, org: number, query: ClassVendorQuery): Sliced<ClassVendor> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const counted = {
    org,
    index: classVendorField,
    sites: siteCodes(db, org, query.siteIds),
    types: typeCodes(db, org, query.types),
  }
  const sums = new Map<number, number>() // by pair
  const add = (code: number, events: number) => sums.set(code, (sums.get(code) ?? 0) + events)

  yield* foldedSums(db, counted, range, oneStep, ({ code, live, expired }) => add(code, live + expired))
  const unfolded = yield* countUnfolded(db, org, [classVendorField])
  for (const { code, events } of unfoldedValues(unfolded.groups(), counted, range)) add(code, events)
  return { rows: pairRows(db, org, sums) }
}

/** Most frequent first. */
function pairRows(db: Database, org: number, sums: ReadonlyMap<number, number>): ClassVendor['rows'] {
  const classes = termTexts(db, org, member.class)
  const vendors = termTexts(db, org, member.vendor)
  const nameOf = (texts: ReadonlyMap<number, string>, code: number): CountedName => {
    if (code === 0) return 'missing'
    return code === pairOther ? 'other' : { name: texts.get(code) ?? '' }
  }
  const rows = Array.from(sums, ([code, count]) => ({
    class: nameOf(classes, Math.floor(code / pairSpan)),
    vendor: nameOf(vendors, code % pairSpan),
    count,
  }))
  return rows.sort((a, b) => b.count - a.count)
}

/** Counts by agent: vendor, name and purpose together. */
export function* readAgents(db: Database, org: number, query: AgentsQuery): Sliced<AgentCounts> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const counted = {
    org,
    index: agentField,
    sites: siteCodes(db, org, query.siteIds),
    types: typeCodes(db, org, query.types),
  }
  const outcomes =
    query.outcome === undefined ? null : codesOf(termTexts(db, org, member.outcome), [query.outcome])
  const sums = new Map<number, number>() // by agent
  const add = (code: number, outcome: number, events: number): void => {
    if (outcomes === null || outcomes.has(outcome)) sums.set(code, (sums.get(code) ?? 0) + events)
  }

  yield* foldedSums(db, counted, range, oneStep, ({ code, outcome, live, expired }) =>
    add(code, outcome, live + expired),
  )
  const unfolded = yield* countUnfolded(db, org, [agentField])
  for (const { code, events, group } of unfoldedValues(unfolded.groups(), counted, range))
    add(code, group.outcome, events)
  return { rows: agentRows(db, org, sums) }
}

function codesOf(texts: ReadonlyMap<number, string>, requestedTexts: string[]): Set<number> {
  return new Set([...texts].filter(([, text]) => requestedTexts.includes(text)).map(([code]) => code))
}

/** Most frequent first. */
function agentRows(db: Database, org: number, sums: ReadonlyMap<number, number>): AgentCounts['rows'] {
  const agentOf = agentNames(db, org)
  const rows = Array.from(sums, ([code, count]) => ({ ...agentOf(code), count }))
  return rows.sort((a, b) => b.count - a.count)
}
