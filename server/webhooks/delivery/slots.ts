/** Tracks claims by lane: which may start now, who occupies the send slots, and how far ahead to claim. */
import type { Claim } from '../../../db/contract/webhooks.ts'
import type { Held, Share } from '../../../db/contract/webhooks.ts'
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
  sending: Map<Claim, Sending>
  ready: { claim: Claim; claimedAtMs: number }[]
  ahead: number
  isSlow: boolean | null // null: never tried
}

/** An attempt that is running. */
interface Sending {
  sinceMs: number
  isFirstTry: boolean // the lane had no earlier attempt
  isBeside: boolean // it hangs, and has given its slot back
}

/** All times are monotonic. */
export interface Lanes {
  add(claims: Claim[], now: number): void
  /** Removes and returns the claims that may start now, and those to release; `free` is the number of free slots. */
  start(free: number, now: number): { start: Claim[]; release: Claim[] }
  ended(claim: Claim, attempt: { durationMs: number; isDelivered: boolean }): void
  /**
   * Moves first tries that hang beside the slots, within limits, so that the next first tries can begin. Returns the
   * occupied slots.
   */
  occupied(now: number): number
  /** When `occupied` may become less although no attempt ends; null: not by waiting. */
  nextChangeMs(now: number): number | null
  /** How many claims beyond its limit each lane may hold. */
  ahead(): { [lane: string]: number }
  /** Whether this claim has not started. */
  isReady(deliveryId: string, lane: string): boolean
  /** Who occupies the slots, and which lanes are slow. */
  share(now: number): Share
  /** Removes and returns every claim that has not started. */
  removeAll(): Claim[]
}

export function makeLanes(perLaneMax: number): Lanes {
  const lanes = new Map<string, Lane>() // in order of their last attempt

  function laneOf({ lane: name, delivery: { orgId } }: Claim): Lane {
    const existingLane = lanes.get(name)
    if (existingLane !== undefined) return existingLane
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
      for (const lane of [
        ...waiting.filter((waitingLane) => !isAhead(waitingLane)),
        ...waiting.filter(isAhead),
      ]) {
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
    occupied(now) {
      moveBeside(lanes, now)
      let slots = 0
      for (const lane of lanes.values()) slots += slotsOf(lane)
      return slots
    },
    nextChangeMs(now) {
      let changeMs = Infinity
      for (const { sending } of lanes.values()) {
        for (const attempt of sending.values()) {
          if (isYoungFirstTry(attempt, now)) changeMs = Math.min(changeMs, attempt.sinceMs + slowMs)
        }
      }
      return changeMs === Infinity ? null : changeMs
    },
    isReady(deliveryId, lane) {
      const ready = lanes.get(lane)?.ready ?? []
      return ready.some(({ claim }) => claim.delivery.id === deliveryId)
    },
    share: (now) => shareOf(lanes, now),
    removeAll: () => [...lanes.values()].flatMap(({ ready }) => ready.splice(0).map(({ claim }) => claim)),
  }
}

const isYoungFirstTry = ({ isFirstTry, sinceMs }: Sending, now: number) =>
  isFirstTry && now - sinceMs < slowMs

function moveBeside(lanes: Map<string, Lane>, now: number): void {
  let total = 0
  const byOrg = new Map<string, number>()
  const hanging: { orgId: string; attempt: Sending }[] = []
  for (const { orgId, sending } of lanes.values()) {
    for (const attempt of sending.values()) {
      if (attempt.isBeside) {
        total++
        byOrg.set(orgId, (byOrg.get(orgId) ?? 0) + 1)
      } else if (attempt.isFirstTry && now - attempt.sinceMs >= slowMs) {
        hanging.push({ orgId, attempt })
      }
    }
  }
  for (const { orgId, attempt } of hanging) {
    const count = byOrg.get(orgId) ?? 0
    if (total >= limits.webhookHangingMax || count >= limits.webhookHangingPerOrgMax) continue
    attempt.isBeside = true
    total++
    byOrg.set(orgId, count + 1)
  }
}

function slotsOf({ sending }: Lane): number {
  let slots = 0
  for (const { isBeside } of sending.values()) if (!isBeside) slots++
  return slots
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
  movedClaims: { start: Claim[]; release: Claim[] },
): void {
  while (lane.ready.length > 0 && lane.sending.size < perLaneMax) {
    const { claim, claimedAtMs } = lane.ready[0]!
    const isOver = now - claimedAtMs > waitMsMax
    // Claims ahead leave the slots free that are reserved for the first send of an organization.
    const reserved = claim.isAhead ? limits.webhookSlots.forFirstSend : 0
    if (!isOver && free - movedClaims.start.length <= reserved) return
    lane.ready.shift()
    if (isOver) {
      movedClaims.release.push(claim)
    } else {
      lane.sending.set(claim, { sinceMs: now, isFirstTry: lane.isSlow === null, isBeside: false })
      movedClaims.start.push(claim)
    }
  }
}

function shareOf(lanes: Map<string, Lane>, now: number): Share {
  const heldByOrg: { [orgId: string]: Held } = {}
  const slowLanes = new Map<string, number>()
  const paces: Share['paces'] = {}
  let slow = 0
  for (const [name, lane] of lanes) {
    const { orgId, isSlow: wasSlow } = lane
    const sending = [...lane.sending.values()]
    const isSlow = wasSlow === true || sending.some(({ sinceMs }) => now - sinceMs >= slowMs)
    if (isSlow || wasSlow !== null) paces[name] = isSlow ? 'slow' : 'quick'
    const orgSlots = (heldByOrg[orgId] ??= { count: 0, firstTries: 0, hangs: false })
    orgSlots.count += slotsOf(lane)
    orgSlots.firstTries += sending.filter((attempt) => isYoungFirstTry(attempt, now)).length
    if (isSlow) {
      slow += slotsOf(lane)
      const count = (slowLanes.get(orgId) ?? 0) + 1
      slowLanes.set(orgId, count)
      orgSlots.hangs = count >= hangingLanesMin
    }
  }
  return { held: heldByOrg, slow, paces, reserved: limits.webhookSlots }
}
