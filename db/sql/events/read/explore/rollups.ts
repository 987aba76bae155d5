/** Explores whole hours from the rollups, which count events by hour, site, type, outcome and the values of fields. */
import type { ExploreQuery } from '../../../../contract/explore.ts'
import { isCountedMember, type CountedMember } from '../../../../contract/event-fields.ts'
import type { Database } from '../../../database.ts'
import type { Sliced } from '../../../slices.ts'
import { fieldAt, member, otherCode, termTexts } from '../../blocks/fields.ts'
import type { Clause } from '../../blocks/clause.ts'
import { type RollupGroup } from '../../rollups/counts.ts'
import { countUnfolded } from '../../rollups/fold.ts'
import { foldedSums } from '../../rollups/days.ts'
import { inChunks, ofMetrics, unfoldedValues, type HourRange } from '../../rollups/range.ts'
import { countedIn } from '../breakdown.ts'
import { stepAt } from '../filtered-counts.ts'
import { type Groups, missingGroup, otherGroup, type Tally } from './groups.ts'
import { cutHours } from './scan.ts'
import { hourMs } from '../../../../contract/units.ts'

/** Fields that the rows of all rollups have. */
const ofRows = { siteId: member.siteId, type: member.type, outcome: member.outcome }
type RowField = keyof typeof ofRows
const isRowField = (dimension: ExploreQuery['by']): dimension is RowField =>
  typeof dimension === 'string' && dimension in ofRows

function isCounted(dimension: ExploreQuery['by']): dimension is CountedMember {
  return typeof dimension === 'string' && isCountedMember(dimension)
}

/**
 * Hours in which a step ends are left out. False when the rollups do not count what is asked. Live events only:
 * retention moved others to another column.
 */
export function* exploreRollups(
  db: Database,
  org: number,
  query: ExploreQuery,
  clauses: readonly Clause[],
  groups: Groups,
  tally: Tally,
): Sliced<boolean> {
  const { by: dimension, measure, edges, metadata = [], filter } = query
  if (measure !== 'events' && measure !== 'errors') return false
  if (metadata.length > 0 || filter.text !== undefined) return false
  const fields: readonly number[] = Object.values(ofRows)
  if (clauses.some((clause) => !fields.includes(clause.member) || clause.hashed.size > 0)) return false
  const codesOf = (field: number): ReadonlySet<number> | null =>
    clauses
      .filter((clause) => clause.member === field)
      .reduce<ReadonlySet<number> | null>(
        (commonCodes, { codes }) => (commonCodes === null ? codes : commonCodes.intersection(codes)),
        null,
      )
  const only = {
    sites: codesOf(ofRows.siteId),
    types: codesOf(ofRows.type),
    outcomes: codesOf(ofRows.outcome),
  }
  const range = { from: Math.ceil(edges[0]! / hourMs), until: Math.floor(edges.at(-1)! / hourMs) }
  const stepOf = stepFinder(edges)
  const add: Add = (group, hour, events) => {
    const step = stepOf(hour)
    if (step >= 0) tally.addMany!(group, step, events)
  }
  if (dimension === null || isRowField(dimension)) {
    const groupOf = rowGroups(db, org, dimension, groups)
    const unfolded = yield* countUnfolded(db, org, [])
    yield* eachRow(db, org, range, only, unfolded.groups(), (row) => add(groupOf(row), row.hour, row.events))
    return true
  }
  if (!isCounted(dimension)) return false
  yield* addValues({ db, org, by: dimension, range, only, groups, stepOf, add })
  return true
}

/** A number of events at once. */
type Add = (group: number, hour: number, events: number) => void

/** -1 for an hour in which a step ends and another begins. */
function stepFinder(edges: readonly number[]): (hour: number) => number {
  const cut = cutHours(edges)
  let step = 0
  return (hour) => (cut.has(hour) ? -1 : (step = stepAt(edges, hour * hourMs, step)))
}

type Row = Pick<RollupGroup, 'hour' | 'site' | 'type' | 'outcome' | 'events'>

interface Only {
  sites: ReadonlySet<number> | null
  types: ReadonlySet<number> | null
  outcomes: ReadonlySet<number> | null
}

/** Visits the live events of each hour, site, type and outcome. */
function* eachRow(
  db: Database,
  org: number,
  range: HourRange,
  only: Only,
  unfolded: Iterable<RollupGroup>,
  visit: (row: Row) => void,
): Sliced<void> {
  const { sites, types, outcomes } = only
  const check = (row: Row): void => {
    if (sites?.has(row.site) === false || types?.has(row.type) === false) return
    if (outcomes?.has(row.outcome) !== false) visit(row)
  }
  const sql = 'SELECT hour, site, type, outcome, live FROM rollup_metric WHERE org = ? AND live > 0'
  yield* inChunks(db, ofMetrics, [org], range, (inChunk, key) => {
    const rows = db.query<unknown, number[]>(sql + inChunk).values(org, ...key) as number[][]
    for (const [hour, site, type, outcome, events] of rows)
      check({ hour: hour!, site: site!, type: type!, outcome: outcome!, events: events! })
  })
  for (const row of unfolded) if (row.hour >= range.from && row.hour < range.until) check(row)
}

function rowGroups(
  db: Database,
  org: number,
  dimension: RowField | null,
  groups: Groups,
): (row: Row) => number {
  if (dimension === null) {
    const wholeGroup = groups.of('all')
    return () => wholeGroup
  }
  const texts = termTexts(db, org, ofRows[dimension])
  const codeOf = {
    siteId: (row: Row) => row.site,
    type: (row: Row) => row.type,
    outcome: (row: Row) => row.outcome,
  }
  return (row) => groups.of(texts.get(codeOf[dimension](row)) ?? '')
}

interface Values {
  db: Database
  org: number
  by: CountedMember
  range: HourRange
  only: Only
  groups: Groups
  stepOf(hour: number): number
  add: Add
}

/** Rollups count the values of events that have the field. The rest of all events lack it. */
function* addValues({ db, org, by: dimension, range, only, groups, stepOf, add }: Values): Sliced<void> {
  const { index, valueOf } = countedIn(db, org, dimension)
  const texts = termTexts(db, org, member[dimension])
  const { sites, types, outcomes } = only
  const lacking = new Map<number, { hour: number; events: number }>() // by step
  const groupOf = (code: number): number =>
    code === otherCode ? otherGroup : groups.of(texts.get(code) ?? '')
  const lack = (hour: number, events: number): void => {
    const step = stepOf(hour)
    if (step < 0) return
    const lackingCount = lacking.get(step)
    if (lackingCount === undefined) lacking.set(step, { hour, events })
    else lackingCount.events += events
  }
  const addValue = (hour: number, code: number, outcome: number, events: number): void => {
    const value = outcomes?.has(outcome) === false ? 0 : valueOf(code)
    if (value === 0 || events === 0) return
    lack(hour, -events)
    add(groupOf(value), hour, events)
  }
  const counted = { org, index, sites, types }
  yield* foldedSums(db, counted, range, stepOf, ({ firstHour, code, outcome, live }) =>
    addValue(firstHour, code, outcome, live),
  )
  const unfolded = yield* countUnfolded(db, org, [index])
  for (const { code, events, group } of unfoldedValues(unfolded.groups(), counted, range))
    addValue(group.hour, code, group.outcome, events)
  yield* eachRow(db, org, range, only, unfolded.groups(), ({ hour, events }) => lack(hour, events))
  for (const { hour, events } of lacking.values()) if (events > 0) add(missingGroup, hour, events)
}
