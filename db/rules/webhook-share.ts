/** Shares the dispatcher's free slots among organizations, so that a hanging receiver delays no other delivery. */

/** How long a lane's receiver occupies a slot: known from its last attempt, or from one that runs. */
export type Pace = 'quick' | 'slow' | 'unknown'

/** The slots that an organization occupies. */
export interface Held {
  count: number
  hangs: boolean // several of its lanes are slow
}

/** What the sender knows when it asks for more. */
export interface Share {
  held: { [orgId: string]: Held }
  slow: number // slots that slow lanes occupy, all organizations together
  paces: { [lane: string]: 'quick' | 'slow' }
  /** Slots that only the first send of an organization may occupy: one each, however many come at once. */
  keptForFirst: number
  /** Slots that slow lanes and lanes of unknown pace leave free, these included. */
  keptForQuick: number
}

/** A lane with deliveries that are due. */
export interface DueLane {
  lane: string
  orgId: string
  pace: Pace
  dueAtMs: number // of the oldest one
  wants: number // slots it could use now
}

/** Slow lanes always get a few slots, however busy the quick ones are. */
const slowMin = 4
/** Within an organization a slow lane goes behind the others, but not for ever. */
const behindMs = { quick: 0, unknown: 1_000, slow: 30_000 }
const paces = ['quick', 'unknown', 'slow'] as const

type Queues = { [pace in Pace]: DueLane[] }

/** How many of the `free` slots each lane gets. The organization that occupies the fewest slots comes first. */
export function shareSlots(lanes: readonly DueLane[], free: number, share: Share): Map<string, number> {
  const queues = new Map<string, Queues>()
  for (const lane of lanes.toSorted((a, b) => a.dueAtMs - b.dueAtMs)) {
    const own = queues.get(lane.orgId) ?? { quick: [], unknown: [], slow: [] }
    queues.set(lane.orgId, own)
    if (lane.wants > 0) own[lane.pace].push({ ...lane })
  }
  const held = new Map<string, Held>()
  for (const orgId of queues.keys()) {
    held.set(orgId, { ...(share.held[orgId] ?? { count: 0, hangs: false }) })
  }
  const granted = new Map<string, number>()
  for (let slow = share.slow; free > 0; free--) {
    const next = pick(queues, held, (pace, own) => free > keptFrom(pace, own, slow, share))
    if (next === null) break
    const { queue, lane } = next
    granted.set(lane.lane, (granted.get(lane.lane) ?? 0) + 1)
    const own = held.get(lane.orgId)!
    own.count++
    if (lane.pace === 'slow') slow++
    // Every lane gets one before any gets two.
    queue.shift()
    if (--lane.wants > 0) queue.push(lane)
  }
  return granted
}

function keptFrom(pace: Pace, own: Held, slow: number, share: Share): number {
  const { keptForFirst, keptForQuick } = share
  if (pace === 'slow') return slow < slowMin ? (keptForFirst + keptForQuick) / 2 : keptForQuick
  if (own.count === 0 && !(own.hangs && pace === 'unknown')) return 0
  return pace === 'quick' ? keptForFirst : keptForQuick
}

/** The head of the queue that is served next, of the organization that has the fewest slots. */
function pick(
  queues: Map<string, Queues>,
  held: Map<string, Held>,
  mayTake: (pace: Pace, own: Held) => boolean,
): { queue: DueLane[]; lane: DueLane } | null {
  let best: { queue: DueLane[]; lane: DueLane; count: number; atMs: number } | null = null
  for (const [orgId, own] of queues) {
    const has = held.get(orgId)!
    for (const pace of paces) {
      const lane = own[pace][0]
      if (lane === undefined || !mayTake(pace, has)) continue
      const atMs = lane.dueAtMs + behindMs[pace]
      const isBetter =
        best === null || has.count < best.count || (has.count === best.count && atMs < best.atMs)
      if (isBetter) best = { queue: own[pace], lane, count: has.count, atMs }
    }
  }
  return best
}
