/** The whole hours of a series from the rollups, where these can answer. */
import {
  agentField,
  agentsByCode,
  fieldAt,
  isHash,
  judgementField,
  judgementsByCode,
  member,
  otherCode,
  termTexts,
} from '../../blocks/fields.ts'
import { knownVerdicts } from '../../../../contract/provenance.ts'
import { codeOfTerm } from '../../index/filter-codes.ts'
import type { Clause } from '../../blocks/clause.ts'
import { durationMember, type RollupCounts } from '../../rollups/counts.ts'
import { countUnfolded } from '../../rollups/fold.ts'
import { foldedRows, inChunks, ofMetrics, unfoldedValues, type HourRange } from '../../rollups/range.ts'
import { bucketsMax } from '../../rollups/sketches.ts'
import type { Sliced } from '../../../slices.ts'
import { addDuration, cellsOf, makeRoom, type Reading } from './cells.ts'
import { hourMs } from '../../../../contract/units.ts'

/** Rows of the rollups that match some clauses, added to a count or taken from it. */
interface Source {
  /** The rollups' field; null: `rollup_metric`. */
  index: number | null
  clauses: readonly Clause[]
  sign: 1 | -1
}

/** How rollups answer: from which rows. */
interface Plan {
  filter: Source[]
  part: Source[]
  durations: boolean
}

const inEveryRow: readonly number[] = [member.siteId, member.type, member.outcome]
const agentsMax = 4_096
const ofAgents: readonly number[] = [member.vendor, member.name, member.purpose]

/**
 * Rollups count sites, types and outcomes together with at most one other field, and only events that have it. Null:
 * they cannot answer.
 */
export function planOf(reading: Reading): Plan | null {
  const { value, clauses, part } = reading
  if (value !== null && value !== 'p95') return null
  const allClauses = [...clauses, ...(part ?? [])]
  const filter = judgedSources(reading, clauses) ?? plainSources(reading, clauses)
  const partSources =
    part === null ? [] : (judgedSources(reading, allClauses) ?? plainSources(reading, allClauses))
  if (filter === null || partSources === null) return null
  // Durations are counted by tool, and only of events with a tool.
  if (value === 'p95')
    return filter[0]?.index === member.tool && part === null ? { filter, part: [], durations: true } : null
  return { filter, part: partSources, durations: false }
}

/** Rows of the one field that the clauses and the groups are about. */
function plainSources(reading: Reading, clauses: readonly Clause[]): Source[] | null {
  const { groupMember } = reading
  if (
    clauses.some(({ codes, member: field }) =>
      [...codes].some((code) => isHash(code) || (code === 0 && !inEveryRow.includes(field))),
    )
  )
    return null
  const fieldOf = (members: number[]): number | null | undefined => {
    const ownFields = [...new Set(members.filter((field) => !inEveryRow.includes(field)))]
    const [first] = ownFields
    if (first === undefined) return null
    const isNamed = ownFields.includes(member.name) || ownFields.includes(member.purpose)
    if (isNamed && ownFields.every((field) => ofAgents.includes(field))) return agentField
    return ownFields.length === 1 && fieldAt(first)!.counted ? first : undefined
  }
  const grouped = groupMember === null ? [] : [groupMember]
  const index = fieldOf([...clauses.map((clause) => clause.member), ...grouped])
  if (index === undefined) return null
  // Agents beyond their limit count as one, so their names are not known.
  if (index === agentField && agentsByCode(reading.db, reading.org).size >= agentsMax) return null
  return [{ index, clauses, sign: 1 }]
}

/**
 * Rows of verdicts by some judges; null when the clauses are about something else. Judgements count a verdict with its
 * judge. Those stored before judges were recorded are the verdicts that no judgement counts, so with them the
 * judgements by other judges are taken from all verdicts.
 */
function judgedSources({ db, org, groupMember }: Reading, clauses: readonly Clause[]): Source[] | null {
  const verdicts = clauses.filter((clause) => clause.member === member.verdict)
  const judges = clauses.filter((clause) => clause.member === member.judgedBy)
  const otherClauses = clauses.filter((clause) => !verdicts.includes(clause) && !judges.includes(clause))
  if (verdicts.length === 0 || judges.length === 0) return null
  if (!otherClauses.every((clause) => inEveryRow.includes(clause.member))) return null
  if (groupMember !== null && !inEveryRow.includes(groupMember)) return null
  const texts = termTexts(db, org, member.verdict)
  const isCounted = (code: number) => knownVerdicts.some((verdict) => verdict === texts.get(code))
  if (!verdicts.every(({ codes }) => [...codes].every(isCounted))) return null
  const isAllowed = (requiredClauses: readonly Clause[], code: number) =>
    requiredClauses.every(({ codes }) => codes.has(code))
  const judgeCodes = {
    appliance: codeOfTerm(db, org, member.judgedBy, 'appliance'),
    sender: codeOfTerm(db, org, member.judgedBy, 'sender'),
  }
  /** Judgements of the verdicts, by the judges or by all others. */
  const judgements = (areJudges: boolean): Clause => {
    const codes = [...judgementsByCode(db, org)].flatMap(([code, { verdictCode, judgedBy }]) => {
      const isJudge = isAllowed(judges, judgeCodes[judgedBy] ?? -1)
      return isAllowed(verdicts, verdictCode) && isJudge === areJudges ? [code] : []
    })
    return { member: judgementField, codes: new Set(codes), hashed: new Map() }
  }
  if (!isAllowed(judges, 0))
    return [{ index: judgementField, clauses: [...otherClauses, judgements(true)], sign: 1 }]
  return [
    { index: member.verdict, clauses: [...otherClauses, ...verdicts], sign: 1 },
    { index: judgementField, clauses: [...otherClauses, judgements(false)], sign: -1 },
  ]
}

/**
 * A week at a time, newest first, so that only the oldest part is missing when the budget ends. Returns the first
 * complete moment.
 */
export function* addRollups(
  reading: Reading,
  plan: Plan,
  hours: ReadonlyMap<number, number>,
): Sliced<number> {
  const allHours = [...hours.keys()]
  const first = allHours[0]!
  const end = allHours.at(-1)! + 1
  for (let until = end; until > first; until -= weekHours) {
    if (performance.now() > reading.endMs || !makeRoom(reading, 0)) return until * hourMs
    yield* addWeek(reading, plan, { from: Math.max(first, until - weekHours), until }, hours)
  }
  return -Infinity
}

const weekHours = 168

function* addWeek(
  reading: Reading,
  plan: Plan,
  range: HourRange,
  hours: ReadonlyMap<number, number>,
): Sliced<void> {
  if (plan.durations) {
    yield* rollupRows(reading, durationMember, reading.clauses, range, (hour, group, code, count) => {
      const step = hours.get(hour)
      if (step === undefined) return
      addDuration(reading, cellsOf(reading, group), step, code, count)
      reading.found.grow()
    })
    return
  }
  for (const { index, clauses, sign } of plan.filter)
    yield* rollupRows(reading, index, clauses, range, (hour, group, _, count) => {
      const step = hours.get(hour)
      if (step !== undefined) cellsOf(reading, group).events[step]! += sign * count
    })
  for (const { index, clauses, sign } of plan.part)
    yield* rollupRows(reading, index, clauses, range, (hour, group, _, count) => {
      const step = hours.get(hour)
      if (step !== undefined) cellsOf(reading, group).part[step]! += sign * count
    })
}

function* unfoldedOf({ db, org, unfolded }: Reading, index: number | null): Sliced<RollupCounts> {
  let counts = unfolded.get(index)
  if (counts === undefined) {
    counts = yield* countUnfolded(db, org, index === null ? [] : [index])
    unfolded.set(index, counts)
  }
  return counts
}

type VisitRow = (hour: number, group: number, bucket: number, count: number) => void

/** Visits the rollup rows that match all clauses, with the code of their group, folded or not. */
function* rollupRows(
  reading: Reading,
  index: number | null,
  clauses: readonly Clause[],
  range: HourRange,
  visit: VisitRow,
): Sliced<void> {
  const { db, org, groupMember } = reading
  const agents = index === agentField ? agentsByCode(db, org) : null
  const allowed = (field: number) => {
    const sets = clauses.filter((clause) => clause.member === field).map(({ codes }) => codes)
    return sets.length === 0 ? null : sets.reduce((a, b) => new Set([...a].filter((code) => b.has(code))))
  }
  const [sites, types, outcomes] = inEveryRow.map(allowed) as [Codes, Codes, Codes]
  const rowClauses = clauses.filter((clause) => !inEveryRow.includes(clause.member))

  /** The code of a field in a row of the rollups. */
  const codeOf = (field: number, site: number, type: number, outcome: number, code: number): number => {
    if (field === member.siteId) return site
    if (field === member.type) return type
    if (field === member.outcome) return outcome
    if (agents === null) return index === durationMember ? Math.floor(code / bucketsMax) : code
    const agent = agents.get(code)
    const [vendor, name, purpose] = agent ? [agent.vendor, agent.name, agent.purpose] : []
    return (field === member.vendor ? vendor : field === member.name ? name : purpose) ?? otherCode
  }
  const add = (hour: number, site: number, type: number, outcome: number, code: number, count: number) => {
    if (outcomes?.has(outcome) === false || count === 0) return
    for (const clause of rowClauses)
      if (!clause.codes.has(codeOf(clause.member, site, type, outcome, code))) return
    const group = groupMember === null ? 0 : codeOf(groupMember, site, type, outcome, code)
    if (groupMember === null || group !== 0) visit(hour, group, code % bucketsMax, count)
  }

  if (index === null) {
    const inSet = (name: string, codes: Codes): [string, string[]] =>
      codes === null
        ? ['', []]
        : [` AND ${name} IN ${db.dialect.numbersOf('?')}`, [JSON.stringify([...codes])]]
    const filters = [inSet('site', sites), inSet('type', types), inSet('outcome', outcomes)]
    const conditionSql = filters.map(([text]) => text).join('')
    const values = filters.flatMap(([, codes]) => codes)
    const sql = 'SELECT hour, site, type, outcome, live + expired FROM rollup_metric WHERE org = ?'
    yield* inChunks(db, ofMetrics, [org], range, (inChunk, key) => {
      const rows = db
        .query<unknown, (number | string)[]>(sql + inChunk + conditionSql)
        .values(org, ...key, ...values)
      for (const [hour, site, type, outcome, count] of rows as number[][])
        add(hour!, site!, type!, outcome!, 0, count!)
    })
    for (const { hour, site, type, outcome, events } of (yield* unfoldedOf(reading, null)).groups()) {
      if (hour < range.from || hour >= range.until) continue
      if (sites?.has(site) === false || types?.has(type) === false) continue
      add(hour, site, type, outcome, 0, events)
    }
    return
  }
  const only = rowClauses.length === 1 && index === rowClauses[0]!.member ? rowClauses[0]!.codes : null
  const counted = { org, index, sites, types, codes: only }
  const columns = 'hour, site, type, outcome, code, live + expired'
  yield* foldedRows(db, columns, counted, range, ([hour, site, type, outcome, code, count]) =>
    add(hour!, site!, type!, outcome!, code!, count!),
  )
  const unfolded = yield* unfoldedOf(reading, index)
  for (const { code, events, group } of unfoldedValues(unfolded.groups(), counted, range))
    add(group.hour, group.site, group.type, group.outcome, code, events)
}

type Codes = ReadonlySet<number> | null
