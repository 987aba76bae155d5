/** Quantiles of durations by tool and time, and distinct sessions and subjects, from the rollups' sketches. */
import { bucketsMax, estimate, quantile, registerAndRank, registers } from '../rollups/sketches.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { member, termTexts } from '../blocks/fields.ts'
import {
  childOf,
  dayDurationMember,
  dayHours,
  distinctMember,
  durationMember,
  hourMs,
  fieldAndCode,
  otherCode,
} from '../rollups/counts.ts'
import { foldedRows, hourRange, siteCodes, stepStarts, typeCodes, type HourRange } from '../rollups/range.ts'
import { foldedSketches } from '../cache/sketches.ts'
import type { Database } from 'bun:sqlite'
import type { Distinct, DistinctQuery, Durations, DurationsQuery } from '../../../contract/store.ts'
import type { Sliced } from '../../threads/slices.ts'

export function* readDurations(db: Database, org: number, query: DurationsQuery): Sliced<Durations> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const types = typeCodes(db, org, query.types)
  const startOf = stepStarts(query, range)
  const byStart = new Map<number, Map<number, Map<number, number>>>() // start -> tool -> bucket -> events

  function add(hour: number, code: number, events: number): void {
    const start = startOf(hour)
    const tools = childOf(byStart, start)
    const buckets = childOf(tools, query.together ? otherCode : Math.floor(code / bucketsMax))
    const bucket = code % bucketsMax
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + events)
  }

  const unfolded = yield* countUnfolded(db, org, [durationMember])
  for (const { index, from, until } of spans(range, byWholeDays(query))) {
    const asked = { org, index, sites, types }
    yield* foldedRows(db, 'hour, code, live + expired', asked, { from, until }, ([hour, code, events]) =>
      add(hour!, code!, events!),
    )
    for (const { hour, site, type, values } of index === dayDurationMember
      ? unfolded.days()
      : unfolded.groups()) {
      if (hour < from || hour >= until) continue
      if (sites?.has(site) === false || types?.has(type) === false) continue
      for (const [key, events] of values) {
        const [at, code] = fieldAndCode(key)
        if (at === index) add(hour, code, events)
      }
    }
  }
  return { rows: namedRows(db, org, byStart) }
}

/** Whether every step is whole UTC days, which have rows of their own. */
function byWholeDays({ stepMs, edges }: DurationsQuery): boolean {
  const isDays = (ms: number) => ms % (dayHours * hourMs) === 0
  // The outer edges may lie inside a day: both ends are read from the rows of hours.
  return edges !== undefined ? edges.slice(1, -1).every(isDays) : stepMs === null || isDays(stepMs)
}

/** Whole days are read from the rows of days, both ends from those of hours. */
function spans({ from, until }: HourRange, wholeDays: boolean): (HourRange & { index: number })[] {
  const dayFrom = Math.ceil(from / dayHours) * dayHours
  const dayUntil = Math.floor(until / dayHours) * dayHours
  const byDays = wholeDays && dayFrom < dayUntil
  if (!byDays) return [{ index: durationMember, from, until }]
  return [
    { index: durationMember, from, until: dayFrom },
    { index: dayDurationMember, from: dayFrom, until: dayUntil },
    { index: durationMember, from: dayUntil, until },
  ]
}

/** By time, then most called first. */
function namedRows(
  db: Database,
  org: number,
  byStart: ReadonlyMap<number, ReadonlyMap<number, ReadonlyMap<number, number>>>,
): Durations['rows'] {
  const texts = termTexts(db, org, member.tool)
  const rows = [...byStart].flatMap(([start, tools]) =>
    Array.from(tools, ([code, buckets]) => ({
      tool: code === otherCode ? null : (texts.get(code) ?? ''),
      startMs: start * hourMs,
      count: [...buckets.values()].reduce((sum, count) => sum + count, 0),
      p50Ms: quantile(buckets, 0.5),
      p95Ms: quantile(buckets, 0.95),
      p99Ms: quantile(buckets, 0.99),
    })),
  )
  return rows.sort((a, b) => a.startMs - b.startMs || b.count - a.count)
}

/** Distinct sessions and verified subjects per day or month, from sketches that support subtraction. */
export function* readDistinct(db: Database, org: number, query: DistinctQuery): Sliced<Distinct> {
  const from = dayOf(query.sinceMs)
  const until = query.untilMs === null ? Number.MAX_SAFE_INTEGER : dayOf(query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const index = distinctMember[query.of]
  const byStart = new Map<number, Uint8Array>() // start -> the highest rank of each register

  /** Null when it was not requested. */
  function ranksOf(hour: number, site: number): Uint8Array | null {
    if (hour < from || hour >= until || sites?.has(site) === false) return null
    const start = startOf(hour, query.step)
    let ranks = byStart.get(start)
    if (ranks === undefined) byStart.set(start, (ranks = new Uint8Array(registers)))
    return ranks
  }

  yield* foldedSketches(db, org, index, { from, until }, ({ hour, site, ranks }) => {
    const into = ranksOf(hour, site)
    for (let register = 0; into !== null && register < registers; register++)
      if (ranks[register]! > into[register]!) into[register] = ranks[register]!
  })
  const unfolded = yield* countUnfolded(db, org, [index])
  for (const { hour, site, values } of unfolded.days()) {
    for (const key of values.keys()) {
      const [at, code] = fieldAndCode(key)
      const into = at === index ? ranksOf(hour, site) : null
      const [register, rank] = registerAndRank(code)
      if (into !== null) into[register] = Math.max(rank, into[register]!)
    }
  }
  const rows = Array.from(byStart, ([startMs, ranks]) => ({ startMs, count: estimate(ranks) }))
  return { rows: rows.sort((a, b) => a.startMs - b.startMs) }
}

/** The first hour of the day. */
function dayOf(ms: number): number {
  return Math.floor(ms / hourMs / dayHours) * dayHours
}

function startOf(hour: number, step: DistinctQuery['step']): number {
  if (step === 'day') return hour * hourMs
  const at = new Date(hour * hourMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1)
}
