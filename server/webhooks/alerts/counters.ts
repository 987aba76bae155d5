/** Counts what the alert rules of one organization need, from new events only; after a start from the last hour. */
import { demoKeyId, importKeyId } from '../../ids.ts'
import { positionBefore } from '../endpoints/replay-range.ts'
import type { Arrivals, EventCountQuery, EventStore, StoredEvent } from '../../../db/contract/store.ts'
import type { RuleKind } from '../../../db/contract/alerts.ts'
import { minuteMs } from '../../../db/contract/units.ts'

export interface Share {
  total: number
  bad: number
}

/** Counts per minute of the last hour. */
interface Rates {
  /** Adds events that arrived around `atMs` and how many of them were blocked. */
  addBlocked(atMs: number, share: Share): void
  addExecutions(atMs: number, tool: string, share: Share): void
  /** The share of blocked events in the hour before `now`. */
  blocked(now: number): Share
  /** The share of failed executions of each tool in the hour before `now`. */
  toolErrors(now: number): Map<string, Share>
}

export const windowMs = 60 * minuteMs
/** Tools counted per minute. More are ignored, so that a flood of names costs no memory. */
const toolsMax = 1_000

interface Minute {
  all: Share
  tools: Map<string, Share>
}

export function makeRates(): Rates {
  const minutes = new Map<number, Minute>() // by number since 1970

  function forget(now: number): void {
    const oldest = Math.floor((now - windowMs) / minuteMs)
    for (const minute of minutes.keys()) if (minute <= oldest) minutes.delete(minute)
  }

  function minuteOf(atMs: number): Minute {
    const number = Math.floor(atMs / minuteMs)
    const minute = minutes.get(number) ?? { all: { total: 0, bad: 0 }, tools: new Map<string, Share>() }
    minutes.set(number, minute)
    return minute
  }

  return {
    addBlocked(atMs, share) {
      const minute = minuteOf(atMs)
      minute.all = plus(minute.all, share)
    },
    addExecutions(atMs, tool, share) {
      const { tools } = minuteOf(atMs)
      if (!tools.has(tool) && tools.size >= toolsMax) return
      tools.set(tool, plus(tools.get(tool) ?? emptyShare, share))
    },
    blocked(now) {
      forget(now)
      return [...minutes.values()].reduce((sum, { all: minuteShare }) => plus(sum, minuteShare), emptyShare)
    },
    toolErrors(now) {
      forget(now)
      const sums = new Map<string, Share>()
      for (const { tools } of minutes.values()) {
        for (const [tool, share] of tools) sums.set(tool, plus(sums.get(tool) ?? emptyShare, share))
      }
      return sums
    },
  }
}

const emptyShare: Share = { total: 0, bad: 0 }

function plus(a: Share, b: Share): Share {
  return { total: a.total + b.total, bad: a.bad + b.bad }
}

export interface OrgCounters {
  rates: Rates
  newVendors: { vendor: string; firstAtMs: number }[]
  /** When the last live event arrived; null: never, or too many arrivals ago. */
  lastEventAt(): Promise<number | null>
  /** Counts the events since the last update, as far as rules of these `kinds` need them. */
  update(kinds: ReadonlySet<RuleKind>, now: number): Promise<void>
}

/**
 * `sightglass demo` and `sightglass import` store past events, so no rule alerts on them. Their vendors count as known
 * afterwards.
 */
const historyKeys = [demoKeyId, importKeyId]

/** Arrivals of one query: the store counts 100,000 in about 50 ms. */
const arrivalsMax = 100_000
const countMsMax = 5_000
export const newVendorMs = 24 * 3_600_000
/** New vendors per day: a sender of random names must not cause a message for each. */
const newVendorsMax = 100
/** After a start the last hour is counted in slices of this length. */
const sliceMs = 5 * 60_000

export async function orgCounters(events: EventStore, orgId: string, now: number): Promise<OrgCounters> {
  const memory = { rates: makeRates(), newVendors: [] as OrgCounters['newVendors'] }
  let position = await positionBefore(events, orgId, now - windowMs)

  /** A vendor is new when no stored event before, of whatever key, has it. */
  async function addNewVendors(arrivals: Arrivals): Promise<void> {
    const max = newVendorsMax - memory.newVendors.length
    if (max <= 0) return
    const { values } = await events.newValues({ orgId, field: 'vendor', arrivals, max })
    for (const { value, receivedAtMs } of values)
      memory.newVendors.push({ vendor: value, firstAtMs: receivedAtMs })
  }

  /** By the minute of arrival. Tools beyond the store's limit of values count as none. */
  async function addExecutions(arrivals: Arrivals, atMs: number): Promise<void> {
    const firstMinute = Math.floor((atMs - windowMs) / minuteMs) * minuteMs
    const minutes = Array.from({ length: (2 * windowMs) / minuteMs }, (_, n) => firstMinute + n * minuteMs)
    const { breakdowns } = await events.filteredCounts({
      orgId,
      arrivals,
      by: 'received',
      edges: minutes,
      filter: { types: ['tool.executed'] },
      breakdowns: [{ by: 'tool' }],
      budgetMs: countMsMax,
    })
    for (const { value, outcome, startMs, count } of breakdowns[0] ?? []) {
      if (value === null || value === '') continue
      memory.rates.addExecutions(startMs, value, { total: count, bad: outcome === 'error' ? count : 0 })
    }
  }

  async function readEvents(untilSeq: number, atMs: number, kinds: ReadonlySet<RuleKind>): Promise<void> {
    for (let afterSeq = position; afterSeq < untilSeq; afterSeq += arrivalsMax) {
      const last = Math.min(afterSeq + arrivalsMax, untilSeq)
      const arrivals = { afterSeq, untilSeq: last, exceptKeys: historyKeys }
      if (kinds.has('tool_error_rate')) await addExecutions(arrivals, atMs)
      if (kinds.has('new_vendor')) await addNewVendors(arrivals)
    }
  }

  async function readTo(untilSeq: number, atMs: number, kinds: ReadonlySet<RuleKind>): Promise<void> {
    if (untilSeq <= position) return
    await readEvents(untilSeq, atMs, kinds)
    if (kinds.has('blocked_share')) {
      const range = { orgId, afterSeq: position, ceilingSeq: untilSeq }
      const bad = await countArrivals(events, { ...range, filter: { outcomes: ['blocked'] } })
      memory.rates.addBlocked(atMs, { total: await countArrivals(events, { ...range, filter: {} }), bad })
    }
    position = untilSeq
  }

  let isFirst = true
  let last: Arrival | null = null
  return {
    ...memory,
    async lastEventAt() {
      last = (await lastArrival(events, { orgId, afterSeq: last?.seq ?? 0, exceptKeys: historyKeys })) ?? last
      return last?.receivedAtMs ?? null
    },
    async update(kinds, atMs) {
      const old = memory.newVendors.findLastIndex(({ firstAtMs }) => firstAtMs <= atMs - newVendorMs)
      memory.newVendors.splice(0, old + 1)
      if (isFirst) {
        for (let fromMs = now - windowMs; fromMs < now; fromMs += sliceMs) {
          await readTo(await positionBefore(events, orgId, fromMs + sliceMs), fromMs + sliceMs / 2, kinds)
        }
        isFirst = false
      }
      await readTo(await events.lastSeq(orgId), atMs, kinds)
    },
  }
}

/** The store counts without reading events, because this runs every minute whatever the traffic. */
async function countArrivals(events: EventStore, query: EventCountQuery): Promise<number> {
  let total = 0
  for (let afterSeq = query.afterSeq; afterSeq < query.ceilingSeq;) {
    const { count, lastSeq } = await events.count({ ...query, afterSeq, exceptKeys: historyKeys })
    total += count
    if (lastSeq <= afterSeq) break
    afterSeq = lastSeq
  }
  return total
}

type Arrival = Pick<StoredEvent, 'seq' | 'receivedAtMs'>

/** A search ends after this many arrivals, which takes 1 to 2 s. */
const backMax = 2 ** 24

/** The newest arrival after `afterSeq` that none of the keys sent, or null. */
async function lastArrival(
  events: Pick<EventStore, 'tail' | 'lastSeq'>,
  query: { orgId: string; afterSeq: number; exceptKeys: string[] },
): Promise<Arrival | null> {
  const firstAfter = async (afterSeq: number): Promise<Arrival | null> =>
    (await events.tail({ ...query, filter: {}, afterSeq, limit: 1 })).events[0] ?? null
  let end = await events.lastSeq(query.orgId) // no such arrival after it
  let arrival: Arrival | null = null
  for (let back = 1; arrival === null && end > query.afterSeq && back <= backMax; back *= 2) {
    const from = Math.max(query.afterSeq, end - back)
    arrival = await firstAfter(from)
    if (arrival === null) end = from
  }
  while (arrival !== null && arrival.seq < end) {
    const middle = Math.floor((arrival.seq + end) / 2)
    const later = await firstAfter(middle)
    if (later === null) end = middle
    else arrival = later
  }
  return arrival
}
