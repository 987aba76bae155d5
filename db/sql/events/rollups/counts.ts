/** Counts events in memory by hour, site, type and outcome, and by the values of single fields. */
import { extra } from '../blocks/block.ts'
import { bucketOf, bucketsMax, sketchCode } from './sketches.ts'
import { agentField, isHash, judgementField, member, members, otherCode } from '../blocks/fields.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'
import { hourMs } from '../../../contract/units.ts'

/**
 * Durations are counted like values of one more field, whose code is the tool's and the bucket's (sketches.ts). So they
 * fold, expire, are erased, verified and recounted like all others.
 */
export const durationMember = 32

/** The same by day, so that a month is read from thirty days. */
export const dayDurationMember = 35

/**
 * Sessions and subjects are sketched by day and site (sketches.ts). Rows of a day have its first hour and no outcome,
 * those of sketches no type either.
 */
export const distinctMember = { session: 33, subject: 34 } as const
export const dayHours = 24

/**
 * Class and vendor together, as one more field. A class past the first few and a vendor past its limit have no code of
 * their own in a pair, so that hostile texts cannot make unlimited pairs.
 */
export const classVendorField = 36
export const pairSpan = 8_192
export const pairOther = pairSpan - 1
const pairClassesMax = 64

export function pairCode(classCode: number, vendorCode: number): number {
  const ofClass = classCode <= pairClassesMax ? classCode : pairOther
  return ofClass * pairSpan + Math.min(vendorCode, pairOther)
}

export interface DayGroup {
  hour: number
  site: number
  type: number
  values: Map<number, number>
}

export interface RollupGroup {
  hour: number // occurredAt / hourMs
  site: number
  type: number
  outcome: number
  events: number
  values: Map<number, number> // valueKey -> events; missing values are not counted
}

const codesSpan = 2 ** 44

function valueKey(index: number, code: number): number {
  return index * codesSpan + code
}

export function fieldAndCode(key: number): [member: number, code: number] {
  return [Math.floor(key / codesSpan), key % codesSpan]
}

/** The limits of types and outcomes keep them below these. A site's code is unbounded and comes first. */
export const typesSpan = 4_096
export const outcomesSpan = 512

/** Values beyond the limit count as one. */
export function countedCode(code: number): number {
  return isHash(code) ? otherCode : code
}

export interface RollupCounts {
  /** Adds the events of a block's rows from `first` to before `end`, without deleted ones. */
  add(block: Pick<PackedColumns, 'column'>, first: number, end: number): void
  groups(): Generator<RollupGroup>
  days(): Generator<DayGroup>
  /** How many rollup rows it would change. */
  entries(): number
  /** How many events were added. */
  events(): number
}

/** The first hour of an hour's day. */
export function dayOf(hour: number): number {
  return hour - (hour % dayHours)
}

/** Fields with counted values, for the dashboard's pages. Names and purposes count as agents. */
const indexes = [
  ...members.filter(({ counted }) => counted).map(({ number }) => number),
  agentField,
  judgementField,
]

/** All fields of rollup_value. */
export const rollupFields: readonly number[] = [
  ...indexes,
  durationMember,
  dayDurationMember,
  distinctMember.session,
  distinctMember.subject,
  classVendorField,
]

/** Opens only the columns that the requested fields need. */
function columnsFor(fields: readonly number[] | null) {
  const needs = (index: number): boolean => fields === null || fields.includes(index)
  const counted = indexes.filter(needs)
  const pairs = needs(classVendorField)
  const durationsToo = needs(durationMember) || needs(dayDurationMember)
  return ({ column }: Pick<PackedColumns, 'column'>) => ({
    types: column(member.type),
    sites: column(member.siteId),
    outcomes: column(member.outcome),
    times: column(extra.at),
    counted: counted.map((index) => ({ index, codes: column(index) })),
    classes: pairs ? column(member.class) : null,
    vendors: pairs ? column(member.vendor) : null,
    sessions: needs(distinctMember.session) ? column(member.sessionId) : null,
    subjects: needs(distinctMember.subject) ? column(member.subject) : null,
    tools: durationsToo ? column(member.tool) : null,
    durations: durationsToo ? column(extra.duration) : null,
  })
}

/** The inner map of a key, created when it is missing. */
export function childOf<K, C>(parent: Map<number, Map<K, C>>, key: number): Map<K, C> {
  let child = parent.get(key)
  if (child === undefined) parent.set(key, (child = new Map()))
  return child
}

/** The groups and days counted so far, and their total number of values. */
function countedGroups() {
  const byHour = new Map<number, Map<number, RollupGroup>>()
  const byDay = new Map<number, Map<number, DayGroup>>()
  let entries = 0

  function groupOf(hour: number, site: number, type: number, outcome: number): RollupGroup {
    const groups = childOf(byHour, hour)
    const key = (site * typesSpan + type) * outcomesSpan + outcome
    let group = groups.get(key)
    if (group === undefined) {
      group = { hour, site, type, outcome, events: 0, values: new Map() }
      groups.set(key, group)
      entries++
    }
    return group
  }

  function dayGroupOf(hour: number, site: number, type: number): DayGroup {
    const first = dayOf(hour)
    const groups = childOf(byDay, first)
    const key = site * typesSpan + type
    let day = groups.get(key)
    if (day === undefined) groups.set(key, (day = { hour: first, site, type, values: new Map() }))
    return day
  }

  function addValue(group: DayGroup, key: number): void {
    const currentCount = group.values.get(key)
    if (currentCount === undefined) entries++
    group.values.set(key, (currentCount ?? 0) + 1)
  }

  return {
    groupOf,
    dayGroupOf,
    addValue,
    entries: () => entries,
    *groups() {
      for (const groups of byHour.values()) yield* groups.values()
    },
    *days() {
      for (const groups of byDay.values()) yield* groups.values()
    },
  }
}

/** Where counts go: `G` is what a receiver knows of an hour's or a day's site, type and outcome. */
interface CountSink<G> {
  /** Counts one event. */
  event(hour: number, site: number, type: number, outcome: number): G
  day(hour: number, site: number, type: number): G
  /** Counts one value of a field. */
  value(group: G, index: number, code: number): void
}

/** Sends what the rows of blocks count. `fields` are the fields whose values are counted, null for all. */
export function countingInto<G>(sink: CountSink<G>, fields: readonly number[] | null): RollupCounts['add'] {
  const columnsOf = columnsFor(fields)
  return (block, first, end) => {
    const { types, sites, outcomes, times, counted, ...otherColumns } = columnsOf(block)
    const { classes, vendors, sessions, subjects, tools, durations } = otherColumns
    for (let row = first; row < end; row++) {
      const type = types[row]!
      if (type === 0) continue
      const site = sites[row]!
      const hour = Math.floor(times[row]! / hourMs)
      const group = sink.event(hour, site, type, outcomes[row]!)
      for (const { index, codes } of counted) {
        const code = codes[row]!
        if (code !== 0) sink.value(group, index, countedCode(code))
      }
      if (classes && vendors) sink.value(group, classVendorField, pairCode(classes[row]!, vendors[row]!))
      if (sessions) sink.value(sink.day(hour, site, 0), distinctMember.session, sketchCode(sessions[row]!))
      const subject = subjects?.[row] ?? 0
      if (subject !== 0) sink.value(sink.day(hour, site, 0), distinctMember.subject, sketchCode(subject))
      const tool = tools?.[row] ?? 0
      const duration = durations?.[row] ?? -1
      if (tool === 0 || duration < 0) continue
      const code = countedCode(tool) * bucketsMax + bucketOf(duration)
      sink.value(group, durationMember, code)
      sink.value(sink.day(hour, site, type), dayDurationMember, code)
    }
  }
}

/** `fields` are the fields whose values are counted, null for all. A query needs one or none. */
export function rollupCounts(fields: readonly number[] | null = null): RollupCounts {
  const { groupOf, dayGroupOf, addValue, entries, groups, days } = countedGroups()
  let events = 0
  const add = countingInto<DayGroup>(
    {
      event(hour, site, type, outcome) {
        events++
        const group = groupOf(hour, site, type, outcome)
        group.events++
        return group
      },
      day: dayGroupOf,
      value: (group, index, code) => addValue(group, valueKey(index, code)),
    },
    fields,
  )
  return { add, groups, days, entries, events: () => events }
}
