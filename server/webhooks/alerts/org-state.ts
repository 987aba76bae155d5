/** What the rules remember of one organization: read on from where it was, or after a start from an hour back. */
import { demoKeyId, importKeyId } from '../../ingest/sender-ids.ts'
import { lastArrival, positionBefore, type Arrival } from '../endpoints/position.ts'
import type { EventCountQuery, EventStore, StoredEvent } from '../../../db/contract/store.ts'
import type { RuleKind } from '../../../db/contract/webhooks.ts'

/** Counts of the last hour of one organization, minute by minute: what the rules about shares look at. */
export interface Share {
  total: number
  bad: number
}

interface Rates {
  /** Arrivals around `atMs`, and how many of them were blocked. */
  addBlocked(atMs: number, share: Share): void
  addExecution(atMs: number, tool: string, isError: boolean): void
  /** Blocked among all events of the hour before `now`. */
  blocked(now: number): Share
  /** Errors among the executions of each tool in the hour before `now`. */
  toolErrors(now: number): Map<string, Share>
}

const minuteMs = 60_000
export const windowMs = 60 * minuteMs
/** Tools that a minute may hold beside each other; more are not looked at, so that a flood of names costs nothing. */
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
    addExecution(atMs, tool, isError) {
      const { tools } = minuteOf(atMs)
      if (!tools.has(tool) && tools.size >= toolsMax) return
      tools.set(tool, plus(tools.get(tool) ?? none, { total: 1, bad: isError ? 1 : 0 }))
    },
    blocked(now) {
      forget(now)
      return [...minutes.values()].reduce((sum, { all }) => plus(sum, all), none)
    },
    toolErrors(now) {
      forget(now)
      const sums = new Map<string, Share>()
      for (const { tools } of minutes.values()) {
        for (const [tool, share] of tools) sums.set(tool, plus(sums.get(tool) ?? none, share))
      }
      return sums
    },
  }
}

const none: Share = { total: 0, bad: 0 }

function plus(a: Share, b: Share): Share {
  return { total: a.total + b.total, bad: a.bad + b.bad }
}

export interface OrgMemory {
  rates: Rates
  newVendors: { vendor: string; firstAtMs: number }[]
  /** When an event came last that was no history; null: never, or too many arrivals ago. */
  lastEventAt(): Promise<number | null>
  /** Reads what arrived since; `kinds` are the rules there are, and only what they need is read. */
  readOn(kinds: ReadonlySet<RuleKind>, now: number): Promise<void>
}

/**
 * `sightglass demo` and `sightglass import` store history: it happened before, so no rule speaks of it. A vendor of
 * theirs is known from then on.
 */
const historyKeys = [demoKeyId, importKeyId]

const tailMax = 1_000
const vendorsMax = 10_000
export const newVendorMs = 24 * 3_600_000
/** A day's new vendors at most: whoever sends random names must not make a message of each. */
const newVendorsMax = 100
/** After a start the hour behind it is counted in pieces of this length. */
const sliceMs = 5 * 60_000

export async function orgMemory(events: EventStore, orgId: string, now: number): Promise<OrgMemory> {
  const memory = { rates: makeRates(), newVendors: [] as OrgMemory['newVendors'] }
  const vendors = new Set<string>() // seen since the start; asked once whether they are new
  let position = await positionBefore(events, orgId, now - windowMs)

  /** Any earlier event of the vendor, as far back as events are kept, makes it an old acquaintance. */
  async function meet(vendor: string, { seq, receivedAtMs }: StoredEvent): Promise<void> {
    if (vendor === '' || vendors.has(vendor) || memory.newVendors.length >= newVendorsMax) return
    if (vendors.size >= vendorsMax) vendors.clear() // asked again, that is all
    vendors.add(vendor)
    const query = { orgId, filter: { vendors: [vendor] }, limit: 1, before: null, ceilingSeq: seq - 1 }
    const earlier = await events.page(query)
    if (earlier.events.length === 0) memory.newVendors.push({ vendor, firstAtMs: receivedAtMs })
  }

  async function readEvents(untilSeq: number, kinds: ReadonlySet<RuleKind>): Promise<void> {
    const wantsAll = kinds.has('new_vendor')
    if (!wantsAll && !kinds.has('tool_error_rate')) return
    const filter = wantsAll ? {} : { types: ['tool.executed'] }
    for (let afterSeq = position; afterSeq < untilSeq;) {
      const tail = await events.tail({ orgId, filter, afterSeq, limit: tailMax, exceptKeys: historyKeys })
      for (const stored of tail.events.filter(({ seq }) => seq <= untilSeq)) {
        const { type, outcome, tool, agent } = JSON.parse(stored.json) as EventParts
        if (type === 'tool.executed' && tool)
          memory.rates.addExecution(stored.receivedAtMs, tool, outcome === 'error')
        if (wantsAll) await meet(agent?.vendor ?? '', stored)
      }
      if (tail.lastSeq <= afterSeq) break
      afterSeq = tail.lastSeq
    }
  }

  async function readTo(untilSeq: number, atMs: number, kinds: ReadonlySet<RuleKind>): Promise<void> {
    if (untilSeq <= position) return
    await readEvents(untilSeq, kinds)
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
    async readOn(kinds, at) {
      const old = memory.newVendors.findLastIndex(({ firstAtMs }) => firstAtMs <= at - newVendorMs)
      memory.newVendors.splice(0, old + 1)
      if (isFirst) {
        for (let fromMs = now - windowMs; fromMs < now; fromMs += sliceMs) {
          await readTo(await positionBefore(events, orgId, fromMs + sliceMs), fromMs + sliceMs / 2, kinds)
        }
        isFirst = false
      }
      await readTo(await events.lastSeq(orgId), at, kinds)
    },
  }
}

/** Counted where the events lie, without reading them: this is asked every minute, whatever the traffic. */
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

interface EventParts {
  type: string
  outcome: string
  tool?: string | null
  agent?: { vendor?: string | null } | null
}
