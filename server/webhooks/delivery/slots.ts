/** Tracks claims by lane: which may start now, who occupies the send slots, and how far ahead to claim. */
import type { Claim } from '../../../db/contract/webhooks.ts'
import type { Held, Share } from '../../../db/rules/webhook-share.ts'
import { limits } from '../../limits.ts'

/** Claims ahead only for receivers that answer within this time. */
const quickMs = 250
const aheadMax = 30
/** A claim that has waited this long is released, because the rest of its lease must cover a whole attempt. */
const waitMsMax = 10_000
/** A receiver is slow from the moment an attempt takes this long until one is quicker. */
const slowMs = 2_000
/** With this many slow lanes an organization's untried receivers count as slow too. */
const hangingLanesMin = 4
/** Idle lanes that are remembered for their speed. */
const lanesMax = 1_000

interface Lane {
  orgId: string
  sending: Map<Claim, number> // start times
  ready: { claim: Claim; claimedAtMs: number }[]
  ahead: number
  isSlow: boolean | null // null: never tried
}

/** All times are monotonic. */
export interface Lanes {
  add(claims: Claim[], now: number): void
  /** Removes and returns the claims that may start now, and those to release; `free` is the number of free slots. */
  start(free: number, now: number): { start: Claim[]; release: Claim[] }
  ended(claim: Claim, attempt: { durationMs: number; isDelivered: boolean }): void
  /** How many claims beyond its limit each lane may hold. */
  ahead(): { [lane: string]: number }
  /** Who occupies the slots, and which lanes are slow. */
  share(now: number): Share
  /** Removes and returns every claim that has not started. */
  removeAll(): Claim[]
}

export function makeLanes(perLaneMax: number): Lanes {
  const lanes = new Map<string, Lane>() // in order of their last attempt

  function laneOf({ lane: name, delivery: { orgId } }: Claim): Lane {
    const known = lanes.get(name)
    if (known !== undefined) return known
    const lane: Lane = { orgId, sending: new Map(), ready: [], ahead: 0, isSlow: null }
    lanes.set(name, lane)
    return lane
  }

  return {
    add(claims, now) {
      for (const claim of claims) laneOf(claim).ready.push({ claim, claimedAtMs: now })
    },
    start(free, now) {
      const moved = { start: [] as Claim[], release: [] as Claim[] }
      const waiting = [...lanes.values()].filter(({ ready }) => ready.length > 0)
      const isAhead = ({ ready }: Lane) => ready[0]?.claim.isAhead === true
      for (const lane of [...waiting.filter((each) => !isAhead(each)), ...waiting.filter(isAhead)]) {
        startReady(lane, perLaneMax, { free, now }, moved)
      }
      return moved
    },
    ended(claim, { durationMs, isDelivered }) {
      const lane = laneOf(claim)
      lane.sending.delete(claim)
      lane.isSlow = durationMs >= slowMs
      lane.ahead = isDelivered && durationMs < quickMs ? Math.min(aheadMax, Math.max(2, lane.ahead * 2)) : 0
      lanes.delete(claim.lane)
      lanes.set(claim.lane, lane)
      forget(lanes)
    },
    ahead() {
      const ahead = [...lanes].filter((entry) => entry[1].ahead > 0)
      return Object.fromEntries(ahead.map(([name, lane]) => [name, lane.ahead]))
    },
    share: (now) => shareOf(lanes, now),
    removeAll: () => [...lanes.values()].flatMap(({ ready }) => ready.splice(0).map(({ claim }) => claim)),
  }
}

/** Drops the least recently used idle lanes. */
function forget(lanes: Map<string, Lane>): void {
  for (const [name, { sending, ready }] of lanes) {
    if (lanes.size <= lanesMax) return
    if (sending.size === 0 && ready.length === 0) lanes.delete(name)
  }
}

function startReady(
  lane: Lane,
  perLaneMax: number,
  { free, now }: { free: number; now: number },
  into: { start: Claim[]; release: Claim[] },
): void {
  while (lane.ready.length > 0 && lane.sending.size < perLaneMax) {
    const { claim, claimedAtMs } = lane.ready[0]!
    const isOver = now - claimedAtMs > waitMsMax
    // Claims ahead leave the slots free that are reserved for the first send of an organization.
    const reserved = claim.isAhead ? limits.webhookSlotsForFirst : 0
    if (!isOver && free - into.start.length <= reserved) return
    lane.ready.shift()
    if (isOver) {
      into.release.push(claim)
    } else {
      lane.sending.set(claim, now)
      into.start.push(claim)
    }
  }
}

function shareOf(lanes: Map<string, Lane>, now: number): Share {
  const held: { [orgId: string]: Held } = {}
  const slowLanes = new Map<string, number>()
  const paces: Share['paces'] = {}
  let slow = 0
  for (const [name, { orgId, sending, isSlow: wasSlow }] of lanes) {
    const isSlow = wasSlow === true || [...sending.values()].some((sinceMs) => now - sinceMs >= slowMs)
    if (isSlow || wasSlow !== null) paces[name] = isSlow ? 'slow' : 'quick'
    const own = (held[orgId] ??= { count: 0, hangs: false })
    own.count += sending.size
    if (isSlow) {
      slow += sending.size
      const count = (slowLanes.get(orgId) ?? 0) + 1
      slowLanes.set(orgId, count)
      own.hangs = count >= hangingLanesMin
    }
  }
  return {
    held,
    slow,
    paces,
    reservedForFirst: limits.webhookSlotsForFirst,
    reservedForQuick: limits.webhookSlotsForQuick,
  }
}
