/**
 * Throttles guessing: after 3 failures a name (an account or a sender) waits 1 s, doubling to 15 min. An attempt counts
 * from its start, so parallel guesses get no more tries than sequential ones.
 */
import { elapsedMs, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'

export interface Attempt {
  right: boolean
  refusedBefore: number // throttled attempts since the last failure, for the audit entry
}

export interface Throttle {
  /**
   * Runs `check` when no name is throttled, otherwise throws 429 with `Retry-After`. False counts as a failure of every
   * name, true resets them. An attempt waits for running ones that could use up the free tries.
   */
  attempt(names: string[], check: () => Promise<boolean>): Promise<Attempt>
  /** How long this name must wait before its next attempt; 0 when it need not wait. */
  waitMs(name: string): number
}

interface Row {
  failures: number
  refusals: number
  running: number // attempts without an outcome
  queued: number
  untilMs: number
}

const stepMs = 1_000
const waitMsMax = 15 * 60_000
const rowsMax = 10_000
const queuedMax = 256
const queuedPerNameMax = 64

export function makeThrottle(clock: Clock, freeTries = 3): Throttle {
  const rows = new Map<string, Row>()
  const queue: (() => void)[] = []
  const waitOf = (row: Row | undefined) => Math.max(0, (row?.untilMs ?? 0) - elapsedMs(clock))

  /** After the free tries, one attempt at a time. */
  const mayStart = ({ failures, running }: Row) => running < Math.max(1, freeTries - failures)

  /** Resolves when no row is throttled. Nothing else runs between the check and the count. */
  const enter = async (held: Row[]): Promise<void> => {
    for (;;) {
      const longestMs = Math.max(...held.map(waitOf))
      if (longestMs > 0) refuse(held, longestMs)
      if (held.every(mayStart)) break
      if (queue.length >= queuedMax || held.some(({ queued }) => queued >= queuedPerNameMax))
        refuse(held, stepMs)
      for (const row of held) row.queued++
      await new Promise<void>((wake) => queue.push(wake))
      for (const row of held) row.queued--
    }
    for (const row of held) row.running++
  }

  const failed = (row: Row): void => {
    row.failures++
    row.refusals = 0
    const over = row.failures - freeTries
    if (over >= 0) row.untilMs = elapsedMs(clock) + Math.min(waitMsMax, stepMs * 2 ** Math.min(over, 20))
  }

  const run = async (held: Row[], check: () => Promise<boolean>): Promise<Attempt> => {
    try {
      const right = await check() // an exception counts as neither success nor failure
      const refusedBefore = right ? 0 : Math.max(...held.map(({ refusals }) => refusals))
      for (const row of held) {
        if (right) row.failures = row.refusals = row.untilMs = 0
        else failed(row)
      }
      return { right, refusedBefore }
    } finally {
      for (const row of held) row.running--
      for (const wake of queue.splice(0)) wake()
    }
  }

  return {
    waitMs: (name) => waitOf(rows.get(name)),
    async attempt(names, check) {
      const held = names.map((name) => rowOf(rows, name))
      try {
        await enter(held)
        return await run(held, check)
      } finally {
        forget(rows, names)
      }
    },
  }
}

/** In order of last use: re-inserting makes the oldest row the first of the map. */
function rowOf(rows: Map<string, Row>, name: string): Row {
  const row = rows.get(name) ?? { failures: 0, refusals: 0, running: 0, queued: 0, untilMs: 0 }
  rows.delete(name)
  rows.set(name, row)
  return row
}

/** Drops rows without failures, and the oldest idle rows beyond the limit. */
function forget(rows: Map<string, Row>, names: string[]): void {
  const idle = (row: Row) => row.running === 0 && row.queued === 0
  for (const name of names) {
    const row = rows.get(name)
    if (row !== undefined && row.failures === 0 && idle(row)) rows.delete(name)
  }
  if (rows.size <= rowsMax) return
  for (const [name, row] of rows) {
    if (idle(row)) rows.delete(name)
    if (rows.size <= rowsMax) return
  }
}

function refuse(held: Row[], waitMs: number): never {
  for (const row of held) row.refusals++
  const seconds = Math.ceil(waitMs / 1000)
  throw new AppError('rate_limited', `Too many failed attempts. Try again in ${seconds} s.`, {
    headers: {
      'retry-after': String(seconds),
      ratelimit: `"sign-in";r=0;t=${seconds}`,
      'ratelimit-policy': `"sign-in";q=1;w=${seconds}`, // one attempt, once the wait is over
    },
  })
}
