/** Shares the dispatcher's free slots among organizations, so that a hanging receiver delays no other delivery. */

/** How long a lane's receiver occupies a slot, according to its last or current attempt. */
export type Pace = 'quick' | 'slow' | 'unknown'

/** The slots that an organization occupies. */
export interface Held {
  count: number
  firstTries: number // of these, at lanes without any earlier attempt
  hangs: boolean // several of its lanes are slow
}

/** The occupied slots, which the sender passes when it asks for more deliveries. */
export interface Share {
  held: { [orgId: string]: Held }
  slow: number // slots that slow lanes occupy, all organizations together
  paces: { [lane: string]: 'quick' | 'slow' }
  reserved: Reserved
}

/** How many slots each kind of send leaves free. Each number includes the one before. */
interface Reserved {
  /** Only the first send of an organization may occupy these, one each. */
  forFirstSend: number
  /** An organization that makes fewer than two first tries leaves only `forFirstSend`; quick lanes leave this. */
  forFirstTries: number
  /** Further first tries leave this. */
  forQuick: number
  /** Slow lanes leave this, so that first tries never wait for slow receivers. */
  forUntried: number
}

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
    const own = queues.get(lane.orgId) ?? { quick: [], unknown: [], slow: [] }
    queues.set(lane.orgId, own)
    if (lane.wants > 0) own[lane.pace].push({ ...lane })
  }
  const held = new Map<string, Held>()
  for (const orgId of queues.keys()) {
    held.set(orgId, { ...(share.held[orgId] ?? { count: 0, firstTries: 0, hangs: false }) })
  }
  const granted = new Map<string, number>()
  for (let slow = share.slow; free > 0; free--) {
    const next = pick(queues, held, (pace, own) => free > reservedFrom(pace, own, slow, share))
    if (next === null) break
    const { queue, lane } = next
    granted.set(lane.lane, (granted.get(lane.lane) ?? 0) + 1)
    const own = held.get(lane.orgId)!
    own.count++
    if (lane.pace === 'slow') slow++
    if (lane.pace === 'unknown') own.firstTries++
    // Every lane gets one slot before any gets two.
    queue.shift()
    if (--lane.wants > 0) queue.push(lane)
  }
  return granted
}

function reservedFrom(pace: Pace, own: Held, slow: number, { reserved }: Share): number {
  if (pace === 'slow') return slow < slowMin ? reserved.forFirstTries : reserved.forUntried
  if (own.count === 0 && !(own.hangs && pace === 'unknown')) return 0
  if (pace === 'quick') return reserved.forFirstTries
  return own.firstTries < firstTriesMin ? reserved.forFirstSend : reserved.forQuick
}

/** The head of the next queue: that of the organization with the fewest slots. */
function pick(
  queues: Map<string, Queues>,
  held: Map<string, Held>,
  mayUse: (pace: Pace, own: Held) => boolean,
): { queue: DueLane[]; lane: DueLane } | null {
  let best: { queue: DueLane[]; lane: DueLane; count: number; atMs: number } | null = null
  for (const [orgId, own] of queues) {
    const has = held.get(orgId)!
    for (const pace of paces) {
      const lane = own[pace][0]
      if (lane === undefined || !mayUse(pace, has)) continue
      const atMs = lane.dueAtMs + behindMs[pace]
      const isBetter =
        best === null || has.count < best.count || (has.count === best.count && atMs < best.atMs)
      if (isBetter) best = { queue: own[pace], lane, count: has.count, atMs }
    }
  }
  return best
}
