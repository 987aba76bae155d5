/** The claims at hand, lane by lane: what may start now, how far ahead to claim, what has waited too long. */
import type { Claim } from '../../db/webhook-store.ts'

/** An attempt that ends within this shows a receiver that is worth claiming ahead for. */
const quickMs = 250
const aheadMax = 30
/** A claim that could not start by then goes back: what is left of its lease must cover a whole attempt. */
const waitMsMax = 10_000

interface Lane {
  sending: number
  ready: { claim: Claim; claimedAtMs: number }[]
  ahead: number
}

export interface Lanes {
  add(claims: Claim[], now: number): void
  /** Takes the claims that may start now, counting them as being sent; `room` is what is free over all lanes. */
  start(room: number, now: number): { start: Claim[]; release: Claim[] }
  /** An attempt has ended. */
  ended(claim: Claim, isQuick: boolean): void
  /** How many claims beyond its limit each lane may have. */
  ahead(): { [lane: string]: number }
  /** Everything that has not started. */
  takeAll(): Claim[]
}

export function isQuick(durationMs: number, isDelivered: boolean): boolean {
  return isDelivered && durationMs < quickMs
}

export function makeLanes(perLaneMax: number): Lanes {
  const lanes = new Map<string, Lane>()

  function laneOf(name: string): Lane {
    const lane = lanes.get(name) ?? { sending: 0, ready: [], ahead: 0 }
    lanes.set(name, lane)
    return lane
  }

  return {
    add(claims, now) {
      for (const claim of claims) laneOf(claim.lane).ready.push({ claim, claimedAtMs: now })
    },
    start(room, now) {
      const start: Claim[] = []
      const release: Claim[] = []
      for (const lane of lanes.values()) {
        while (lane.ready.length > 0 && lane.sending < perLaneMax && start.length < room) {
          const { claim, claimedAtMs } = lane.ready.shift()!
          if (now - claimedAtMs > waitMsMax) {
            release.push(claim)
            continue
          }
          lane.sending++
          start.push(claim)
        }
      }
      return { start, release }
    },
    ended({ lane: name }, quick) {
      const lane = laneOf(name)
      lane.sending--
      lane.ahead = quick ? Math.min(aheadMax, Math.max(2, lane.ahead * 2)) : 0
      if (lane.sending === 0 && lane.ready.length === 0 && !quick) lanes.delete(name)
    },
    ahead() {
      for (const [name, lane] of lanes) {
        if (lane.sending === 0 && lane.ready.length === 0 && lanes.size > 1_000) lanes.delete(name)
      }
      return Object.fromEntries(
        [...lanes].filter(([, { ahead }]) => ahead > 0).map(([name, { ahead }]) => [name, ahead]),
      )
    },
    takeAll() {
      const all = [...lanes.values()].flatMap(({ ready }) => ready.splice(0).map(({ claim }) => claim))
      return all
    },
  }
}
