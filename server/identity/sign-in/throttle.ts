/**
 * Throttles guessing: after 3 failures a name (an account or a sender) waits 1 s, doubling to 15 min. An attempt counts
 * from its start, so parallel guesses get no more tries than sequential ones. The store counts, for all nodes and
 * across restarts. This process only refuses sooner: while a name waits by the store's last answer, and while attempts
 * that run here could use up its free tries.
 */
import { createHmac } from 'node:crypto'
import type { AttemptName, ThrottleStore } from '../../../db/contract/throttle.ts'
import { elapsedMs, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { ended, noAttempts, throttledMs, type ThrottleState } from '../../../db/rules/sign-in-throttle.ts'
import type { AttemptOutcome } from '../../../db/contract/throttle.ts'
import { limits } from '../../limits.ts'

interface Attempt {
  right: boolean
  refusedBefore: number // throttled attempts since the last failure, for the audit entry
}

export interface Throttle {
  /**
   * Runs `check` when no name is throttled, otherwise throws 429 with `Retry-After`. False counts as a failure of every
   * name, true resets them. An attempt waits for running ones that could use up the free tries.
   */
  attempt(names: string[], check: () => Promise<boolean>): Promise<Attempt>
  /** How long this name must wait before its next attempt, as far as this node knows; 0 when it need not wait. */
  waitMs(name: string): number
}

interface ThrottleOptions {
  store: ThrottleStore
  /** Of the store: it neither jumps nor differs between nodes. */
  clock: Clock
  secret: string // names are hashed with it
}

/** What this process knows of a name. */
interface Row extends AttemptName {
  failures: number
  running: number // here
  queued: number // here
  untilMs: number // in `elapsedMs`
}

const freeTries = 3
const stepMs = 1_000
const rowsMax = 10_000
const queuedMax = 256
const queuedPerNameMax = 64
/** Other nodes check attempts of the same name: asks again, for longer than a check takes. */
const busyWaitMs = 100
const busyTriesMax = 50
const pruneEvery = 256

/** Lets attempts begin here that could not use up the free tries of a name even if all of them fail. */
function makeGate(waitOf: (row: Row) => number) {
  const queue: (() => void)[] = []
  /** After the free tries, one attempt at a time. */
  const mayStart = ({ failures, running }: Row) => running < Math.max(1, freeTries - failures)
  return {
    /** Resolves when no row is throttled. Nothing else runs between the check and the count. */
    async enter(heldRows: Row[]): Promise<void> {
      for (;;) {
        const longestMs = Math.max(...heldRows.map(waitOf))
        if (longestMs > 0) refuse(heldRows, longestMs)
        if (heldRows.every(mayStart)) break
        if (queue.length >= queuedMax || heldRows.some(({ queued }) => queued >= queuedPerNameMax))
          refuse(heldRows, stepMs)
        for (const row of heldRows) row.queued++
        await new Promise<void>((wake) => queue.push(wake))
        for (const row of heldRows) row.queued--
      }
      for (const row of heldRows) row.running++
    },
    leave(heldRows: Row[]): void {
      for (const row of heldRows) row.running--
      for (const wake of queue.splice(0)) wake()
    },
  }
}

export function makeThrottle({ store, clock, secret }: ThrottleOptions): Throttle {
  const rows = new Map<string, Row>()
  let attempts = 0
  const waitOf = (row: Row | undefined) => Math.max(0, (row?.untilMs ?? 0) - elapsedMs(clock))
  const hashed = (name: string) => createHmac('sha256', secret).update(name).digest('hex').slice(0, 32)
  const gate = makeGate(waitOf)

  const begin = async (heldRows: Row[]): Promise<void> => {
    for (let tries = 0; ; tries++) {
      const { start, waitMs } = await store.begin({
        names: handedOver(heldRows),
        freeTries,
        now: clock.now(),
      })
      if (start === 'begun') return
      if (start === 'refused') {
        for (const row of heldRows) row.untilMs = Math.max(row.untilMs, elapsedMs(clock) + waitMs)
        throw refusal(waitMs)
      }
      if (tries >= busyTriesMax) refuse(heldRows, stepMs)
      await Bun.sleep(busyWaitMs)
    }
  }

  const end = async (heldRows: Row[], outcome: AttemptOutcome): Promise<number> => {
    const answer = await store.end({ names: handedOver(heldRows), outcome, freeTries, now: clock.now() })
    heldRows.forEach((row, index) => {
      const { failures, waitMs } = answer.states[index]!
      Object.assign(row, { failures, untilMs: elapsedMs(clock) + waitMs })
    })
    return answer.refusedBefore
  }

  const run = async (heldRows: Row[], check: () => Promise<boolean>): Promise<Attempt> => {
    await begin(heldRows)
    let right: boolean
    try {
      right = await check()
    } catch (error) {
      await end(heldRows, 'none').catch(() => undefined) // the store counts it as a failure after a minute
      throw error
    }
    return { right, refusedBefore: await end(heldRows, right ? 'right' : 'wrong') }
  }

  return {
    waitMs: (name) => waitOf(rows.get(name)),
    async attempt(names, check) {
      const heldRows = names.map((name) => rowOf(rows, name, hashed))
      try {
        await gate.enter(heldRows)
        try {
          if (++attempts % pruneEvery === 0) await store.prune(throttlePrune(clock.now()))
          return await run(heldRows, check)
        } finally {
          gate.leave(heldRows)
        }
      } finally {
        forget(rows, names, elapsedMs(clock))
      }
    },
  }
}

/** Which names the store forgets. After a day the wait of the next failures is no shorter than going on would be. */
export function throttlePrune(now: number): { idleBeforeMs: number; rowsMax: number } {
  return { idleBeforeMs: now - limits.throttleForgottenMs, rowsMax: limits.throttleNamesMax }
}

/** A clock that continues the wall clock of the start without its jumps. */
export function steadyClock(clock: Clock): Clock {
  const offsetMs = clock.now() - elapsedMs(clock)
  return { now: () => Math.round(offsetMs + elapsedMs(clock)), elapsed: () => elapsedMs(clock) }
}

/** The rows as the store gets them, with the refusals that it does not know yet. */
function handedOver(heldRows: Row[]): AttemptName[] {
  return heldRows.map((row) => {
    const { name, isSender, refused } = row
    row.refused = 0
    return { name, isSender, refused }
  })
}

/** In order of last use: re-inserting makes the oldest row the first of the map. */
function rowOf(rows: Map<string, Row>, name: string, hashed: (name: string) => string): Row {
  const counts = { failures: 0, running: 0, queued: 0, untilMs: 0, refused: 0 }
  const row = rows.get(name) ?? { name: hashed(name), isSender: name.startsWith(senderPrefix), ...counts }
  rows.delete(name)
  rows.set(name, row)
  return row
}

/** Begins the names of senders. */
export const senderPrefix = 'sender '

/** Drops rows that say nothing, and the oldest idle rows beyond the limit. */
function forget(rows: Map<string, Row>, names: string[], now: number): void {
  const idle = (row: Row) => row.running === 0 && row.queued === 0
  for (const name of names) {
    const row = rows.get(name)
    if (row === undefined || !idle(row)) continue
    if (row.failures === 0 && row.refused === 0 && row.untilMs <= now) rows.delete(name)
  }
  if (rows.size <= rowsMax) return
  for (const [name, row] of rows) {
    if (idle(row)) rows.delete(name)
    if (rows.size <= rowsMax) return
  }
}

function refuse(heldRows: Row[], waitMs: number): never {
  for (const row of heldRows) row.refused++
  throw refusal(waitMs)
}

function refusal(waitMs: number): AppError {
  const seconds = Math.ceil(waitMs / 1000)
  return new AppError('rate_limited', `Too many failed attempts. Try again in ${seconds} s.`, {
    headers: {
      'retry-after': String(seconds),
      ratelimit: `"sign-in";r=0;t=${seconds}`,
      'ratelimit-policy': `"sign-in";q=1;w=${seconds}`, // one attempt, once the wait is over
    },
  })
}

export interface LinkThrottle {
  /** Counts a link that does not exist. Throws 429 while its sender waits. */
  unknown(sender: string): void
}

/** By the same rule, in memory and per node: the tokens of links cannot be guessed, so this only saves work. */
export function makeLinkThrottle(clock: Clock, linksFree: number): LinkThrottle {
  const senders = new Map<string, ThrottleState>()
  return {
    unknown(sender) {
      const now = elapsedMs(clock)
      const state = senders.get(sender) ?? noAttempts
      const waitMs = throttledMs(state, linksFree, now)
      senders.delete(sender)
      senders.set(sender, waitMs > 0 ? state : ended(state, 'wrong', linksFree, now))
      const [oldest] = senders.size > rowsMax ? senders.keys() : []
      if (oldest !== undefined) senders.delete(oldest)
      if (waitMs > 0) throw refusal(waitMs)
    },
  }
}
