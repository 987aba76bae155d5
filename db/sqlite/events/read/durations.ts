/** Quantiles of durations by tool and time, from their rollups and what is not folded yet. */
import type { Database } from 'bun:sqlite'
import type { Durations, DurationsQuery } from '../../../contract/store.ts'
import { bucketsMax, quantile } from '../rollups/duration-buckets.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { member } from '../blocks/fields.ts'
import {
  childOf,
  dayDurationMember,
  dayHours,
  durationMember,
  hourMs,
  memberAndCode,
  otherCode,
} from '../rollups/counts.ts'
import { foldedRows, hourRange, siteCodes, stepStarts, typeCodes, type HourRange } from '../rollups/range.ts'
import { termTexts } from '../blocks/fields.ts'
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
        const [at, code] = memberAndCode(key)
        if (at === index) add(hour, code, events)
      }
    }
  }
  return { rows: namedRows(db, org, byStart) }
}

/** Whether every step is whole UTC days, of which there are rows. */
function byWholeDays({ stepMs, edges }: DurationsQuery): boolean {
  const isDays = (ms: number) => ms % (dayHours * hourMs) === 0
  // The outer edges may lie inside a day: what is left at both ends is read from the rows of hours.
  return edges !== undefined ? edges.slice(1, -1).every(isDays) : stepMs === null || isDays(stepMs)
}

/** Whole days are read from the rows of days, and what is left at both ends from those of hours. */
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

/** By time, then the most called first. */
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
