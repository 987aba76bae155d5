/** Quantiles of durations by tool and time, and distinct sessions and subjects, from the rollups' sketches. */
import { bucketsMax, estimate, quantile, registerAndRank, registers } from '../rollups/sketches.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { member, otherCode, termTexts } from '../blocks/fields.ts'
import {
  childOf,
  dayDurationMember,
  dayHours,
  distinctMember,
  durationMember,
  fieldAndCode,
  type DayGroup,
} from '../rollups/counts.ts'
import {
  foldedRows,
  hourRange,
  inChunks,
  ofValues,
  siteCodes,
  stepStarts,
  typeCodes,
  unfoldedValues,
  type HourRange,
} from '../rollups/range.ts'
import { changedHours, foldState, type FoldState } from '../rollups/hours.ts'
import { hasStoredDay, storedSketches } from '../rollups/stored-days.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import type { Database } from '../../database.ts'
import type { Distinct, DistinctQuery, Durations, DurationsQuery } from '../../../contract/store.ts'
import { hourMs } from '../../../contract/units.ts'

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
    const counted = { org, index, sites, types }
    yield* foldedRows(db, 'hour, code, live + expired', counted, { from, until }, ([hour, code, events]) =>
      add(hour!, code!, events!),
    )
    const groups = index === dayDurationMember ? unfolded.days() : unfolded.groups()
    for (const { code, events, group } of unfoldedValues<DayGroup>(groups, counted, { from, until }))
      add(group.hour, code, events)
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
    const targetRanks = ranksOf(hour, site)
    for (let register = 0; targetRanks !== null && register < registers; register++)
      if (ranks[register]! > targetRanks[register]!) targetRanks[register] = ranks[register]!
  })
  const unfolded = yield* countUnfolded(db, org, [index])
  for (const { hour, site, values } of unfolded.days()) {
    for (const key of values.keys()) {
      const [fieldIndex, code] = fieldAndCode(key)
      const targetRanks = fieldIndex === index ? ranksOf(hour, site) : null
      const [register, rank] = registerAndRank(code)
      if (targetRanks !== null) targetRanks[register] = Math.max(rank, targetRanks[register]!)
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
  const date = new Date(hour * hourMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/*
 * Readers cache the sketches of single days. A fold changes only the days of its arrivals.
 */

/** Of one day and site. */
interface Sketch {
  hour: number // the first of the day
  site: number
  ranks: Uint8Array // the highest rank per register, 0 without a value
}

interface CachedDays extends FoldState {
  days: Map<string, Sketch[]> // by field and day
}

/** Of all organizations together: 4 MiB, which hold both fields of a year and a month of one site. */
const sketchesMax = 1_024
/**
 * Most arrivals whose blocks are read for their hours, 10 ms per million. Beyond it, reading a day again is as quick.
 */
const arrivalsMax = 2_000_000

const caches = new WeakMap<Database, Map<number, CachedDays>>()

/** Enables the cache on a reader's connection. */
export function cacheSketches(db: Database): void {
  caches.set(db, new Map())
}

/** Visits the sketches of a field, up to the watermark, by day. */
function* foldedSketches(
  db: Database,
  org: number,
  member: number,
  { from, until }: HourRange,
  visit: (sketch: Sketch) => void,
): Sliced<void> {
  const days = cachedDays(db, org)
  for (let hour = nextDay(db, org, member, from); hour !== null && hour < until;) {
    const key = `${member} ${hour}`
    let sketches = days.get(key)
    if (sketches === undefined) {
      sketches = yield* readDay(db, org, member, hour)
      if (reserve(db, org, sketches.length)) days.set(key, sketches)
    }
    sketches.forEach(visit)
    if (isSliceOver()) yield
    // The rows of two days are far apart in the file, so looking for the next day there may read the disk.
    const next = hour + dayHours
    const isKnown = days.has(`${member} ${next}`) || hasStoredDay(db, { org, index: member, day: next })
    hour = isKnown ? next : nextDay(db, org, member, hour + 1)
  }
}

/** The cached days that are still valid. Without a cache nothing outlives the query. */
function cachedDays(db: Database, org: number): Map<string, Sketch[]> {
  const orgCaches = caches.get(db)
  const state = foldState(db, org)
  if (orgCaches === undefined || state === null) return new Map()
  const cache = orgCaches.get(org)
  const behind = cache === undefined ? 0 : state.foldedSeq - cache.foldedSeq
  const holds = cache?.rewrites === state.rewrites && behind >= 0 && behind <= arrivalsMax
  const days = holds && cache !== undefined ? cache.days : new Map<string, Sketch[]>()
  if (behind > 0 && days.size > 0) {
    const changed = new Set<number>()
    for (const hour of changedHours(db, org, cache!.foldedSeq, state.foldedSeq))
      changed.add(Math.floor(hour / dayHours) * dayHours)
    for (const key of days.keys()) if (changed.has(Number(key.split(' ')[1]))) days.delete(key)
  }
  orgCaches.delete(org) // moves the organization to the end
  orgCaches.set(org, { ...state, days })
  return days
}

/** The first day of the rollups from an hour on. */
function nextDay(db: Database, org: number, member: number, from: number): number | null {
  const sql = 'SELECT min(hour) AS hour FROM rollup_value WHERE org = ? AND member = ? AND hour >= ?'
  return db.query<{ hour: number | null }, [number, number, number]>(sql).get(org, member, from)?.hour ?? null
}

function* readDay(db: Database, org: number, member: number, hour: number): Sliced<Sketch[]> {
  let bySite = storedSketches(db, { org, index: member, day: hour })
  if (bySite === null) {
    const read = (bySite = new Map<number, Uint8Array>())
    const sql = 'SELECT site, code FROM rollup_value WHERE org = ? AND member = ? AND live + expired > 0'
    yield* inChunks(db, ofValues, [org, member], { from: hour, until: hour + 1 }, (inChunk, key) => {
      const rows = db.query<unknown, number[]>(sql + inChunk).values(org, member, ...key)
      for (const [site, code] of rows as [number, number][]) {
        const ranks = read.getOrInsertComputed(site, () => new Uint8Array(registers))
        const [register, rank] = registerAndRank(code)
        ranks[register] = Math.max(rank, ranks[register]!)
      }
    })
  }
  return Array.from(bySite, ([site, ranks]) => ({ hour, site, ranks }))
}

/** Evicts the organizations queried longest ago, and this one's days when it alone exceeds the limit. */
function reserve(db: Database, org: number, newCount: number): boolean {
  const orgCaches = caches.get(db)
  if (orgCaches === undefined || newCount > sketchesMax) return false
  let sketchCount = newCount
  for (const { days } of orgCaches.values())
    for (const sketches of days.values()) sketchCount += sketches.length
  for (const [oldest, { days }] of orgCaches) {
    if (sketchCount <= sketchesMax) break
    for (const sketches of days.values()) sketchCount -= sketches.length
    days.clear()
    if (oldest !== org) orgCaches.delete(oldest)
  }
  return true
}
