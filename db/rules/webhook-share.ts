/** Shares the dispatcher's free slots among organizations, so that a hanging receiver delays no other delivery. */
import type { Held, Share } from '../contract/webhooks.ts'

/** How long a lane's receiver occupies a slot, according to its last or current attempt. */
export type Pace = 'quick' | 'slow' | 'unknown'

/** A lane with deliveries that are due. */
export interface DueLane {
  lane: string
  orgId: string
  pace: Pace
  dueAtMs: number // due time of its oldest delivery
  wants: number // slots it could use now
}

/** Slots for slow lanes, however busy the quick ones are. */
const slowMin = 4
/** First tries of an organization that may begin beside everything else it sends. */
const firstTriesMin = 2
/** Within an organization a slow lane waits behind the others for at most this time. */
const behindMs = { quick: 0, unknown: 1_000, slow: 30_000 }
const paces = ['quick', 'unknown', 'slow'] as const

type Queues = { [pace in Pace]: DueLane[] }

/** How many of the `free` slots each lane gets. The organization with the fewest slots comes first. */
export function shareSlots(lanes: readonly DueLane[], free: number, share: Share): Map<string, number> {
  const queues = new Map<string, Queues>()
  for (const lane of lanes.toSorted((a, b) => a.dueAtMs - b.dueAtMs)) {
    const orgQueues = queues.get(lane.orgId) ?? { quick: [], unknown: [], slow: [] }
    queues.set(lane.orgId, orgQueues)
    if (lane.wants > 0) orgQueues[lane.pace].push({ ...lane })
  }
  const heldByOrg = new Map<string, Held>()
  for (const orgId of queues.keys()) {
    heldByOrg.set(orgId, { ...(share.held[orgId] ?? { count: 0, firstTries: 0, hangs: false }) })
  }
  const granted = new Map<string, number>()
  for (let slow = share.slow; free > 0; free--) {
    const next = pick(queues, heldByOrg, (pace, slots) => free > reservedFrom(pace, slots, slow, share))
    if (next === null) break
    const { queue, lane } = next
    granted.set(lane.lane, (granted.get(lane.lane) ?? 0) + 1)
    const orgSlots = heldByOrg.get(lane.orgId)!
    orgSlots.count++
    if (lane.pace === 'slow') slow++
    if (lane.pace === 'unknown') orgSlots.firstTries++
    // Every lane gets one slot before any gets two.
    queue.shift()
    if (--lane.wants > 0) queue.push(lane)
  }
  return granted
}

function reservedFrom(pace: Pace, orgSlots: Held, slow: number, { reserved }: Share): number {
  if (pace === 'slow') return slow < slowMin ? reserved.forFirstTries : reserved.forUntried
  if (orgSlots.count === 0 && !(orgSlots.hangs && pace === 'unknown')) return 0
  if (pace === 'quick') return reserved.forFirstTries
  return orgSlots.firstTries < firstTriesMin ? reserved.forFirstSend : reserved.forQuick
}

/** The head of the next queue: that of the organization with the fewest slots. */
function pick(
  queues: Map<string, Queues>,
  heldByOrg: Map<string, Held>,
  mayUse: (pace: Pace, orgSlots: Held) => boolean,
): { queue: DueLane[]; lane: DueLane } | null {
  let best: { queue: DueLane[]; lane: DueLane; count: number; atMs: number } | null = null
  for (const [orgId, orgQueues] of queues) {
    const has = heldByOrg.get(orgId)!
    for (const pace of paces) {
      const lane = orgQueues[pace][0]
      if (lane === undefined || !mayUse(pace, has)) continue
      const atMs = lane.dueAtMs + behindMs[pace]
      const isBetter =
        best === null || has.count < best.count || (has.count === best.count && atMs < best.atMs)
      if (isBetter) best = { queue: orgQueues[pace], lane, count: has.count, atMs }
    }
  }
  return best
}
