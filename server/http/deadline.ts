/**
 * Deadlines of requests and bodies. Those of one length share a timer, because a timer for each of 20,000 requests per
 * second costs as much as checking their events.
 */
export interface Deadline {
  /** Called when the work ended in time; idempotent. */
  end(): void
}

/** Calls `late` once after `ms`, unless the deadline ended before. */
export function startDeadline(ms: number, late: () => void): Deadline {
  let add = lines.get(ms)
  if (add === undefined) lines.set(ms, (add = deadlineLine(ms)))
  return add(late)
}

/** By length; there are as many as constants in `limits.ts`. */
const lines = new Map<number, ReturnType<typeof deadlineLine>>()

/** A link of a ring in order of time. It is removed in one step, so that nothing of a finished request stays. */
interface Link extends Deadline {
  before: Link
  after: Link
  dueMs: number
  late: () => void
}

function end(this: Link): void {
  this.before.after = this.after
  this.after.before = this.before
  this.before = this
  this.after = this
}

function deadlineLine(ms: number): (late: () => void) => Deadline {
  const ring = { dueMs: 0, late: () => {}, end } as Link
  ring.before = ring
  ring.after = ring
  let isTimed = false

  function expire(): void {
    const nowMs = performance.now()
    try {
      while (ring.after !== ring && ring.after.dueMs <= nowMs) {
        const first = ring.after
        first.end()
        first.late()
      }
    } finally {
      isTimed = false
      if (ring.after !== ring) wake(Math.max(0, ring.after.dueMs - nowMs))
    }
  }

  function wake(inMs: number): void {
    isTimed = true
    setTimeout(expire, Math.ceil(inMs)).unref()
  }

  return (late) => {
    const link: Link = { before: ring.before, after: ring, dueMs: performance.now() + ms, late, end }
    ring.before.after = link
    ring.before = link
    if (!isTimed) wake(ms)
    return link
  }
}
